"""Count the answers that are right, and list the misses."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.faults.figures import calibration_error, part_of, side_by_side, table
from benchmarks.foreign.answers import FEW, PLACES, Answer, Judged
from benchmarks.foreign.labels import columns
from mldebug_mcp.models import State

SURE = 0.95
"""The credence at which an answer should be right nearly always."""


def report(ones: Sequence[Answer], *, misses: bool) -> str:
    """Return the figures as a Markdown table, one column per folder and half, and the misses of the open half."""
    if not ones:
        return "No labelled logs."
    parts = {name: [one for one in ones if one.one.column == name] for name in columns([one.one for one in ones])}
    rows = side_by_side({name: _measures(part) for name, part in parts.items()})
    missed = [one for one in ones if one.one.shown and not one.right(1)]
    return "\n\n".join([table(rows), *([table([_miss(one) for one in missed])] if misses and missed else [])])


def _measures(ones: Sequence[Answer]) -> dict[str, str]:
    faulty = [one for one in ones if not one.truth.healthy]
    answered = [one for one in ones if one.diagnosis is not None]
    sure = [one for one in answered if one.probability >= SURE]
    reasons = {
        "... and a finding speaks for it": part_of([one.right_for_a_reason for one in faulty]),
        f"... of logs of more than {FEW} records or with an error": part_of(
            [one.right_for_a_reason for one in faulty if one.has_course]
        ),
    }
    return {
        **right_causes(ones),
        **reasons,
        **called_healthy(ones),
        "logs refused": f"{len(ones) - len(answered)}",
        "expected calibration error": f"{calibration_error(answered):.3f}",
        f"right at a credence of {SURE:.0%} or more": part_of([one.right(1) for one in sure]),
    }


def right_causes(ones: Sequence[Judged]) -> dict[str, str]:
    """Return how often a right cause is named for a faulty run, and stands where."""
    faulty = [one for one in ones if not one.truth.healthy]
    return {
        "faulty runs": f"{len(faulty)}",
        "right cause first": part_of([one.right(1) for one in faulty]),
        f"right or near cause among the first {PLACES}": part_of([one.right_or_near(PLACES) for one in faulty]),
        f"right cause among the first {PLACES}": part_of([one.right(PLACES) for one in faulty]),
    }


def called_healthy(ones: Sequence[Judged]) -> dict[str, str]:
    """Return which runs are called healthy, and which of those that are healthy are not."""
    faulty, healthy = ([one for one in ones if one.truth.healthy is sound] for sound in (False, True))
    return {
        "faulty runs called healthy": part_of([one.says_healthy and not one.right(1) for one in faulty]),
        "healthy runs": f"{len(healthy)}",
        "healthy runs called healthy": part_of([one.says_healthy for one in healthy]),
        "healthy runs accused of a fault": part_of([one.accuses for one in healthy]),
    }


def _miss(one: Answer) -> dict[str, str]:
    row = {"run": one.one.name, "right": ", ".join(sorted(one.truth.right))}
    if one.diagnosis is None:
        return row | {"kind": "", "records": "", "called": f"refused: {one.refused[:160]}", "seen": ""}
    called = ", ".join(f"{h.cause} {h.probability:.2f}" for h in one.diagnosis.hypotheses[:PLACES])
    seen = ", ".join(finding.symptom for finding in one.diagnosis.findings if finding.state is State.PRESENT)
    run = one.diagnosis.run
    return row | {"kind": run.kind, "records": f"{run.records}", "called": called, "seen": seen}
