"""The figures that the README shows: kept in figures.json by the commands that measure them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE = Path(__file__).parent / "figures.json"

Rows = Sequence[Mapping[str, str]]
"""A table: one mapping of column to cell for each row."""


def kept(name: str) -> Rows:
    """Return a table as it was last measured."""
    rows: Rows = json.loads(FILE.read_text(encoding="utf-8"))[name]
    return rows


def keep(name: str, rows: Rows) -> None:
    """Keep a table, in place of what was measured before."""
    tables = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps(tables | {name: rows}, indent=1) + "\n", encoding="utf-8")


def table(rows: Rows) -> str:
    """Return a table in Markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
