"""Healthy runs cut short: are they called healthy while they are still young, as people ask while a run is going on?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.corpus.labels import Label, read_labels
from benchmarks.faults.figures import Rows
from mldebug_mcp.judge import diagnose
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.run import Ending, Segment, Series
from mldebug_mcp.models import Diagnosis

LENGTHS = (5, 10, 20, 40, 80, 160)
"""Records after which a run is looked at, if it goes on."""


@dataclass(frozen=True)
class Young:
    """What is said of a run after its first records."""

    name: str
    label: Label
    records: int
    diagnosis: Diagnosis

    @property
    def accused(self) -> bool:
        """Whether a cause leads."""
        return self.diagnosis.hypotheses[0].cause not in {"healthy", "unknown"}


def cut(run: Run, records: int) -> Run:
    """Return a run as it stood after so many records of the metric that is logged most often."""
    longest = max(run.series.values(), key=len)
    if records >= len(longest):
        return run
    last = float(longest.step[records - 1])
    segments = tuple(
        Segment(one.first_step, min(one.last_step, last), _until(one.series, last))
        for one in run.segments
        if one.first_step <= last
    )
    messages = tuple(one for one in run.messages if one.records <= records)
    kept = _until(run.series, last)
    return replace(run, series=kept, segments=segments, records=records, messages=messages, ending=Ending())


def _until(series: Mapping[str, Series], last: float) -> dict[str, Series]:
    kept = {name: one.where(one.step <= last) for name, one in series.items()}
    return {name: one for name, one in kept.items() if len(one)}


def judge_young(folder: Path, lengths: Sequence[int] = LENGTHS) -> list[Young]:
    """Diagnose the healthy runs of a folder after their first records; the whole ones are not among them."""
    return [
        Young(name, label, records, diagnose(cut(run, records)))
        for name, label, run in _healthy(folder)
        for records in lengths
        if records < max(len(one) for one in run.series.values())
    ]


def _healthy(folder: Path) -> Iterator[tuple[str, Label, Run]]:
    for name, label in read_labels(folder).items():
        if label.cause == "healthy":
            yield name, label, read_run(folder / name)


def stages(parts: Mapping[str, Sequence[Young]]) -> Rows:
    """Return how many are accused: one row per length, the last for runs that are accused at any."""
    return [
        *(
            {"first records": f"{length}", **{part: _at(length, ones) for part, ones in parts.items()}}
            for length in LENGTHS
        ),
        {"first records": "at any of these", **{part: _ever(ones) for part, ones in parts.items()}},
    ]


def _at(length: int, ones: Sequence[Young]) -> str:
    there = [one for one in ones if one.records == length]
    return f"{sum(one.accused for one in there)} of {len(there)}"


def _ever(ones: Sequence[Young]) -> str:
    return f"{len({one.name for one in ones if one.accused})} of {len({one.name for one in ones})}"
