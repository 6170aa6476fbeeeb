"""The index that the loops write beside their runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.runs import Label

INDEX = "labels.jsonl"


@dataclass(frozen=True, slots=True)
class Made:
    """A run that a loop made: its name, which is that of its folder or file, and what is known of it."""

    run: str
    label: Label


def made_by(folder: Path) -> list[Made]:
    """Return the runs that a folder's index lists; none if it has none."""
    index = folder / INDEX
    lines = index.read_text(encoding="utf-8").splitlines() if index.is_file() else []
    return [_made(json.loads(line)) for line in lines if line.strip()]


def _made(row: dict[str, object]) -> Made:
    also = row.get("also")
    label = Label(
        cause=str(row["cause"]),
        also=tuple(map(str, also)) if isinstance(also, list) else (),
        onset=None,
        steps=1,
        shows=not row.get("weak", False),
        tuning=True,
    )
    return Made(str(row["run"]), label)
