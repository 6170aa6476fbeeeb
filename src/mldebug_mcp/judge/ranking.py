"""Causes in bits.

What findings say about each cause is weighed by a noisy-OR, and the causes are ranked with `healthy` and `unknown`
among them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Literal, NamedTuple

from mldebug_mcp.checks import symptoms
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import OTHER, SOUND

# The ranking: what is known speaks for and against each cause in bits, `healthy` and `unknown` being rivals.
#
#     score(c)       = sharpness * (log2(prior(c)) + sum of the bits of its evidence)
#     probability(c) = 2 ** score(c), normalised
#
# This is Bayes' rule, one fault at a time, where the bits are log2 P(seen | c) / P(seen | nothing wrong); `weighing`
# makes them of findings. `sharpness` is what is known as temperature scaling: it changes no order, and makes the
# probability of the leading cause match how often it is right. Whether there is a fault and which one are two
# questions: faults that are close neighbours share what they show, and halve each other's probability, though to name
# either is right. So the share of each fault in the probability of all of them is raised to a power of its own,
# `among_faults`.


Kind = Literal["finding", "numbers", "log", "error", "reference", "check"]
"""Kinds of evidence: a finding, all numbers of the run together or all its traits; what a log is (its length, its
beginning), the error that ended the run, a run to compare with, the outcome of a check."""
DECISIVE: Collection[Kind] = ("error", "check", "reference")
"""What may make a fault nearly sure without a second question: it was made, or printed, to tell of this cause."""
SUREST_ALONE = 0.94
"""Probability of a fault for which a single question speaks, at most: what one measurement says may have a reason that
nobody thought of. Chosen by hand, below the 0.95 at which people stop looking."""
MIN_SPEAKING_BITS = 1.0
"""Bits from which a question counts as speaking for a cause: two to one. Chosen by hand."""
LEAST_SHOWN = 0.05
"""Bits below which a finding is not named: they round to +0.0."""

_WORDS = (
    (0.86, "almost certain"),
    (0.71, "highly likely"),
    (0.56, "likely"),
    (0.46, "about even"),
    (0.31, "unlikely"),
    (0.16, "highly unlikely"),
    (0.0, "remote"),
)


def credence(probability: float) -> str:
    """Return a probability in Kesselman's words of estimative probability."""
    return next(word for least, word in _WORDS if round(probability, 2) >= least)


