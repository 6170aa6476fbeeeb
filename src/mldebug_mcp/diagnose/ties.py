"""Causes that a log cannot tell apart, and the one thing to log or run that would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mldebug_mcp.diagnose.information import Likelihood, worth
from mldebug_mcp.diagnose.next_steps import COST, FALSE_CONFIRMATION, SENSITIVITY
from mldebug_mcp.diagnose.ranking import Ranked
from mldebug_mcp.diagnose.what_to_log import LEADING, metrics_that_split
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding, Hypothesis, NextStep, Tie
from mldebug_mcp.models.base import NO_FAULTS

SAME = 1.0
"""The evidence for two causes is the same if it differs by at most this many bits, summed over all findings."""
LEAST_FOR = 1.0
"""Bits that must speak for a cause: two causes without evidence are not tied. Both chosen by hand."""
LOGGING_COST = 3.0
"""The cost of logging a metric, on the scale of `COST`: the run has to be repeated, which is often done anyway."""


def tied(ranked: Sequence[Ranked]) -> dict[str, list[str]]:
    """Return, for each leading cause, those that the evidence cannot tell from it.

    If one of them is ahead, it is because it is more common, not because of this log.
    """
    leading = [one for one in ranked if one.probability >= LEADING and _for(one) >= LEAST_FOR]
    return {
        one.id: [other.id for other in leading if other.id != one.id and _distance(one, other) <= SAME]
        for one in leading
        if one.id not in NO_FAULTS
    }


def _for(one: Ranked) -> float:
    return sum(bits for bits in one.bits.values() if bits > 0)


def _distance(one: Ranked, other: Ranked) -> float:
    known = one.bits.keys() | other.bits.keys()
    return sum(abs(one.bits.get(what, 0.0) - other.bits.get(what, 0.0)) for what in known)


def describe_ties(
    run: Run, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], likelihood: Likelihood
) -> list[Tie]:
    """Say which of the hypotheses are tied, and what would split them."""
    ties: list[Tie] = []
    for one in hypotheses:
        group = {other.cause: other for other in hypotheses if other.cause in (one.cause, *one.tied_with)}
        if len(group) > 1 and not any(set(group) & set(tie.causes) for tie in ties):
            split = _split(group, run, findings, likelihood)
            ties.append(
                Tie(causes=list(group), summary=f"the log cannot tell these apart: {', '.join(group)}; {split}")
            )
    return ties


def _split(group: Mapping[str, Hypothesis], run: Run, findings: Sequence[Finding], likelihood: Likelihood) -> str:
    """Return the one thing that splits a group best for what it costs, in words."""
    shares = {cause: one.probability for cause, one in group.items()}
    options = [
        (told.bits / LOGGING_COST, f"to split them, log {told.metric}: {told.how}")
        for told in metrics_that_split(shares, run, findings, likelihood)[:1]
    ]
    for step, about in _checks(group):
        chances = np.array([[SENSITIVITY if cause in about else FALSE_CONFIRMATION] for cause in group])
        bits = worth(list(shares.values()), chances).bits
        options.append((bits / COST[step.cost], f"to split them: {step.action} ({step.cost})"))
    return max(options)[1] if options else "nothing that we know of tells them apart"


def _checks(group: Mapping[str, Hypothesis]) -> list[tuple[NextStep, set[str]]]:
    """Return the checks of the group's hypotheses, each with those of them that it is about."""
    steps: dict[str, tuple[NextStep, set[str]]] = {}
    for cause, one in group.items():
        for step in one.next_steps:
            steps.setdefault(step.call or step.action, (step, set()))[1].add(cause)
    return list(steps.values())
