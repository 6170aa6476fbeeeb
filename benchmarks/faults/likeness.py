"""Fit what all numbers of a run together say of causes: see `mldebug_mcp.judge.likeness`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from mldebug_mcp.judge.likeness import Likeness, as_bytes, between

KNOTS = 4
"""Quantiles of a number over the runs. Chosen: ten say no more of runs of authors whom the fit never saw, and six."""
LEAST_RUNS, LEAST_AUTHORS = 20, 2
"""That hold a number: what one author alone logs is how that author writes."""
OF_THE_INJECTED = 0.7
"""Share of a run that counts for the injected cause where others are right as well; they share the rest. Chosen."""
SMOOTH = 1.0
"""What the sum of squares of the weights costs, as runs. Chosen: from 0.5 to 3 all serve authors whom the fit never saw
as well."""
ROUNDS = 30
"""Of L-BFGS. Chosen: more fit the runs at hand and no other."""
SMALLEST_SHARE = 1e-3
"""Of a cause among the runs, below which it counts as no rarer."""
SCALE = 0.5
"""Of the design matrix: makes `SMOOTH` cost the same for numbers of each run."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Numbered:
    """The numbers of a run, the causes that are right (the injected one first), its author, and what it counts."""

    vector: Mapping[str, float]
    causes: tuple[str, ...]
    author: str
    weight: float


def fit_likeness(runs: Sequence[Numbered]) -> Likeness:
    """Return the model under which the causes of the runs are most probable, weights held small."""
    causes = sorted({cause for run in runs for cause in run.causes})
    names = _known_names(runs)
    knots = np.array([_knots(name, runs) for name in names], dtype=np.float32).reshape(-1, KNOTS)
    design = SCALE * design_of(runs, names, knots)
    right = _right(runs, causes)
    counts = np.array([run.weight for run in runs], dtype=np.float32)
    counts *= len(runs) / counts.sum()
    wanted = counts[:, None] * right
    shares = wanted.sum(axis=0) / counts.sum()
    shape = (design.shape[1], len(causes))

    def cost(packed: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the cost of weights and bias, one after the other, and its slope."""
        weights, bias = _unpacked(packed, shape)
        logs = log_softmax(design @ weights + bias, axis=1)
        by_score = np.exp(logs) * counts[:, None] - wanted
        by_weight = design.T @ by_score + 2 * SMOOTH * weights
        total = SMOOTH * float((weights**2).sum()) - float((wanted * logs).sum())
        slope = np.concatenate([by_weight.ravel(), by_score.sum(axis=0)])
        return total / len(runs), slope.astype(np.float64) / len(runs)

    start = np.concatenate([np.zeros(shape[0] * shape[1]), np.log(shares + SMALLEST_SHARE)])
    options = {"maxiter": ROUNDS, "maxcor": 8}
    weights, bias = _unpacked(minimize(cost, start, jac=True, method="L-BFGS-B", options=options).x, shape)
    return Likeness(
        tuple(causes), np.asarray(shares + SMALLEST_SHARE, dtype=np.float32), tuple(names), knots, SCALE * weights, bias
    )


def _unpacked(packed: NDArray[np.float64], shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return weights of this shape, and the bias that stands behind them."""
    single = packed.astype(np.float32)
    return single[: shape[0] * shape[1]].reshape(shape), single[shape[0] * shape[1] :]


def _known_names(runs: Sequence[Numbered]) -> list[str]:
    held = Counter(name for run in runs for name in run.vector)
    authors = Counter(name for name, _ in {(name, run.author) for run in runs for name in run.vector})
    many = min(LEAST_AUTHORS, len({run.author for run in runs}))
    return sorted(name for name, count in held.items() if count >= LEAST_RUNS and authors[name] >= many)


def _knots(name: str, runs: Sequence[Numbered]) -> Floats:
    values = [run.vector[name] for run in runs if name in run.vector]
    return np.quantile(values, np.linspace(0, 1, KNOTS)).astype(np.float32)


def design_of(runs: Sequence[Numbered], names: Sequence[str], knots: Floats) -> Floats:
    """Return how near each number of each run is to each of its knots, shape (runs, names * knots)."""
    number = {name: place for place, name in enumerate(names)}
    made = np.zeros((len(runs), len(names) * KNOTS), dtype=np.float32)
    for row, run in enumerate(runs):
        held = np.array([number[name] for name in run.vector if name in number], dtype=np.int64)
        values = np.array([value for name, value in run.vector.items() if name in number])
        low, share = between(knots[held], values)
        made[row, (low + (held * KNOTS)[:, None]).ravel()] += share.ravel()
    return made


def _right(runs: Sequence[Numbered], causes: Sequence[str]) -> Floats:
    place = {cause: number for number, cause in enumerate(causes)}
    made = np.zeros((len(runs), len(causes)), dtype=np.float32)
    for row, run in enumerate(runs):
        injected, *others = run.causes
        made[row, place[injected]] += OF_THE_INJECTED if others else 1.0
        for cause in others:
            made[row, place[cause]] += (1 - OF_THE_INJECTED) / len(others)
    return made


def write(model: Likeness, path: Path) -> None:
    """Write the model as the package reads it."""
    path.write_bytes(as_bytes(model))
