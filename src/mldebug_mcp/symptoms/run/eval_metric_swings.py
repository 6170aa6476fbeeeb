"""An evaluation that goes from good to bad and back, again and again."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.symptoms.quality import ACCURACIES, as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import end_level, median, positive, start_level
from mldebug_mcp.text import figure

LEAST = 8
"""Evaluations, of which the later half is judged: batch normalisation makes sound runs flicker at first."""
CHANGE = 0.12
"""Typical change of an accuracy from one evaluation to the next. Over twenty rows, four in five right, it is 0.08."""
FACTOR = 2.0
"""Typical change of a loss. Of benchmarks/faults only runs at a hundred times a good learning rate come there."""
RANDOM = 0.4
"""Half the mean squared change over the variance, as in `eval_metric_flickers`: a trend has less."""
BOTH_WAYS = 2
"""Such changes up, and such changes down: a metric that gets better by leaps goes one way."""
GONE = 0.05
"""Of where training began: a loss below it may double for nothing. All were chosen by hand."""


@symptom(
    needs=("loss",),
    any_of=("eval_accuracy", "eval_loss"),
    not_for=("grpo", "ppo", "rl", "preference", "boosting"),
    whole_run=True,
    background=0.004,
    follows=("loss_divergence", "loss_nonfinite", "loss_noisy", "loss_never_below_first"),
    instead=("eval_tokens_flicker",),
)
def eval_metric_swings(run: Run) -> Evidence | None:
    """From one evaluation to the next much of what was right goes wrong or comes back, while the training loss falls.

    The accuracy of evaluation typically changes by 0.12 or more throughout the later half of the run, or without one
    the loss by a factor of two. Not this when: it settles in the later half; the training loss swings as well; only a
    score over a few rows moves, by a few rows.
    """
    name = next((one for one in (ACCURACIES[0], "eval_loss") if one in run and len(run[one].finite) >= LEAST), None)
    if name is None:
        raise CannotTell(f"neither an accuracy nor a loss of evaluation has {LEAST} finite values")
    series, loss = run[name].finite, run["loss"].finite.value
    value = series.value
    if name == ACCURACIES[0]:
        value, curve, least = as_shares(value), as_shares(value), CHANGE
    elif positive(value) and median(value) > GONE * start_level(loss) > 0:
        curve, least = np.log(value), math.log(FACTOR)
    else:
        return None
    later = slice(len(curve) // 2, None)
    change = np.diff(curve[later])
    typical = median(np.abs(change))
    if min(np.sum(change > least), np.sum(change < -least)) < BOTH_WAYS:
        return None
    if typical < least or _randomness(curve[later]) < RANDOM or end_level(loss) >= start_level(loss):
        return None
    if _swings(loss[len(loss) // 2 :]):
        return None
    return Evidence(
        f"{name} lies between {figure(float(value[later].min()))} and {figure(float(value[later].max()))} in the later "
        f"half of {len(value)} evaluations, without a trend, while the training loss goes from "
        f"{figure(start_level(loss))} to {figure(end_level(loss))}",
        steps=(float(series.step[later][0]),),
        values={"typical_change": typical, "lowest": float(value[later].min()), "highest": float(value[later].max())},
    )


def _swings(trained: Floats) -> bool:
    """Say whether the training loss changes by large factors too, beside its trend."""
    if not positive(trained):
        return False
    change = np.diff(np.log(trained))
    return median(np.abs(change - median(change))) > math.log(FACTOR) / 2


def _randomness(curve: Floats) -> float:
    variance = float(np.var(curve))
    return float(np.mean(np.diff(curve) ** 2)) / (2 * variance) if variance else 0.0
