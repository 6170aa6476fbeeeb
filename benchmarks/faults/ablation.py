"""What a question earns: how often the diagnosis is right without it.

Each question is taken away in turn, with all of its outcomes, and the runs are ranked anew with the numbers that ship.
A question that changes no answer here is either one that these runs do not ask, or one that others answer as well.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.faults.figures import Rows
from benchmarks.faults.fit import Ranker
from benchmarks.faults.report import REFUSED, Judged
from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge.hypotheses import fitted
from mldebug_mcp.judge.likeness import shipped
from mldebug_mcp.models import Finding, State


@dataclass(frozen=True)
class Without:
    """How the runs are answered without a question.

    Args:
        seen: Runs in which one of its outcomes is present, by task.
        first, three, healthy: Right answers; see `ablate` for how they count.
    """

    seen: Mapping[str, int]
    first: int
    three: int
    healthy: int


def ablate(judged: Sequence[Judged], processes: int) -> Rows:
    """Return what is lost without each question, what loses most first.

    Runs whose log does not show their fault are left out.

    Args:
        judged: Labelled runs with their findings.
        processes: How many work side by side.
    """
    ones = [
        one
        for one in judged
        if one.causes != [REFUSED] and (one.label.shows or one.label.cause == "healthy")
    ]  # fmt: skip
    outcomes: dict[str, set[str]] = {}
    for symptom in symptoms().values():
        outcomes.setdefault(symptom.question.id, set()).add(symptom.id)
    counted = [one.findings for one in ones]
    whole = _without(ones, counted, frozenset())
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        rest = dict(
            zip(outcomes, pool.map(partial(_without, ones, counted), outcomes.values(), chunksize=4), strict=True)
        )
    losses = sorted(rest, key=lambda name: (rest[name].first - whole.first, rest[name].three - whole.three, name))
    return [_row(name, len(outcomes[name]), whole, rest[name]) for name in losses]


def _row(name: str, outcomes: int, whole: Without, rest: Without) -> dict[str, str]:
    return {
        "question": name,
        "outcomes": f"{outcomes}",
        "runs that show one": f"{sum(rest.seen.values())}",
        "tasks": f"{len(rest.seen)}",
        "first": f"{rest.first - whole.first:+d}",
        "first three": f"{rest.three - whole.three:+d}",
        "healthy": f"{rest.healthy - whole.healthy:+d}",
    }


def _without(ones: Sequence[Judged], counted: Sequence[Sequence[Finding]], outcomes: Collection[str]) -> Without:
    seen: dict[str, int] = {}
    for one in ones:
        if any(one.states.get(outcome) is State.PRESENT for outcome in outcomes):
            seen[one.task] = seen.get(one.task, 0) + 1
    ranker = Ranker(fitted(), shipped())
    again = []
    for one, found in zip(ones, counted, strict=True):
        left = [finding for finding in found if finding.symptom not in outcomes]
        ranked = ranker.ranked(one, left)
        again.append(replace(one, causes=[item.id for item in ranked]))
    faulty = [one for one in again if one.label.cause != "healthy"]
    return Without(
        seen,
        sum(one.right(1) for one in faulty),
        sum(one.right(3) for one in faulty),
        sum(one.right(1) for one in again if one.label.cause == "healthy"),
    )
