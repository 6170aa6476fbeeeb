"""The loss of evaluation beside the loss that training had when it was as accurate.

Both are losses of one model on rows of one kind, so that at one accuracy they are expected to be alike. Training that
is more accurate than evaluation by then may know its rows by heart, and is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.shares import as_shares
from mldebug_mcp.measure.statistics import median, median_of_three

NEAR = 0.03
"""Of accuracy: training this near is as accurate. Chosen: a batch of some hundred rows scatters so."""
FRESH = 0.04
"""Of accuracy: training that is better than evaluation by more may know its rows. Chosen: as `NEAR`, and a little."""
LEAST = 3
"""Evaluations, and training records for each. Chosen: their median then stands against one stray value."""


@dataclass(frozen=True, slots=True)
class LossAtAccuracy:
    """How many times the loss of training at the same accuracy an evaluation loss is.

    Args:
        times: That factor, the median over the evaluations.
        least: The smallest of them.
        count: How many evaluations are compared.
        step: Step of the first.
        loss, accuracy: Evaluation loss and accuracy, medians over them.
    """

    times: float
    least: float
    count: int
    step: float
    loss: float
    accuracy: float


def loss_at_accuracy(run: Run) -> LossAtAccuracy | None:
    """Return the factor, None where losses and accuracies of both do not stand beside each other often enough."""
    trained = _pair(run, "train")
    evaluated = _pair(run, "eval")
    if trained is None or evaluated is None:
        return None
    steps, loss, right = trained
    rows = []
    for step, held_out, accuracy in zip(*evaluated, strict=True):
        until = steps <= step
        now = right[until][-LEAST:]
        alike = loss[until & (np.abs(right - accuracy) <= NEAR)]
        if len(now) and median(now) <= accuracy + FRESH and len(alike) >= LEAST and median(alike) > 0:
            rows.append((step, held_out, accuracy, held_out / median(alike)))
    if len(rows) < LEAST:
        return None
    compared = np.array(rows)
    times = compared[:, 3]
    return LossAtAccuracy(
        times=median(times),
        least=float(times.min()),
        count=len(rows),
        step=float(compared[0, 0]),
        loss=median(compared[:, 1]),
        accuracy=median(compared[:, 2]),
    )


def _pair(run: Run, phase: str) -> tuple[Floats, Floats, Floats] | None:
    """Return steps, losses and accuracies where both stand, those of training as medians of three."""
    loss, accuracy = _of(run, phase, Quantity.LOSS), _of(run, phase, Quantity.ACCURACY)
    if loss is None or accuracy is None:
        return None
    steps, ours, theirs = np.intersect1d(loss.step, accuracy.step, return_indices=True)
    if len(steps) < LEAST:
        return None
    level, right = loss.value[ours], as_shares(accuracy.value)[theirs]
    return (steps, level, right) if phase == "eval" else (steps, median_of_three(level), median_of_three(right))


def _of(run: Run, phase: str, quantity: Quantity) -> Series | None:
    return next((one.finite for one in run.with_role(quantity, phase=phase) if len(one.finite)), None)
