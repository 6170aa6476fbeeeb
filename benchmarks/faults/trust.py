"""How far each question is trusted: what makes the right causes of labelled runs most probable.

The ranking adds up bits. Here the bits of each question are multiplied by a trust of its own, and those of what is
absent by one for all, which are fitted by gradient descent on the logarithm of the probability of the right causes.
Nothing of the ranking is written anew but the sum: the bits are those that `weigh` gives with a trust of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from benchmarks.faults.counts import MISSED, UNLISTED
from mldebug_mcp.judge.ranking import Candidate, CauseEvidence, Trust, weigh
from mldebug_mcp.models import Finding, State

Floats = NDArray[np.float64]
PLAIN = Trust(1.0, 0.0, UNLISTED)
"""With which bits are told as they are."""
TIED = 0.01
"""How strongly the questions are held to one trust: times the sum of the squares of their logarithms' differences from
it. Chosen: among 0.003 to 0.03 it had most causes first in runs of authors that it was not fitted on."""
LEAST = 1e-3
"""Probability below which a right cause counts no less. Chosen: so that a wrong label does not decide."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """The bits of a run, with counts of other runs.

    Args:
        start: Bits of each cause before any finding, shape (causes,).
        seen: What each question sees, shape (causes, questions).
        absent: All that is absent, shape (causes,).
        right: Whether a cause is right, shape (causes,).
        weight: What the run counts.
    """

    start: Floats
    seen: Floats
    absent: Floats
    right: Floats
    weight: float


def weighed(
    causes: Sequence[Candidate],
    found: Sequence[Finding],
    background: Mapping[str, float],
    told: Iterable[CauseEvidence],
    *,
    questions: Sequence[str],
    right: Iterable[str],
    weight: float,
) -> Weighed:
    """Return the bits of a run for each cause.

    Args:
        causes: The causes with frequencies that were counted on other runs.
        found: Its findings, as they count in the ranking.
        background: How often a healthy run shows each symptom.
        told: What is known beside the findings; what is about one of the questions counts as seen by it.
        questions: All of them, in order.
        right: The causes that are right.
        weight: What the run counts.
    """
    place = {cause.id: number for number, cause in enumerate(causes)}
    column = {question: number for number, question in enumerate(questions)}
    start = np.array([math.log2(cause.prior) for cause in causes])
    seen = np.zeros((len(causes), len(questions)))
    absent, labels = np.zeros(len(causes)), np.zeros(len(causes))
    states = {finding.symptom: finding.state for finding in found}
    for one in weigh(causes, found, background, PLAIN):
        if states[one.because] is State.ABSENT:
            absent[place[one.cause]] += one.bits
        else:
            seen[place[one.cause], column[one.about]] += one.bits
    for one in told:
        if one.cause in place and one.about in column:
            seen[place[one.cause], column[one.about]] += one.bits
        elif one.cause in place:
            start[place[one.cause]] += one.bits
    labels[[place[cause] for cause in right if cause in place]] = 1.0
    return Weighed(start, seen, absent, labels, weight)


def fit_trust(runs: Sequence[Weighed], questions: Sequence[str]) -> Trust:
    """Return the trust under which the right causes of the runs are most probable."""
    start, seen, absent, right = (
        np.stack([getattr(run, name) for run in runs]) for name in ("start", "seen", "absent", "right")
    )
    weights = np.array([run.weight for run in runs])
    weights = weights / weights.sum()

    def cost(logarithms: Floats) -> tuple[float, Floats]:
        """Return the cost of the logarithms of powers (of all, of what is absent, of each question), and its slope."""
        every, of_absent, apart = logarithms[0], math.exp(logarithms[1]), logarithms[2:]
        powers, gone = np.exp(every + apart), of_absent * absent
        left = np.log2((1 - MISSED) * np.exp2(gone) + MISSED)
        logs = log_softmax((start + seen @ powers + left) * math.log(2), axis=1)
        of_right = (np.exp(logs) * right).sum(axis=1)
        counted = np.where(of_right > LEAST, weights / np.maximum(of_right, LEAST), 0.0)[:, None]
        by_score = -math.log(2) * counted * np.exp(logs) * (right - of_right[:, None])
        by_power = powers * np.einsum("rc,rcq->q", by_score, seen)
        kept = (1 - MISSED) * np.exp2(gone) / ((1 - MISSED) * np.exp2(gone) + MISSED)
        slope = np.array([by_power.sum(), (by_score * kept * gone).sum(), *(by_power + 2 * TIED * apart)])
        return -(weights * np.log(np.maximum(of_right, LEAST))).sum() + TIED * (apart**2).sum(), slope

    found = minimize(cost, np.zeros(2 + len(questions)), jac=True, method="L-BFGS-B").x
    one, of_absent = (round(float(number), 3) for number in np.exp(found[:2]))
    powers = {
        question: round(float(power), 3)
        for question, power in zip(questions, np.exp(found[0] + found[2:]), strict=True)
    }
    return Trust(one, MISSED, UNLISTED, of_absent, powers)
