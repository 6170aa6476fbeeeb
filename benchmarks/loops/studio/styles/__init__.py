"""The ways in which runs are written; ``STYLES`` maps a name to its writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.styles import console, console2, folders, framework, structured, tables

Writer = Callable[[Record, Path], None]

STYLES: dict[str, Writer] = {
    **console.WRITERS,
    **console2.WRITERS,
    **framework.WRITERS,
    **structured.WRITERS,
    **tables.WRITERS,
    **folders.WRITERS,
}
