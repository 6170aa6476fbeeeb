"""What all numbers of a run together say of causes: how like they are to those of trained runs with each of them.

A multinomial logistic regression over the numbers of `checks.course`, each as a line through a few knots, so that no
number decides by a limit. `likeness.npz` holds it; `python -m benchmarks.faults fit` fits it with the findings,
and with it how far it is trusted:

    bits(c) = trust * (log2 P(c | numbers) - EVEN * log2 P(c))

where P(c) is the share of the cause among the trained runs: how often a fault was injected does not make it suspect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.course import COMPARED, vector_of
from mldebug_mcp.checks.progress import has_finished
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.judge.calibration import fitted
from mldebug_mcp.judge.ranking import CauseEvidence
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.kinds import plan_of

Floats = NDArray[np.float32]
LIKENESS_FILE = Path(__file__).parent / "likeness.npz"
ABOUT = "likeness"
"""What stands for this among the questions whose trust is fitted."""
EVEN = 0.5
"""Power of the share of a cause that is taken off. Chosen: with less faults, with more healthy runs of authors whom the
fit never saw are named less often."""
RESULTS = frozenset(f"{phase}{quantity}: last / first" for quantity in COMPARED for phase in ("", "eval "))
"""A log holds at least one of these: without the course of a result there is nothing to be like."""
MIN_RECORDS = 12
"""Records of a run that is not known to be over from which its numbers count in full. Chosen: healthy runs of policies
were accused after five records, by their numbers alone, in one of ten cases; with this, in one of a hundred."""
OTHER_STATISTICS = "other statistics of the curves"
"""How this evidence is named in answers: no single number decides."""


@dataclass(frozen=True)
class Likeness:
    """The fitted model.

    Args:
        causes: The causes that runs were trained with, `healthy` among them.
        shares: Their shares among these runs, shape (causes,).
        names: The numbers that are looked at.
        knots: Values of each, ascending, shape (names, knots).
        weights: What a number at a knot adds to the logarithm of each cause, shape (names * knots, causes).
        bias: What stands there before any number, shape (causes,).
    """

    causes: tuple[str, ...]
    shares: Floats
    names: tuple[str, ...]
    knots: Floats
    weights: Floats
    bias: Floats

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def bits(self, vector: Mapping[str, float]) -> dict[str, float]:
        """Return how much the numbers of a run support each cause, with a trust of one."""
        names = [name for name in vector if name in self._number]
        number = np.array([self._number[name] for name in names], dtype=np.int64)
        values, knots = np.array([vector[name] for name in names]), self.knots[number]
        row, share = between(knots, values)
        row += (number * self.knots.shape[1])[:, None]
        adds = np.einsum("nk,nkc->nc", share, self.weights[row])
        adds -= adds.mean(axis=1, keepdims=True)
        scores = self.bias + adds.sum(axis=0)
        highest = float(scores.max())
        logs = scores - highest - math.log(float(np.exp(scores - highest).sum()))
        bits = (logs - EVEN * np.log(self.shares)) / math.log(2)
        return dict(zip(self.causes, map(float, bits), strict=True))


def between(knots: Floats, values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Floats]:
    """Return between which two knots values lie and how near to each, both of shape (values, 2).

    The knots of each value ascend, shape (values, knots); what lies beyond them counts as at the end.
    """
    clipped = np.clip(values, knots[:, 0], knots[:, -1]).astype(np.float32)
    low = np.clip((knots <= clipped[:, None]).sum(axis=1) - 1, 0, knots.shape[1] - 2)
    rows = np.arange(len(values))
    start, width = knots[rows, low], knots[rows, low + 1] - knots[rows, low]
    part = np.divide(clipped - start, width, out=np.zeros_like(clipped), where=width > 0)
    return np.stack([low, low + 1], axis=1), np.stack([1 - part, part], axis=1)


def evidence_from_classifier(run: Run) -> list[CauseEvidence]:
    """Return what the numbers of a run say about causes, besides its findings."""
    trust = fitted().with_findings.questions.get(ABOUT, 0.0) * _share_done(run)
    return evidence_by_model(shipped(), vector_of(run), trust)


def _share_done(run: Run) -> float:
    """Return how much of a run its log holds, from 0 to 1: the model was fitted on whole runs."""
    if has_finished(run):
        return 1.0
    plan = plan_of(run)
    if plan is not None:
        return 1.0 if plan.is_done else min(1.0, plan.reached / plan.planned)
    return min(1.0, max((len(series) for series in run.series.values()), default=0) / MIN_RECORDS)


def evidence_by_model(model: Likeness, vector: Mapping[str, float], trust: float) -> list[CauseEvidence]:
    """Return what numbers say of causes, in bits multiplied by `trust`; nothing where no result has a course."""
    if not trust or not has_a_course(vector):
        return []
    return [
        CauseEvidence(cause, trust * bits, OTHER_STATISTICS, "numbers", ABOUT)
        for cause, bits in model.bits(vector).items()
    ]


def has_a_course(vector: Mapping[str, float]) -> bool:
    """Say whether a result is among the numbers that has more than a few records."""
    return not RESULTS.isdisjoint(vector)


@lru_cache(maxsize=1)
def shipped() -> Likeness:
    """Return the model that ships with the package."""
    with np.load(LIKENESS_FILE, allow_pickle=False) as arrays:
        return Likeness(
            tuple(arrays["causes"].tolist()),
            arrays["shares"],
            tuple(arrays["names"].tolist()),
            arrays["knots"],
            arrays["weights"].astype(np.float32) * arrays["scale"],
            arrays["bias"],
        )
