"""What findings say about causes, in bits: a noisy-OR per cause.

For a cause c and a symptom s, with `frequency` how often c produces s and `background` how often s is seen with
nothing wrong:

    P(s | c)      = 1 - (1 - background) * (1 - frequency)
    bits(present) = weight * log2(P(s | c) / background)
    bits(absent)  = weight * log2(1 - frequency)
    bits(unknown) = 0

Symptoms that a cause does not produce have P(s | c) = background, which cancels between causes, so only the listed ones
count. `weight` below 1 tempers the evidence, because symptoms are correlated.

What is absent refutes only as far as it would have been seen. In a share of all runs, `missed`, a fault does not show
in the log as it usually does, or not to these measurements; so all that is absent together says

    bits(all absent) = log2((1 - missed) * 2 ** (sum of their bits) + missed)

and each of them its part of that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mldebug_mcp.diagnose.ranking import Evidence
from mldebug_mcp.models import Finding, State
from mldebug_mcp.symptoms import symptoms

WEIGHT = 0.85
"""Symptoms of one run are correlated: a spike of the loss and one of the gradient are not independent.

Chosen by hand.
"""

MAX_FREQUENCY = 0.97
"""No symptom always shows: its absence never rules a cause out."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cause as findings bear on it.

    Args:
        id: The cause.
        prior: Its weight before any evidence; weights need not sum to 1.
        frequency: How often it produces each symptom that it lists, between 0 and 1.
    """

    id: str
    prior: float
    frequency: Mapping[str, float]


def bits(state: State, frequency: float, background: float, weight: float = WEIGHT) -> float:
    """Return how much a finding speaks for a cause that produces its symptom with this frequency, in bits."""
    frequency = min(frequency, MAX_FREQUENCY)
    if state is State.PRESENT:
        return weight * math.log2((1 - (1 - background) * (1 - frequency)) / background)
    if state is State.ABSENT:
        return weight * math.log2(1 - frequency)
    return 0.0


def weigh(
    candidates: Sequence[Candidate],
    findings: Sequence[Finding],
    background: Mapping[str, float],
    weight: float = WEIGHT,
    missed: float = 0.0,
) -> list[Evidence]:
    """Return what the findings say about the causes.

    Args:
        candidates: The causes.
        findings: At most one per symptom.
        background: How often a healthy run shows each symptom.
        weight: Power to which the evidence is raised.
        missed: Share of runs in which a fault does not show as it usually does.
    """
    judged = {finding.symptom: finding.state for finding in findings if finding.state is not State.UNKNOWN}
    known = symptoms()
    evidence = []
    for one in candidates:
        said = {
            symptom: bits(judged[symptom], frequency, background[symptom], weight)
            for symptom, frequency in one.frequency.items()
            if symptom in judged
        }
        left = _left(sum(said[symptom] for symptom in said if judged[symptom] is State.ABSENT), missed)
        evidence += [
            Evidence(
                one.id,
                told * left if judged[symptom] is State.ABSENT else told,
                symptom,
                "finding",
                known[symptom].question.id if symptom in known else symptom,
            )
            for symptom, told in said.items()
        ]
    return evidence


def _left(absent: float, missed: float) -> float:
    """Return which part is left of the bits of all that is absent, where a share of faults is missed."""
    return math.log2((1 - missed) * 2**absent + missed) / absent if absent < 0 else 1.0
