"""Fit what all numbers of a run together say of causes: see `mldebug_mcp.judge.likeness`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from mldebug_mcp.judge.likeness import Likeness, as_bytes, between

KNOTS = 4
"""Quantiles of a number over the runs. Chosen: ten say no more of runs of authors whom the fit never saw, and six."""
LEAST_RUNS = 20
"""That hold a number."""
LEAST_AUTHORS = 2
"""That log what is looked at: what one alone logs is how that author writes."""
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
    names = known([(run.vector, run.author) for run in runs], LEAST_RUNS)
    knots = np.array([_knots(name, runs) for name in names], dtype=np.float32).reshape(-1, KNOTS)
    design = SCALE * design_of(runs, names, knots)
    counts = np.array([run.weight for run in runs], dtype=np.float32)
    shares, weights, bias = regression(
        design, right([run.causes for run in runs], causes), counts, smooth=SMOOTH, rounds=ROUNDS
    )
    return Likeness(tuple(causes), shares, tuple(names), knots, SCALE * weights, bias)


def regression(
    design: Floats | csr_matrix, right: NDArray[np.float64], counts: NDArray[Any], *, smooth: float, rounds: int
) -> tuple[Floats, Floats, Floats]:
    """Fit a multinomial logistic regression, in the precision of `counts`.

    Args:
        design: What each run holds, shape (runs, columns).
        right: How far each cause is right, shape (runs, causes).
        counts: What each run counts, shape (runs,).
        smooth: What the sum of squares of the weights costs, as runs.
        rounds: Of L-BFGS.

    Returns:
        The shares of the causes, shape (causes,); weights, shape (columns, causes); and the bias, shape (causes,).
    """
    counts = counts * (len(counts) / counts.sum())
    wanted = counts[:, None] * right.astype(counts.dtype)
    shares = wanted.sum(axis=0) / counts.sum()
    shape = (design.shape[1], right.shape[1])

    def cost(packed: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the cost of weights and bias, one after the other, and its slope."""
        weights, bias = _unpacked(packed, shape, wanted.dtype)
        logs = log_softmax(design @ weights + bias, axis=1)
        by_score = np.exp(logs) * counts[:, None] - wanted
        by_weight = design.T @ by_score + 2 * smooth * weights
        total = smooth * float((weights**2).sum()) - float((wanted * logs).sum())
        slope = np.concatenate([by_weight.ravel(), by_score.sum(axis=0)])
        return total / len(counts), slope.astype(np.float64) / len(counts)

    start = np.concatenate([np.zeros(shape[0] * shape[1]), np.log(shares + SMALLEST_SHARE)])
    options = {"maxiter": rounds, "maxcor": 8}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options=options).x
    weights, bias = _unpacked(found, shape, np.dtype(np.float32))
    return np.asarray(shares + SMALLEST_SHARE, dtype=np.float32), weights, bias


def _unpacked(
    packed: NDArray[np.float64], shape: tuple[int, int], precision: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return weights of this shape, and the bias that stands behind them."""
    rounded = packed.astype(precision)
    return rounded[: shape[0] * shape[1]].reshape(shape), rounded[shape[0] * shape[1] :]


def known(held_by: Sequence[tuple[Iterable[str], str]], least_runs: int) -> list[str]:
    """Return what enough runs hold, by several authors; each run comes with what it holds and its author.

    What one author alone logs is how that author writes.
    """
    authors: dict[str, list[str]] = {}
    for names, author in held_by:
        for name in names:
            authors.setdefault(name, []).append(author)
    many = min(LEAST_AUTHORS, len({author for _, author in held_by}))
    return sorted(name for name, of in authors.items() if len(of) >= least_runs and len(set(of)) >= many)


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


def right(of_runs: Sequence[Sequence[str]], causes: Sequence[str]) -> NDArray[np.float64]:
    """Return how far each cause is right for each run, whose right causes are given, the injected one first."""
    place = {cause: number for number, cause in enumerate(causes)}
    made = np.zeros((len(of_runs), len(causes)))
    for row, (injected, *others) in enumerate(of_runs):
        made[row, place[injected]] += OF_THE_INJECTED if others else 1.0
        for cause in others:
            made[row, place[cause]] += (1 - OF_THE_INJECTED) / len(others)
    return made


def write(model: Likeness, path: Path) -> None:
    """Write the model as the package reads it."""
    path.write_bytes(as_bytes(model))
