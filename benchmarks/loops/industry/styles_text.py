"""Logs as lines of text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from benchmarks.loops.industry.trace import Row

_START = datetime(2025, 3, 11, 8, 14, 2, 318000, tzinfo=UTC)
_COUNTS = {
    "step",
    "global_step",
    "it",
    "iteration",
    "update",
    "samples",
    "examples",
    "n_seen",
    "rows_seen",
    "samples_seen",
}


def whole(name: str, value: float) -> float | int:
    """Return counts as whole numbers."""
    return int(value) if name in _COUNTS and math.isfinite(value) else value


def short(name: str, value: float, digits: int = 4) -> str:
    """Return a number with some significant digits."""
    kept = whole(name, value)
    return str(kept) if isinstance(kept, int) else f"{value:.{digits}g}"


def clock(index: int, seconds: float = 3.7) -> datetime:
    """Return the time of a line."""
    return _START + timedelta(seconds=seconds * index)


def pipes(_index: int, row: Row, axis: str) -> str:
    """`step   100 | loss 0.5 | ...`."""
    rest = " | ".join(f"{name} {short(name, value)}" for name, value in row.items() if name != axis)
    return f"{axis} {short(axis, row[axis]):>7} | {rest}"


def logfmt(_index: int, row: Row, _axis: str) -> str:
    """`step=100 loss=0.5`."""
    return " ".join(f"{name}={short(name, value, 5)}" for name, value in row.items())


def logging(index: int, row: Row, axis: str) -> str:
    """As Python's logging prints."""
    stamp = clock(index).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    rest = ", ".join(f"{name}: {short(name, value, 3)}" for name, value in row.items() if name != axis)
    return f"{stamp} - INFO - trainer.loop - [{axis} {short(axis, row[axis])}] {rest}"


def bar(index: int, row: Row, axis: str) -> str:
    """A progress bar with its postfix."""
    part = (index * 7) % 101
    blocks = "█" * (part // 10) + " " * (10 - part // 10)
    rest = ", ".join(f"{name}={short(name, value, 3)}" for name, value in row.items() if name not in {axis, "epoch"})
    epoch = f"Epoch {int(row['epoch'])}" if "epoch" in row else "Training"
    at = int(row[axis])
    clock_at = f"{index // 60:02d}:{index % 60:02d}<03:12"
    return f"{epoch}: {part:3d}%|{blocks}| {at}/{max(at, 1) + 500} [{clock_at},  4.71it/s, {rest}]"


def hf_dict(_index: int, row: Row, axis: str) -> str:
    """The dictionary that the Trainer prints: no step, the epoch last."""
    kept = {name: value for name, value in row.items() if name not in {axis, "epoch"}}
    return str({**kept, "epoch": round(row.get("epoch", row[axis]), 2)}).replace("nan", "nan")


def hf_strings(_index: int, row: Row, axis: str) -> str:
    """The same as newer releases print it, with numbers as strings."""
    kept = {name: short(name, value) for name, value in row.items() if name not in {axis, "epoch"}}
    return str({**kept, "epoch": short("epoch", row.get("epoch", row[axis]))})


def kubernetes(index: int, row: Row, _axis: str) -> str:
    """Container output with its prefix, JSON behind it."""
    stamp = clock(index, 11.0).strftime("%Y-%m-%dT%H:%M:%S.%f") + "417Z"
    body = json.dumps({name: round(whole(name, value), 6) for name, value in row.items()})
    return f"{stamp} stdout F [train-worker-0] {body}"


def spark(index: int, row: Row, axis: str) -> str:
    """As a driver log prints."""
    stamp = clock(index, 5.3).strftime("%y/%m/%d %H:%M:%S")
    rest = "; ".join(f"{name} = {short(name, value)}" for name, value in row.items() if name != axis)
    return f"{stamp} INFO TrainLoop: [{axis}={short(axis, row[axis])}] {rest}"


def semicolons(_index: int, row: Row, axis: str) -> str:
    """`[000100] loss -> 0.5; ...`."""
    rest = "; ".join(f"{name} -> {short(name, value, 3)}" for name, value in row.items() if name != axis)
    return f"[{short(axis, row[axis]).zfill(6)}] {rest}"


def absl(index: int, row: Row, axis: str) -> str:
    """As absl prints."""
    stamp = clock(index, 2.1).strftime("%m%d %H:%M:%S.%f")
    rest = ", ".join(f"{name}={short(name, value)}" for name, value in row.items() if name != axis)
    return f"I{stamp} 139872 train.py:212] [{short(axis, row[axis])}] {rest}"


def ranks(index: int, row: Row, axis: str) -> str:
    """Two ranks that print the same step, each with its own little difference of time."""
    body = " ".join(f"{name}={short(name, value, 5)}" for name, value in row.items() if name != axis)
    stamp = clock(index).strftime("%H:%M:%S")
    return "\n".join(f"[rank{rank}] {stamp} {axis}={short(axis, row[axis])} {body}" for rank in range(2))


LINES: dict[str, Callable[[int, Row, str], str]] = {
    "pipes": pipes,
    "logfmt": logfmt,
    "logging": logging,
    "bar": bar,
    "hf_dict": hf_dict,
    "hf_strings": hf_strings,
    "kubernetes": kubernetes,
    "spark": spark,
    "semicolons": semicolons,
    "absl": absl,
    "ranks": ranks,
}


def keras(rows: list[Row]) -> list[str]:
    """Two lines an epoch."""
    lines: list[str] = []
    for index, row in enumerate(rows):
        rest = " - ".join(f"{n}: {short(n, v)}" for n, v in row.items() if n not in {"step", "epoch", "samples"})
        lines += [f"Epoch {index + 1}/{len(rows)}", f"312/312 - {4 + index % 2}s - {13 + index % 3}ms/step - {rest}"]
    return lines


def markdown(rows: list[Row]) -> list[str]:
    """A table as people paste it into a wiki."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    cells = [[short(name, row[name]) if name in row else "" for name in names] for row in rows]
    return lines + ["| " + " | ".join(one) + " |" for one in cells]