class CauseEvidence(NamedTuple):
    """What one thing says about one cause.

    Args:
        cause: The cause.
        bits: How much it supports it (positive) or contradicts it (negative).
        because: What says so: the id of a symptom, or words.
        kind: What sort of thing that is.
        about: The question that a finding answers: what answers the same question does not agree, it repeats.
        detail: What says so of this cause in words, where `because` is one for all causes.
    """

    cause: str
    bits: float
    because: str
    kind: Kind
    about: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A cause as ranked, with the bits of each source that support it (positive) or contradict it (negative)."""

    id: str
    probability: float
    bits: Mapping[str, float]


def rank(
    priors: Mapping[str, float], evidence: Iterable[CauseEvidence], sharpness: float = 1.0, among_faults: float = 1.0
) -> list[Ranked]:
    """Return the causes with their probabilities, most probable first; the probabilities sum to 1.

    Args:
        priors: Weight of each cause before any evidence, `healthy` and `unknown` among them; they need not sum to 1.
        evidence: What is known; evidence on other causes is left out.
        sharpness: Power to which the probabilities are raised before they are made to sum to 1.
        among_faults: Power to which those of the faults are then raised, the probability of all together kept.
    """
    of: dict[str, list[CauseEvidence]] = {cause: [] for cause in priors}
    for cause_evidence in evidence:
        if cause_evidence.cause in of:
            of[cause_evidence.cause].append(cause_evidence)
    scores = {
        cause: sharpness * (math.log2(prior) + sum(cause_evidence.bits for cause_evidence in of[cause]))
        for cause, prior in priors.items()
    }
    highest = max(scores.values())
    masses = {cause: 2 ** (score - highest) for cause, score in scores.items()}
    total = sum(masses.values())
    shares = _parted({cause: mass / total for cause, mass in masses.items()}, among_faults)
    ranked = [
        Ranked(cause, share, {cause_evidence.because: cause_evidence.bits for cause_evidence in of[cause]})
        for cause, share in shares.items()
    ]
    return sorted(ranked, key=lambda item: (-item.probability, item.id))


def _parted(shares: Mapping[str, float], power: float) -> Mapping[str, float]:
    """Return the probabilities, those of the faults parted anew among them."""
    faults = {cause: share for cause, share in shares.items() if cause not in (SOUND, OTHER)}
    largest = max(faults.values(), default=0.0)
    if power == 1 or not largest:
        return shares
    raised = {cause: (share / largest) ** power for cause, share in faults.items()}
    share_of_one = sum(faults.values()) / sum(raised.values())
    return {cause: raised[cause] * share_of_one if cause in raised else share for cause, share in shares.items()}


def not_too_sure(ranked: Sequence[Ranked], evidence: Iterable[CauseEvidence]) -> list[Ranked]:
    """Return the ranking, the leading one bounded if it is a fault for which no two questions speak.

    The others share the rest as they did; the order stays.
    """
    leading = ranked[0]
    rest = 1 - leading.probability
    if leading.id in (SOUND, OTHER) or leading.probability <= SUREST_ALONE or not rest:
        return list(ranked)
    if _rests_on_two(cause_evidence for cause_evidence in evidence if cause_evidence.cause == leading.id):
        return list(ranked)
    more = (1 - SUREST_ALONE) / rest
    return [
        replace(leading, probability=SUREST_ALONE),
        *(replace(cause, probability=cause.probability * more) for cause in ranked[1:]),
    ]


def with_traits(ranked: Sequence[Ranked], traits: Iterable[CauseEvidence]) -> list[Ranked]:
    """Return the ranking with the faults parted anew by what the traits of the run say of each.

    `healthy` and `unknown` keep their probabilities. Traits count where one of them leads, as far as all else names
    no fault: their bits are multiplied by the probability of the two. They never make a fault lead.
    """
    faults = [cause for cause in ranked if cause.id not in (SOUND, OTHER)]
    total = sum(fault.probability for fault in faults)
    of_cause = {cause_evidence.cause: cause_evidence for cause_evidence in traits}
    if not total or not of_cause or ranked[0].id not in (SOUND, OTHER):
        return list(ranked)
    bits = {fault.id: (1 - total) * of_cause[fault.id].bits if fault.id in of_cause else 0.0 for fault in faults}
    masses = {fault.id: fault.probability * 2 ** bits[fault.id] for fault in faults}
    part = total / sum(masses.values())
    if part * max(masses.values()) > ranked[0].probability:
        return list(ranked)
    parted = [
        replace(
            cause,
            probability=part * masses[cause.id],
            bits={**cause.bits, of_cause[cause.id].because: bits[cause.id]} if cause.id in of_cause else cause.bits,
        )
        if cause.id in masses
        else cause
        for cause in ranked
    ]
    return sorted(parted, key=lambda item: (-item.probability, item.id))


def _rests_on_two(evidence: Iterable[CauseEvidence]) -> bool:
    """Say whether two questions support a cause, or one thing that decides; its numbers are what all of them saw."""
    speaking = [
        cause_evidence
        for cause_evidence in evidence
        if cause_evidence.bits >= MIN_SPEAKING_BITS and cause_evidence.kind != "numbers"
    ]
    return len({cause_evidence.about or cause_evidence.because for cause_evidence in speaking}) > 1 or any(
        cause_evidence.kind in DECISIVE for cause_evidence in speaking
    )


def in_bits(item: Ranked, sign: int, absent: Collection[str]) -> list[str]:
    """Return what supports (+1) or contradicts (-1) a cause with its bits, strongest first, and what is `absent`."""
    weighed = sorted((bits, what) for what, bits in item.bits.items() if bits * sign > LEAST_SHOWN)
    return [
        f"{what}{' is absent' if what in absent else ''} ({bits:+.1f} bits)"
        for bits, what in (reversed(weighed) if sign > 0 else weighed)
    ]


# What findings say about causes, in bits: a noisy-OR per cause.
#
# For a cause c and a symptom s, with `frequency` how often c produces s and `background` how often s is seen with
# nothing wrong:
#
#     P(s | c)      = 1 - (1 - background) * (1 - frequency)
#     bits(present) = trust * log2(P(s | c) / background)
#     bits(absent)  = trust * log2(1 - frequency)
#     bits(unknown) = 0
#
# Symptoms are correlated: what three questions see may be one phenomenon. So each question has a trust of its own for
# what it sees, and what is absent one for all: weighted naive Bayes (Zaidi et al. 2013, "Alleviating naive Bayes
# attribute independence assumption by attribute weighting"), the weights fitted to make the right causes probable.
#
# A symptom that a cause does not list is one of which nobody said whether it produces it: it is taken to produce it as
# often as causes do on average, times `unlisted`. These bits are the same for all causes but those that list it, and
# for all but `healthy`; so they are told once, against `healthy`, and taken off those of the causes that list it.
#
# What is absent refutes only as far as it would have been seen. In a share of all runs, `missed`, a fault does not show
# in the log as it usually does, or not to these measurements; so all that is absent together says
#
# bits(all absent) = log2((1 - missed) * 2 ** (sum of their bits) + missed)
#
# and each of them its part of that.


SYMPTOM_WEIGHT = 0.85
"""Power to which the evidence of a symptom is raised, before a fit.

