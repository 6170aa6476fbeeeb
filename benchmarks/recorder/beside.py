"""What a recording adds: trained runs of our own with their log, and once more with a recording."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.corpus.archive import OWN, RECORDED
from benchmarks.faults.figures import Rows
from benchmarks.faults.report import accuracy
from benchmarks.faults.sets import judged, runs_of


def beside(processes: int = 2) -> Rows:
    """Diagnose both logs of the runs that were recorded, and return a row per measure."""
    sets = judged({name: runs_of(name) for name in (OWN, RECORDED)}, processes)
    recorded = {one.label.of: one for one in sets[RECORDED]}
    pairs = [(one, recorded[one.name]) for one in sets[OWN] if one.name in recorded]
    shown = [(bare, other) for bare, other in pairs if bare.label.cause == "healthy" or bare.label.shows]
    columns = {
        "bare": accuracy([bare for bare, _ in shown], {}),
        "recorded": accuracy([replace(other, label=bare.label) for bare, other in shown], {}),
    }
    parts = [part for part in columns["bare"][0] if part]
    return [
        {
            "": bare[""],
            **{f"{part}, {name}": row[part] for part in parts for name, row in (("bare", bare), ("recorded", other))},
        }
        for bare, other in zip(columns["bare"], columns["recorded"], strict=True)
    ]
