"""Diagnose the runs and count how often the diagnosis is right."""

from __future__ import annotations

import multiprocessing
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.corpus.labels import Label, read_labels
from benchmarks.faults.figures import Rows, calibration_error, share, side_by_side, table
from mldebug_mcp.checks.course import vector_of
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import diagnose
from mldebug_mcp.judge.diagnosis import evidence_from_run
from mldebug_mcp.judge.evidence import findings_to_judge
from mldebug_mcp.judge.hypotheses import independent
from mldebug_mcp.judge.ranking import CauseEvidence
from mldebug_mcp.logs import read_run
from mldebug_mcp.models import Finding, State

REFUSED = "refused"
"""What stands in place of the causes of a log that could not be read: it is right for no run."""


@dataclass(frozen=True)
class Judged:
    """A run, what is known of it, and what the diagnosis says; `loops` names those of other authors that trained it.

    `evidence` is what speaks beside the findings, and beside the likeness of its `numbers` to those of other runs.
    """

    name: str
    label: Label
    causes: list[str]
    probability: float
    states: dict[str, State]
    kind: str
    onsets: list[float]
    interval: float
    evidence: tuple[CauseEvidence, ...] = ()
    loops: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """The task's name."""
        return self.name.split("-")[0]

    @property
    def trained(self) -> str:
        """The name of the trained run that this is a log of."""
        return self.label.of or self.name

    @property
    def fault(self) -> str:
        """The fault's name."""
        return self.name.split("-")[1]

    @property
    def onset_found(self) -> bool:
        """Whether a finding begins within 2 % of the run's length of the fault, or in the record that covers it."""
        onset, near = self.label.onset, max(0.02 * self.label.steps, self.interval)
        return onset is not None and any(abs(step - onset) <= near for step in self.onsets)

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings that count when it is ranked: what another one brings about is left out."""
        found = [Finding(symptom=symptom, state=state) for symptom, state in self.states.items()]
        return independent(findings_to_judge(found, self.evidence))

    def right(self, places: int) -> bool:
        """Whether the injected cause, or one that the same observables justify, stands among the first places."""
        return bool({self.label.cause, *self.label.also} & set(self.causes[:places]))


def judge(folder: Path, author: str = "", processes: int = 2) -> list[Judged]:
    """Diagnose every run that the index of a folder lists.

    Args:
        folder: The runs and their index.
        author: Whose loops trained them; empty for our own, whose names begin with their task and fault.
        processes: How many work side by side.
    """
    runs = [
        (folder / run, f"{author}-{label.cause}-{run}" if author else run, label, author)
        for run, label in read_labels(folder).items()
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return pool.starmap(_judged, runs, chunksize=16)


def _judged(path: Path, name: str, label: Label, loops: str) -> Judged:
    try:
        run = read_run(path)
    except InputError:
        return Judged(name, label, [REFUSED], 0.0, {}, "unknown", [], 1.0, loops=loops)
    diagnosis = diagnose(run)
    present = [finding for finding in diagnosis.findings if finding.state is State.PRESENT and finding.steps]
    return Judged(
        name,
        label,
        [one.cause for one in diagnosis.hypotheses],
        diagnosis.hypotheses[0].probability,
        {finding.symptom: finding.state for finding in diagnosis.findings},
        run.kind,
        [step for finding in present for step in finding.steps],
        label.steps / max(1, diagnosis.run.steps),
        tuple(evidence_from_run(run, diagnosis.findings, diagnosis.sheet.facts)),
        loops,
        vector_of(run),
    )


def report(judged: Sequence[Judged], further: Mapping[str, Sequence[Judged]] | None = None) -> str:
    """Return the tables, for both parts and for further runs by what they are."""
    parts = by_part(judged, further or {})
    tables = [f"## {name} part\n\n{table(per_cause(ones))}" for name, ones in parts.items()]
    return "\n\n".join([table(accuracy(judged, further or {})), *tables])


def accuracy(judged: Sequence[Judged], further: Mapping[str, Sequence[Judged]]) -> Rows:
    """Return how often the diagnosis is right: one row per measure, one column per part."""
    return side_by_side({name: _measures(ones) for name, ones in by_part(judged, further).items()})


class _Labelled(Protocol):
    @property
    def label(self) -> Label: ...


Run = TypeVar("Run", bound=_Labelled)


def by_part(judged: Sequence[Run], further: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Return the runs of the tuning part, of the test part and further ones by what they are; no part is empty.

    Runs that were written anew are kept apart by part and by whether the fit saw their style.
    """
    parts: dict[str, list[Run]] = {"tuning": [], "test": []}
    for one in judged:
        parts.setdefault(_part(one.label), []).append(one)
    for name, ones in further.items():
        for one in ones:
            parts.setdefault(_part(one.label) if one.label.restyled else name, []).append(one)
    return {name: ones for name, ones in parts.items() if ones}


def _part(label: Label) -> str:
    part = "tuning" if label.tuning else "test"
    if not label.restyled:
        return part
    return f"{part}, styles the fit saw" if label.style_seen else f"{part}, styles it never saw"


def _faulty(ones: Sequence[Judged]) -> list[Judged]:
    return [one for one in ones if one.label.cause != "healthy" and one.label.shows]


def _measures(ones: Sequence[Judged]) -> dict[str, str]:
    healthy, faulty = [one for one in ones if one.label.cause == "healthy"], _faulty(ones)
    timed = [one for one in faulty if one.label.onset is not None]
    return {
        "faulty runs whose log shows it": f"{len(faulty)}",
        "right cause first": share([one.right(1) for one in faulty]),
        "right cause among the first three": share([one.right(3) for one in faulty]),
        "exactly the injected cause first": share([one.causes[0] == one.label.cause for one in faulty]),
        "faulty runs called healthy": share([one.causes[0] == "healthy" for one in faulty]),
        "healthy runs": f"{len(healthy)}",
        "healthy runs called healthy": share([one.causes[0] == "healthy" for one in healthy]),
        "onset within 2 % of the run, or in its record": share([one.onset_found for one in timed]),
        "logs refused": f"{sum(one.causes == [REFUSED] for one in ones)}",
        "expected calibration error": f"{calibration_error([*faulty, *healthy]):.3f}",
    }


def per_cause(ones: Sequence[Judged]) -> Rows:
    """Return how often each injected cause is found, and what is said instead: one row per cause."""
    by_cause: dict[str, list[Judged]] = defaultdict(list)
    for one in _faulty(ones):
        by_cause[one.label.cause].append(one)
    rows = []
    for cause, found in sorted(by_cause.items()):
        wrong = Counter(one.causes[0] for one in found if not one.right(1))
        instead = ", ".join(f"{name} ({count})" for name, count in wrong.most_common(3))
        first, three = (share([one.right(places) for one in found]) for places in (1, 3))
        rows.append(
            {
                "injected cause": cause,
                "runs": f"{len(found)}",
                "first": first,
                "first three": three,
                "called instead": instead,
            }
        )
    return rows
