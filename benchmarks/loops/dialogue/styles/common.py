"""What all styles share: numbers, times, epochs and files."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.loops.dialogue.core import Record, Row


def num(value: float, digits: int = 4) -> str:
    """A number as programs print it: small and large ones with an exponent."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if value == 0:
        return f"{0:.{digits}f}"
    return f"{value:.2e}" if abs(value) < 10 ** -(digits - 1) or abs(value) >= 1e6 else f"{value:.{digits}f}"


def jsonable(value: float) -> float:
    """A float with the digits that a program would store."""
    return value if math.isnan(value) or math.isinf(value) else float(f"{value:.6g}")


def start_of(rec: Record) -> dt.datetime:
    """The made-up moment at which the run started."""
    return dt.datetime(2024, 1, 3, 8, 0, 0) + dt.timedelta(seconds=rec.seed * 100_003 % 50_000_000)


def stamp(rec: Record, row: Row, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """The time of a row."""
    return (start_of(rec) + dt.timedelta(seconds=row.seconds)).strftime(form)


@dataclass
class Epoch:
    """Mean training values and the last evaluation of one stretch of a run."""

    number: int
    step: int
    train: dict[str, float] = field(default_factory=dict)
    evals: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    text: list[str] = field(default_factory=list)


def epochs(rec: Record) -> list[Epoch]:
    """The run cut at its evaluations, or into some 15 pieces where there are too few."""
    result: list[Epoch] = []
    pending: list[Row] = []
    text: list[str] = []
    by_eval = len(rec.of("eval")) >= 5
    chunk = max(1, len(rec.of("train")) // 15)

    def close(evals: dict[str, float], row: Row) -> None:
        keys: dict[str, None] = {}
        for one in pending:
            keys.update(dict.fromkeys(one.values))
        seen = {k: [r.values[k] for r in pending if k in r.values] for k in keys}
        mean = {k: sum(values) / len(values) for k, values in seen.items()}
        result.append(Epoch(len(result) + 1, row.step, mean, evals, row.seconds, list(text)))
        pending.clear()
        text.clear()

    last: dict[str, float] = {}
    for row in rec.rows:
        if row.kind == "event":
            text.append(row.text)
        elif row.kind == "train":
            pending.append(row)
            if not by_eval and len(pending) >= chunk:
                close(last, row)
        else:
            last = row.values
            if by_eval and pending:
                close(last, row)
            elif not by_eval and result:
                result[-1].evals = last
    if pending or text:
        close({}, rec.rows[-1])
    return result


def save(folder: Path, name: str, text: str) -> None:
    """Write one file of a run."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def yaml_of(config: dict[str, Any], indent: str = "") -> str:
    """A flat config as YAML."""
    return "".join(
        f"{indent}{k}: {'null' if v is None else str(v).lower() if isinstance(v, bool) else v}\n"
        for k, v in config.items()
    )


def dice(rec: Record) -> random.Random:
    """A random source for choices of style."""
    return random.Random(rec.seed)  # noqa: S311 - a style, not a secret
