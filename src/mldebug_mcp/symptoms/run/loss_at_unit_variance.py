"""Squared error that stays at the variance of a standardised target."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import aligned, blocks, median
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 8
NEAR, STILL = 0.07, 0.04
"""How far from 1 the level may be, as the variance of some thousand rows is, and how far it moves in the later three
quarters."""
RATIO = (0.68, 0.9)
"""The mean absolute error over the root of the squared one: 0.71 for Laplace's distribution, 0.80 for a normal one,
0.87 for a uniform one. Beside it the loss is known to be a squared error. All chosen by hand."""
_ABSOLUTE = ("mae", "mean_absolute_error", "eval_mae", "eval_mean_absolute_error")
_SQUARED = ("mse", "mean_squared_error")


@symptom(
    needs=("loss",),
    points=LEAST,
    not_for=("grpo", "ppo", "rl", "preference", "pretraining", "sft"),
    background=0.003,
    follows=("loss_divergence", "loss_constant", "loss_plateau"),
    instead=NO_PROGRESS,
)
def loss_at_unit_variance(run: Run) -> Evidence | None:
    """A squared error is 1 nearly from the beginning to the end: that of a constant against a target of variance 1.

    Noise, which diffusion models predict, and standardised targets have a variance of 1, and zero, their mean, is then
    as good an answer. Not this when: it falls below; the loss is no squared error; the target is next to noise by its
    nature, as returns of stocks are.
    """
    loss = run["loss"].finite
    beside = _squared(run)
    if beside is None:
        raise CannotTell("nothing says that the loss is a squared error")
    later = loss.value[len(loss) // 4 :]
    level = blocks(later, 5).level
    if float(np.abs(level - 1).max()) > NEAR or float(np.ptp(level)) > STILL:
        return None
    return Evidence(
        f"loss is {figure(median(later))} over the later three quarters of {len(loss)} records{beside}: predicting the "
        "mean of a target with variance 1 has 1",
        steps=(float(loss.step[len(loss) // 4]),),
        values={"level": median(later), "lowest": float(level.min()), "highest": float(level.max())},
    )


def _squared(run: Run) -> str | None:
    """Return what says that the loss is a squared error, in words, or None if nothing does."""
    if run.kind == "diffusion":
        return ""
    for name in (one for one in _SQUARED if one in run):
        _, squared, loss = aligned(run[name].finite, run["loss"].finite)
        if len(loss) >= LEAST and bool(np.allclose(squared, loss, rtol=NEAR)):
            return ", and so is the mean squared error"
    for name in (one for one in _ABSOLUTE if one in run):
        beside = run["eval_loss"] if name.startswith("eval_") and "eval_loss" in run else run["loss"]
        _, absolute, squared = aligned(run[name].finite, beside.finite)
        if len(squared) < LEAST or median(squared) <= 0:
            continue
        if RATIO[0] <= median(absolute) / math.sqrt(median(squared)) <= RATIO[1]:
            return f" and {name} {figure(median(absolute))}"
    return None
