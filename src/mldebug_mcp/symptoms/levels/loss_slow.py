"""Progress that is slower than usual, and evaluations that creep below the loss of a guess."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.scale import comes_trained
from mldebug_mcp.measure.statistics import MAX_SAMPLE, blocks, monotone, start_level
from mldebug_mcp.measure.terms import refuse_new_terms
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

LEAST, MOST = 0.005, 0.4
"""Progress as a share of the first level. Chosen: below there is none (`loss_plateau`), above it is not slow."""
SIGMAS = 6.0
"""Times the noise of levels that progress must be. Chosen: as for a loss that turns."""
EVEN = 0.35
"""Share of the progress in the later half of the training. Chosen: an exponential or a power law has less than a
quarter there, a straight line a half."""
STRAIGHTER, BEYOND = 0.3, 0.1
"""... and so much more of it for each part of progress beyond the second. Chosen: much progress is hardly slow."""
LEAST_STEPS, PACE = 100, 1 / 1000
"""Steps of a run, and share of the first level per step where no rate is logged. Chosen: a warmup bends a curve up."""
POINTS, EPOCHS = 20, 12
"""Records, or means of epochs, which have little noise. Chosen: as many as tell a line from a curve."""
MOST_BY_EPOCHS, STRAIGHT, DOWN = 0.15, 0.6, 0.7
"""Most progress, share of it in the later half, and epochs that go down, of few epochs. Chosen: a straight line."""
CREEPING, BELOW, STEADY = 8, 0.004, -0.8
"""Evaluations, share below a guess, rank correlation with time. Chosen: a fixed set has no noise of sampling."""
DROP = 0.6
"""Times the rate of the record before. Chosen: no smooth decay falls so before its last steps."""
EARLY, FIRST = 0.05, 20.0
"""Share of the run, and steps, within which the log begins. Chosen: later on every curve is straight."""
NEAR_MEAN, LITTLE, QUARTER = 0.05, 0.25, 0.15
"""R² of answers that say hardly more than the mean of the targets, what little was learnt by the end at most, and the
share of it that came in the later half. Chosen: what learns at its pace is done, or beyond."""
NOTHING = 1e-30
"""Chosen: a rate of zero spends nothing, and something must be divided by."""


def loss_slow(run: Run) -> Evidence | None:
    """The training loss falls by little and, by the learning rate spent, as fast at the end as at the beginning.

    Not this when: the curve bends; the model knows something already; the log is an excerpt; there is no progress.
    """
    refuse_new_terms(run)
    if (by_score := _by_score(run)) is not None:
        return by_score
    loss = _before_decay(run)
    few = len(loss) < POINTS
    _refuse_short(run, loss, few=few)
    cut = blocks(loss.value, 20)
    start, end = max(start_level(loss.value), float(cut.level[0])), float(cut.level[-2:].mean())
    fall = start - end
    if start <= 0 or fall < max(LEAST * start, SIGMAS * cut.wobble) or fall > _most(run, loss, few=few) * start:
        return None
    if float(loss.value[0]) - start > fall:
        return None  # most of the progress was made before the first records had a level: the curve has bent
    if comes_trained(run, start):
        raise CannotTell(
            f"the loss begins at {figure(start)}, far below that of a uniform guess: a model that knows something "
            "already may learn the rest slowly"
        )
    stride = -(-len(loss) // MAX_SAMPLE)
    spent = _spent(run, loss.step[::stride])
    at = spent[np.minimum(cut.first + len(loss) // (2 * len(cut.level)), len(loss) - 1) // stride]
    later = (float(np.interp(spent[-1] / 2, at, cut.level)) - end) / fall
    if later < EVEN + STRAIGHTER * max(0.0, fall / start - BEYOND) or later > (STRAIGHT if few else 1.0):
        return None
    return Evidence(
        f"loss falls from {figure(start)} to {figure(end)} ({fall / start:.1%}) up to {run.place(loss.step[-1])}, "
        f"{later:.0%} of it in the later half of the training",
        steps=(float(loss.step[0]),),
        values={"start": start, "end": end, "progress": fall / start, "share_in_later_half": later},
    )


def _by_score(run: Run) -> Evidence | None:
    """Return what R² says that begins at that of the mean of the targets and rises step by step, not far."""
    for logged in run.with_role(Quantity.R2, phase="eval"):
        score = logged.finite
        value = score.value
        if len(value) < CREEPING or value[0] > NEAR_MEAN or not value[0] + BELOW < value[-1] <= LITTLE:
            continue
        if monotone(value) >= -STEADY and value[-1] - value[len(value) // 2] > QUARTER * (value[-1] - value[0]):
            return Evidence(
                f"{logged.name} rises from {figure(value[0])} to {figure(value[-1])} over "
                f"{len(value)} evaluations, step by step to the end at {run.place(score.step[-1])}",
                steps=(float(score.step[0]),),
                values={"start": float(value[0]), "end": float(value[-1])},
            )
    return None


def _refuse_short(run: Run, loss: Series, *, few: bool) -> None:
    if few and run.step_name != "epoch":
        raise CannotTell(f"loss has {len(loss)} values here; {POINTS} are needed where they are not means over epochs")
    if loss.step[0] > max(FIRST, EARLY * run.last_step):
        raise CannotTell(f"the log begins at {run.place(loss.step[0])}: the start is not known")
    if run.step_name == "step" and run.last_step < LEAST_STEPS:
        raise CannotTell(f"the run has {figure(run.last_step)} steps; {LEAST_STEPS} are needed to call it slow")


def _most(run: Run, loss: Series, *, few: bool) -> float:
    """Return the most progress that is slow, as a share of the first level."""
    if few:
        return MOST_BY_EPOCHS if float((np.diff(loss.value) < 0).mean()) >= DOWN else 0.0
    if run.step_name == "step" and "learning_rate" not in run:
        return min(MOST, PACE * (float(loss.step[-1]) - float(loss.step[0])))
    return MOST


def creeps_below(run: Run, chance: float) -> bool:
    """Say whether evaluation comes below the loss of a guess, step by step, while training falls along a straight line.

    Rows without a signal do not bring that about: their evaluation loss stays above, or comes to rest.
    """
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    if len(evaluation) < CREEPING or float(evaluation[-1]) >= (1 - BELOW) * chance or monotone(evaluation) > STEADY:
        return False
    try:
        return len(run["loss"].finite) >= EPOCHS and loss_slow(run) is not None
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
    return np.cumsum(np.maximum(rate.interpolated(step), 0.0)) + NOTHING
