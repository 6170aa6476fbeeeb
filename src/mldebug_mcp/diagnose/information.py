"""How much would an observation tell? Expected bits, by the model of `ranking`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from mldebug_mcp.diagnose.weighing import MAX_FREQUENCY, Candidate
from mldebug_mcp.logs.run import Floats

MAX_SYMPTOMS = 8
"""Symptoms that are taken together: 256 ways in which they can turn out."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What an observation is expected to tell.

    Args:
        bits: By how much it lowers the entropy of the hypotheses on average.
        moves: By how much it moves the probability of each hypothesis on average, shape (hypotheses,).
    """

    bits: float
    moves: Floats


@dataclass(frozen=True, slots=True)
class Likelihood:
    """What the ranking knows of causes and symptoms.

    Args:
        candidates: The causes with their frequencies, by id.
        background: How often a healthy run shows each symptom.
        weight: Power to which the evidence is raised.
    """

    candidates: Mapping[str, Candidate]
    background: Mapping[str, float]
    weight: float

    def worth(self, shares: Mapping[str, float], unknown: Sequence[str]) -> Worth:
        """Return how much these symptoms would tell, for hypotheses of these probabilities."""
        chances = np.array([[self._chance(cause, symptom) for symptom in unknown] for cause in shares])
        return worth(list(shares.values()), chances, self.weight)

    def _chance(self, cause: str, symptom: str) -> float:
        frequency = min(self.candidates[cause].frequency.get(symptom, 0.0), MAX_FREQUENCY)
        return 1 - (1 - self.background[symptom]) * (1 - frequency)


def entropy(shares: Sequence[float] | Floats) -> Floats:
    """Return the entropy of probabilities that sum to 1 over the last axis, in bits."""
    share = np.asarray(shares, dtype=np.float64)
    return np.asarray(-np.sum(share * np.log2(np.where(share > 0, share, 1.0)), axis=-1))


def worth(shares: Sequence[float], chances: Floats, weight: float = 1.0) -> Worth:
    """Return how much some symptoms would tell.

    Args:
        shares: Probability of each hypothesis, shape (hypotheses,); they are made to sum to 1.
        chances: Probability of each symptom under each hypothesis, shape (hypotheses, symptoms). Of more than
            `MAX_SYMPTOMS` those that differ most between hypotheses are taken.
        weight: Power to which the evidence is raised, as in `weighing.weigh`.
    """
    before = np.asarray(shares, dtype=np.float64)
    before = before / before.sum()
    if chances.shape[1] > MAX_SYMPTOMS:
        spread = np.sqrt(before) @ np.abs(chances - before @ chances)
        chances = chances[:, np.argsort(-spread)[:MAX_SYMPTOMS]]
    outcomes = np.array(list(product((True, False), repeat=chances.shape[1])))
    likely = np.where(outcomes[:, None, :], chances, 1 - chances).prod(axis=2)  # (outcomes, hypotheses)
    after = before * likely**weight
    after /= np.maximum(after.sum(axis=1, keepdims=True), 1e-300)
    how_often = likely @ before
    bits = float(entropy(before) - how_often @ entropy(after))
    return Worth(max(0.0, bits), how_often @ np.abs(after - before))
