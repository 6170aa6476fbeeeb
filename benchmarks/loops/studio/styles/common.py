"""Helpers that the writers share."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.loops.studio.core import Entry, Record

SHARES = ("acc", "auc", "recall", "precision", "iou", "mAP", "ndcg", "cer", "r2")


def stamp(rec: Record, entry: Entry, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """The time of an entry."""
    when = datetime.fromtimestamp(rec.started, UTC) + timedelta(seconds=entry.clock)
    return when.strftime(form)


def num(value: float, digits: int = 4) -> str:
    """A number as most people print it: fixed, or with an exponent if very small or large."""
    if not math.isfinite(value):
        return str(value)
    if value != 0 and (abs(value) < 10**-digits or abs(value) >= 1e6):
        return f"{value:.{max(1, digits - 1)}e}"
    return f"{value:.{digits}f}"


def hms(seconds: float) -> str:
    """Seconds as minutes or hours."""
    s = int(seconds)
    return f"{s // 3600}:{s % 3600 // 60:02d}:{s % 60:02d}" if s >= 3600 else f"{s // 60:02d}:{s % 60:02d}"


def share(key: str) -> bool:
    """Whether a metric is a share that people like to print as a percentage."""
    return any(part in key for part in SHARES)


def long(rec: Record) -> bool:
    """Whether training rows come more often than one an epoch."""
    rows = [e for e in rec.rows() if e.split == "train"]
    return len(rows) > rec.epochs or rec.epochs == 1


def by_epoch(rec: Record) -> list[dict[str, Any]]:
    """Rows of all splits merged where they share a step."""
    out: list[dict[str, Any]] = []
    for e in rec.rows():
        if not out or out[-1]["step"] != e.step:
            out.append({"epoch": e.epoch, "step": e.step, "clock": e.clock})
        out[-1].update({f"{e.split}:{k}": v for k, v in e.values.items()})
    return out


def keys(rows: list[dict[str, Any]]) -> list[str]:
    """The metric keys of merged rows, in order of their first use."""
    return list(dict.fromkeys(k for r in rows for k in r if ":" in k))


def spill(rec: Record, path: Path) -> None:
    """Write what is not a number (warnings, tracebacks) where stderr would have gone."""
    texts = [e.text for e in rec.texts()]
    if texts:
        path.write_text("\n".join(texts) + "\n")


def simple_yaml(config: dict[str, Any], indent: str = "") -> str:
    """A flat mapping as YAML."""
    lines = []
    for key, value in config.items():
        lines.append(f"{indent}{key}: {_yaml_value(value)}")
    return "\n".join(lines) + "\n"


def _yaml_value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)