Chosen: symptoms of one run are correlated, as a spike of the loss and one of the gradient are.
"""

MAX_FREQUENCY = 0.97
"""No symptom always shows: its absence never rules a cause out."""


class Candidate(NamedTuple):
    """A cause as findings bear on it: its weight before any evidence, and how often it produces each symptom."""

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

    weight: float = SYMPTOM_WEIGHT
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


def bits(state: State, frequency: float, background: float, weight: float = SYMPTOM_WEIGHT) -> float:
    """Return how much a finding supports a cause that produces its symptom with this frequency, in bits."""
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
) -> list[CauseEvidence]:
    """Return what the findings, at most one per symptom, say about the causes."""
    judged = {finding.symptom: finding.state for finding in findings if finding.state is not State.UNKNOWN}
    present = [symptom for symptom, state in judged.items() if state is State.PRESENT]
    usual = {
        text: trust.unlisted * (math.fsum(cause.frequency.get(text, 0.0) for cause in candidates) / len(candidates))
        for text in present
    }
    of_any = {
        symptom: bits(State.PRESENT, often, background[symptom], trust.of(symptom, State.PRESENT)) if often else 0.0
        for symptom, often in usual.items()
    }
    evidence = []
    for cause in candidates:
        raw = {
            symptom: bits(state, max(often, usual.get(symptom, 0.0)), background[symptom], trust.of(symptom, state))
            for symptom, often in cause.frequency.items()
            if (state := judged.get(symptom)) is not None
        }
        left = _absent_bits_share(
            sum(much for symptom, much in raw.items() if judged[symptom] is State.ABSENT), trust.missed
        )
        net = {symptom: raw[symptom] - of_any[symptom] if symptom in of_any else raw[symptom] * left for symptom in raw}
        if cause.id == SOUND:
            net |= {symptom: -of_any[symptom] for symptom in of_any if of_any[symptom]}
        evidence += [CauseEvidence(cause.id, much, name, "finding", question_of(name)) for name, much in net.items()]
    return evidence


def question_of(symptom: str) -> str:
    """Return the question that a symptom of a run answers; one of a probe or a snapshot is asked for itself."""
    known = symptoms().get(symptom)
    return symptom if known is None else known.question.id


def _absent_bits_share(absent: float, missed: float) -> float:
    """Return which part is left of the bits of all that is absent, where a share of faults is missed."""
    return math.log2((1 - missed) * 2**absent + missed) / absent if absent < 0 else 1.0
