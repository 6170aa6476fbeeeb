"""How far each question is trusted: what makes the right causes of labelled runs most probable.

The ranking adds up bits. Here the bits of each question are multiplied by a trust of its own, and those of what is
absent by one for all, which are fitted by gradient descent on the logarithm of the probability of the right causes.
Nothing of the ranking is written anew but the sum: the bits are those that `weigh` gives with a trust of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mldebug_mcp.diagnose.calibrate import MISSED, UNLISTED
from mldebug_mcp.diagnose.ranking import Evidence
from mldebug_mcp.diagnose.weighing import Candidate, Trust, weigh
from mldebug_mcp.models import Finding, State

PLAIN = Trust(1.0, 0.0, UNLISTED)
"""With which bits are told as they are."""
STEPS, RATE = 120, 0.05
"""Of Adam. Chosen: the loss does not move any more."""
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

    start: torch.Tensor
    seen: torch.Tensor
    absent: torch.Tensor
    right: torch.Tensor
    weight: float


def weighed(
    causes: Sequence[Candidate],
    found: Sequence[Finding],
    background: dict[str, float],
    told: Iterable[Evidence],
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
    start = np.array([math.log2(cause.prior) for cause in causes], dtype=np.float32)
    seen = np.zeros((len(causes), len(questions)), dtype=np.float32)
    absent, labels = np.zeros(len(causes), dtype=np.float32), np.zeros(len(causes), dtype=np.float32)
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
    return Weighed(
        torch.from_numpy(start), torch.from_numpy(seen), torch.from_numpy(absent), torch.from_numpy(labels), weight
    )


def fit_trust(runs: Sequence[Weighed], questions: Sequence[str]) -> Trust:
    """Return the trust under which the right causes of the runs are most probable."""
    start, seen, absent, right = (
        torch.stack([getattr(run, name) for run in runs]) for name in ("start", "seen", "absent", "right")
    )
    weights = torch.tensor([run.weight for run in runs])
    weights = weights / weights.sum()
    every, apart = torch.zeros(2, requires_grad=True), torch.zeros(len(questions), requires_grad=True)
    optimizer = torch.optim.Adam([every, apart], lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        gone = torch.exp(every[1]) * absent
        left = torch.log2((1 - MISSED) * torch.exp2(gone) + MISSED)
        scores = start + seen @ torch.exp(every[0] + apart) + left
        of_right = (torch.softmax(scores * math.log(2), dim=-1) * right).sum(dim=-1)
        loss = -(weights * torch.log(of_right.clamp_min(LEAST))).sum() + TIED * (apart**2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    one, of_absent = (round(float(number), 3) for number in torch.exp(every.detach()))
    each = torch.exp((every[0] + apart).detach()).tolist()
    powers = {question: round(power, 3) for question, power in zip(questions, each, strict=True)}
    return Trust(one, MISSED, UNLISTED, of_absent, powers)
