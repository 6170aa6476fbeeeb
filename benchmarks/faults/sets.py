"""The sets of runs that the commands read: those of `benchmarks.corpus`, and our own in other styles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.corpus.archive import AUTHORS, OWN, RECORDED, STAMP, UNPACKED, digest_of, folder_of
from benchmarks.faults.report import Judged, judge
from benchmarks.faults.restyle import restyle

STYLED = "styled"
OURS = (OWN, STYLED, RECORDED)
"""Sets of our own loops; every other one is named after its author."""
EVERY = (*OURS, *AUTHORS)


def runs_of(name: str) -> Path:
    """Return the folder of a set; unpack its archive first, or write the runs in other styles, which takes minutes."""
    if name != STYLED:
        return folder_of(name)
    folder = UNPACKED / STYLED
    stamp = folder / STAMP
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != digest_of(OWN):
        restyle(folder_of(OWN), folder)
        stamp.write_text(digest_of(OWN), encoding="utf-8")
    return folder


def judged(folders: Mapping[str, Path], processes: int) -> dict[str, list[Judged]]:
    """Diagnose all runs of some sets."""
    return {
        name: judge(folder, "" if name in OURS else name.replace("-", "_"), processes)
        for name, folder in folders.items()
    }
