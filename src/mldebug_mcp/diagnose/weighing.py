"""What findings say about causes, in bits: a noisy-OR per cause.

For a cause c and a symptom s, with `frequency` how often c produces s and `background` how often s is seen with
nothing wrong:

    P(s | c)      = 1 - (1 - background) * (1 - frequency)
    bits(present) = trust * log2(P(s | c) / background)
    bits(absent)  = trust * log2(1 - frequency)
    bits(unknown) = 0

Symptoms are correlated: what three questions see may be one phenomenon. So each question has a trust of its own for
what it sees, and what is absent one for all: weighted naive Bayes (Zaidi et al. 2013, "Alleviating naive Bayes
attribute independence assumption by attribute weighting"), the weights fitted to make the right causes probable.

A symptom that a cause does not list is one of which nobody said whether it produces it: it is taken to produce it as
often as causes do on average, times `unlisted`. These bits are the same for all causes but those that list it, and for
all but `healthy`; so they are told once, against `healthy`, and taken off those of the causes that list it.

What is absent refutes only as far as it would have been seen. In a share of all runs, `missed`, a fault does not show
in the log as it usually does, or not to these measurements; so all that is absent together says

    bits(all absent) = log2((1 - missed) * 2 ** (sum of their bits) + missed)

and each of them its part of that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from mldebug_mcp.diagnose.ranking import Evidence
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import SOUND
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


@dataclass(frozen=True, slots=True)
class Trust:
    """How far findings are trusted; fitted on labelled runs (`calibrate`).

    Args:
        weight: Power to which the evidence is raised.
        missed: Share of runs in which a fault does not show as it usually does.
        unlisted: How often a cause produces a symptom that it does not list, as a share of the mean over all causes.
        absent: Power to which the evidence of what is absent is raised; None: `weight`.
        questions: By question, the power to which the evidence of what it sees is raised in place of `weight`.
    """

    weight: float = WEIGHT
    missed: float = 0.0
    unlisted: float = 0.0
    absent: float | None = None
    questions: Mapping[str, float] = field(default_factory=dict)

    def of(self, symptom: str, state: State) -> float:
        """Return the power to which the evidence of a finding is raised."""
        if state is State.ABSENT:
            return self.weight if self.absent is None else self.absent
        return self.questions.get(question_of(symptom), self.weight)


AS_CHOSEN = Trust()


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
    trust: Trust = AS_CHOSEN,
) -> list[Evidence]:
    """Return what the findings say about the causes.

    Args:
        candidates: The causes.
        findings: At most one per symptom.
        background: How often a healthy run shows each symptom.
        trust: How far the findings are trusted.
    """
    judged = {finding.symptom: finding.state for finding in findings if finding.state is not State.UNKNOWN}
    present = [symptom for symptom, state in judged.items() if state is State.PRESENT]
    usual = {one: trust.unlisted * fmean(cause.frequency.get(one, 0.0) for cause in candidates) for one in present}
    of_any = {
        one: bits(State.PRESENT, often, background[one], trust.of(one, State.PRESENT)) if often else 0.0
        for one, often in usual.items()
    }
    evidence = []
    for cause in candidates:
        said = {
            symptom: bits(state, max(often, usual.get(symptom, 0.0)), background[symptom], trust.of(symptom, state))
            for symptom, often in cause.frequency.items()
            if (state := judged.get(symptom)) is not None
        }
        left = _left(sum(told for symptom, told in said.items() if judged[symptom] is State.ABSENT), trust.missed)
        told = {
            symptom: said[symptom] - of_any[symptom] if symptom in of_any else said[symptom] * left for symptom in said
        }
        if cause.id == SOUND:
            told |= {symptom: -of_any[symptom] for symptom in of_any if of_any[symptom]}
        evidence += [Evidence(cause.id, much, name, "finding", question_of(name)) for name, much in told.items()]
    return evidence


def question_of(symptom: str) -> str:
    """Return the question that a symptom of a run answers; one of a probe or a snapshot is asked for itself."""
    known = symptoms().get(symptom)
    return symptom if known is None else known.question.id


def _left(absent: float, missed: float) -> float:
    """Return which part is left of the bits of all that is absent, where a share of faults is missed."""
    return math.log2((1 - missed) * 2**absent + missed) / absent if absent < 0 else 1.0
