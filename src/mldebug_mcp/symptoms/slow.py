"""Progress that is slower than usual, and evaluations that creep below the loss of a guess."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.scale import comes_trained
from mldebug_mcp.measure.statistics import MAX_SAMPLE, blocks, monotone, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.symptoms.terms import refuse_new_terms
from mldebug_mcp.text import figure

LEAST, MOST = 0.005, 0.4
"""Progress as a share of the first level: below, there is none (`loss_plateau`); above, it is not slow."""
EVEN = 0.35
"""Share of the progress that falls into the later half of the training.

A learning curve bends: an exponential or a power law from its start has less than a quarter there, a straight line
a half.
"""
STRAIGHTER = 0.3
"""Times the progress beyond a tenth: so much more of it must fall into the later half before much of it is slow. Chosen
by hand."""
LEAST_STEPS = 100
"""A run of fewer steps has hardly begun: that it is slow yet says little."""
PACE = 1 / 1000
"""Of the first level, per step: a straight line to zero within a thousand steps is not slow: so the loss falls while a
rate that is not logged warms up. Chosen by hand."""
POINTS, EPOCHS = 20, 12
MOST_BY_EPOCHS, STRAIGHT, DOWN = 0.15, 0.6, 0.7
"""Means over epochs have little noise, so fewer tell: where no more than this is gained, along a straight line (no more
than the second in the later half: slow beginnings pick up), and so many of the epochs go down. Chosen by hand."""
CREEPING, BELOW, STEADY = 8, 0.004, -0.8
"""Evaluations of which the last is by so much below the loss of a guess, and their rank correlation with time: a fixed
set has no sampling noise from time to time. Chosen by hand."""
DROP = 0.6
"""From one record to the next: a drop of the rate, which no smooth decay makes before its last steps."""
EARLY = 0.05
"""The log must begin within this share of the run, or among its first 20 steps: later on every curve is straight."""


def slow(run: Run) -> Evidence | None:
    """Say whether the loss falls by little and as fast at the end as at the beginning.

    Raises CannotTell where the log does not show it.
    """
    refuse_new_terms(run)
    loss = _before_decay(run)
    few = len(loss) < POINTS
    if few and run.step_name != "epoch":
        raise CannotTell(f"loss has {len(loss)} values here; {POINTS} are needed where they are not means over epochs")
    if loss.step[0] > max(20.0, EARLY * run.last_step):
        raise CannotTell(f"the log begins at {run.step_name} {figure(float(loss.step[0]))}: the start is not known")
    if run.step_name == "step" and run.last_step < LEAST_STEPS:
        raise CannotTell(f"the run has {figure(run.last_step)} steps; {LEAST_STEPS} are needed to call it slow")
    stride = -(-len(loss) // MAX_SAMPLE)
    spent = _spent(run, loss.step[::stride])
    cut = blocks(loss.value, 20)
    at = spent[np.minimum(cut.first + len(loss) // (2 * len(cut.level)), len(loss) - 1) // stride]
    start, end = max(start_level(loss.value), float(cut.level[0])), float(cut.level[-2:].mean())
    fall = start - end
    most = MOST
    if run.step_name == "step" and "learning_rate" not in run:
        most = min(MOST, PACE * (float(loss.step[-1]) - float(loss.step[0])))
    if few:
        most = MOST_BY_EPOCHS if float((np.diff(loss.value) < 0).mean()) >= DOWN else 0.0
    if start <= 0 or fall <= 0 or fall < max(LEAST * start, 6 * cut.wobble) or fall > most * start:
        return None
    if float(loss.value[0]) - start > fall:
        return None  # most of the progress was made before the first records had a level: the curve has bent
    if comes_trained(run, start):
        raise CannotTell(
            f"the loss begins at {figure(start)}, far below that of a uniform guess: a model that knows something "
            "already may learn the rest slowly"
        )
    middle = float(np.interp(0.5 * spent[-1], at, cut.level))
    later = (middle - end) / fall
    if later < EVEN + STRAIGHTER * max(0.0, fall / start - 0.1) or later > (STRAIGHT if few else 1.0):
        return None
    step = float(loss.step[0])
    return Evidence(
        f"loss falls from {figure(start)} to {figure(end)} ({fall / start:.1%}) up to {run.step_name} "
        f"{figure(float(loss.step[-1]))}, {later:.0%} of it in the later half of the training",
        steps=(step,),
        values={"start": start, "end": end, "progress": fall / start, "share_in_later_half": later},
    )


def creeps_below(run: Run, chance: float) -> bool:
    """Say whether evaluation comes below the loss of a guess, step by step, while training falls along a straight line.

    Rows without a signal do not bring that about: their evaluation loss stays above, or comes to rest.
    """
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    if len(evaluation) < CREEPING or float(evaluation[-1]) >= (1 - BELOW) * chance or monotone(evaluation) > STEADY:
        return False
    try:
        return len(run["loss"].finite) >= EPOCHS and slow(run) is not None
    except CannotTell:
        return False


def _before_decay(run: Run) -> Series:
    """Return the loss up to where the rate has fallen in steps: what a drop of the rate brings is not slow progress."""
    loss = run["loss"].finite
    rate = run["learning_rate"].finite if "learning_rate" in run else None
    if rate is None or len(rate) < 3 or not len(loss):
        return loss
    drops = rate.value[1:] < DROP * rate.value[:-1]
    if not drops.any():
        return loss
    before = loss.step < rate.step[1 + int(np.argmax(drops))]
    least = EPOCHS if run.step_name == "epoch" else POINTS
    if before.sum() < least:
        raise CannotTell(f"the rate drops after {int(before.sum())} records; {least} are needed")
    return loss.where(before)


def _spent(run: Run, step: Floats) -> Floats:
    """Return the learning rate summed up to each of these steps, or their number where it is not logged, (n,)."""
    rate = run["learning_rate"].finite if "learning_rate" in run else None
    if rate is None or len(rate) < 3 or float(rate.value.max()) <= 0:
        return np.arange(1, len(step) + 1, dtype=np.float64)
    return np.cumsum(np.maximum(rate.interpolated(step), 0.0)) + 1e-30
