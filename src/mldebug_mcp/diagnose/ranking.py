"""The ranking: a noisy-OR per cause, one fault at a time, with `healthy` and `unknown` as rivals.

For a cause c and a symptom s, with `frequency` how often c produces s and `background` how often s is seen with
nothing wrong:

    P(s | c)      = 1 - (1 - background) * (1 - frequency)
    bits(present) = weight * log2(P(s | c) / background)
    bits(absent)  = weight * log2(1 - frequency)
    bits(unknown) = 0
    score(c)      = sharpness * (log2(prior(c)) + sum of bits);        probability = 2 ** score, normalised

This is Bayes' rule (with `weight` and `sharpness` 1) over all symptoms: those that a cause does not produce have
P(s | c) = background, which cancels between causes, so only the listed ones count. `weight` below 1 tempers the
evidence, because symptoms are correlated. `sharpness` is what is known as temperature scaling: it changes no order, and
makes the probability of the leading cause match how often it is right.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mldebug_mcp.models import Finding, State

WEIGHT = 0.85
"""Symptoms of one run are correlated: a spike of the loss and one of the gradient are not independent.

Chosen by hand.
"""

MAX_FREQUENCY = 0.97
"""No symptom always shows: its absence never rules a cause out."""

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cause as the ranking sees it.

    Args:
        id: The cause.
        prior: Its weight before any evidence; weights need not sum to 1.
        frequency: How often it produces each symptom that it lists, between 0 and 1.
        told: What else speaks for it (positive) or against it (negative), in bits, by what says so: the outcome of a
            check, or a setting that differs from that of a good run.
    """

    id: str
    prior: float
    frequency: Mapping[str, float]
    told: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A cause as ranked.

    Args:
        id: The cause.
        probability: Its probability.
        bits: By finding, how much that speaks for it (positive) or against it (negative), in bits.
    """

    id: str
    probability: float
    bits: Mapping[str, float]


def bits(state: State, frequency: float, background: float, weight: float = WEIGHT) -> float:
    """Return how much a finding speaks for a cause that produces its symptom with this frequency, in bits."""
    frequency = min(frequency, MAX_FREQUENCY)
    if state is State.PRESENT:
        return weight * math.log2((1 - (1 - background) * (1 - frequency)) / background)
    if state is State.ABSENT:
        return weight * math.log2(1 - frequency)
    return 0.0


def rank(
    candidates: Sequence[Candidate],
    findings: Sequence[Finding],
    background: Mapping[str, float],
    weight: float = WEIGHT,
    sharpness: float = 1.0,
) -> list[Ranked]:
    """Return the candidates with their probabilities, most probable first; the probabilities sum to 1.

    Args:
        candidates: The causes, `healthy` and `unknown` among them.
        findings: At most one per symptom.
        background: How often a healthy run shows each symptom.
        weight: Power to which the evidence is raised.
        sharpness: Power to which the probabilities are raised before they are made to sum to 1.
    """
    states = {finding.symptom: finding.state for finding in findings}
    evidence = [
        {
            symptom: bits(states[symptom], frequency, background[symptom], weight)
            for symptom, frequency in candidate.frequency.items()
            if symptom in states and states[symptom] is not State.UNKNOWN
        }
        | dict(candidate.told)
        for candidate in candidates
    ]
    scores = [
        sharpness * (math.log2(candidate.prior) + sum(said.values()))
        for candidate, said in zip(candidates, evidence, strict=True)
    ]
    highest = max(scores)
    masses = [2 ** (score - highest) for score in scores]
    total = sum(masses)
    ranked = [
        Ranked(candidate.id, mass / total, said)
        for candidate, mass, said in zip(candidates, masses, evidence, strict=True)
    ]
    return sorted(ranked, key=lambda item: (-item.probability, item.id))


def in_bits(item: Ranked, sign: int, absent: Collection[str]) -> list[str]:
    """Return what speaks for (+1) or against (-1) a cause, with its bits, strongest first.

    Args:
        item: The cause as ranked.
        sign: +1 or -1.
        absent: The symptoms that were found absent, which is then said of them.
    """
    said = sorted((bits, what) for what, bits in item.bits.items() if bits * sign > LEAST_SHOWN)
    return [
        f"{what}{' is absent' if what in absent else ''} ({bits:+.1f} bits)"
        for bits, what in (reversed(said) if sign > 0 else said)
    ]
