"""An evaluation loss that rises from its lowest, however little, while the training loss does not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.answers import still_gains, worst_written
from mldebug_mcp.measure.evaluation import beside_training, evaluation_losses, refuse_after_explosion, start_of
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import aligned, median, median_of_three, noise_on_slope
from mldebug_mcp.measure.unknown import CannotTell

LEAST_RISE = 0.01
"""Of the minimum: by so much it rises for good. Chosen: evaluation on a fixed set is nearly free of sampling noise from
time to time."""
SHARE_OF_START, SHARE_OF_START_OF_TOKENS = 0.03, 0.01
"""... and of the first evaluation loss, or what training began with where larger. Chosen: near zero a doubling is
nothing; small sets move by 3 % as the model wanders, means over many tokens by less."""
LEAST_FALL, FALL_OF_RISE = 0.02, 0.25
"""Means over epochs, one to an evaluation, are free of noise: a training loss that falls by less than the smaller of
these shares, of itself and of the rise, stands still, and rows are not learnt by heart so. Chosen: by hand."""
BELOW_TRAINING, TIMES_BELOW = 0.05, 2.0
"""An evaluation that stays below the training loss must rise by this share, and by so many times what counts else:
training then has noise of its own, of dropout or of a high rate, and the evaluation wanders with it. Chosen: by
hand."""
IN_A_ROW, SHARE_IN_A_ROW = 4, 0.008
"""After so many evaluations that each rise above the one before, this share of the first suffices. Chosen: noise would
turn back."""
LEARNS_ON, LEAST_LATE = 0.1, 4
"""Of the training loss at the lowest evaluation, by which it falls on; evaluations that tell their noise. Chosen: a
rise that goes on from one to the next, beside a training loss that goes on falling, is no scatter."""
OFTEN = 6
"""Records to an evaluation of which a median is taken. Chosen: fewer show how the training loss moved between."""
SLIGHT = 0.05
"""Of the minimum: a rise by less in the nats of tokens, up and down by turns, is not told. Most fine-tuning
over three epochs ends with one. Chosen: by hand."""
SMALL = 0.5
"""Of the minimum: a rise by less, while most of what is written out is right and still gets better, is of answers that
are surer than they should be. Chosen: by hand."""
WANDERS = 2.0
"""Times that by which it rose before and came back: evaluated at every step it goes up and down with the weights.
Chosen: by hand."""
LEAST_POINTS = 3
"""Finite values of an evaluation loss. Chosen: a minimum and two behind it."""
LEAST_OF_EXCERPT, MIDDLE = 6, 0.5
"""... unless the log begins in the later half of the run. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class EvalRise:
    """An evaluation loss that rises from its minimum.

    Args:
        name: What it is called.
        step: Where its minimum is.
        minimum: The minimum.
        last: Where it ends.
        train: The training loss at the minimum and at the end, None where it is not logged beside it.
        in_a_row: Whether each of several evaluations in a row is above the one before.
        gains: Whether what is written out still gets better.
        slight: Whether it rises by no more of the nats of tokens than sound fine-tuning ends with.
        rising, sets: How many of how many evaluation losses rise.
    """

    name: str
    step: float
    minimum: float
    last: float
    train: tuple[float, float] | None
    in_a_row: bool
    gains: bool
    slight: bool
    rising: int = 1
    sets: int = 1

    @property
    def relative(self) -> float:
        """The rise as a share of the minimum."""
        return (self.last - self.minimum) / abs(self.minimum) if self.minimum else math.nan


def rise_of_evaluation(run: Run) -> EvalRise | None:
    """Return how an evaluation loss rises, by however little; of several sets the one that rises most, if most do.

    Raises CannotTell where too few are logged, or what training does beside them is not known.
    """
    series = [one.finite for one in evaluation_losses(run) if len(one.finite) >= LEAST_POINTS]
    if not series:
        raise CannotTell(f"no evaluation loss has {LEAST_POINTS} finite values")
    refuse_after_explosion(run, series[0])
    found = [rise for one in series if (rise := _rise(run, one)) is not None]
    if not found or 2 * len(found) < len(series):
        return None
    return replace(max(found, key=lambda one: one.relative), rising=len(found), sets=len(series))


def _least(run: Run, evaluation: Series, lowest: float, *, in_a_row: bool) -> float:
    """Return by how much an evaluation must rise to be no chance.

    The lowest of n normal values lies about sqrt(2 ln n) - 0.5 below their mean, and the mean of the last two by chance
    1.4 above it, two of its own standard deviations.
    """
    first = abs(float(evaluation.value[0]))
    if in_a_row:
        return max(LEAST_RISE * abs(lowest), SHARE_IN_A_ROW * first)
    # Evaluation may begin when most of it is learnt.
    loss = run["loss"].finite if "loss" in run else None
    started = abs(start_of(run, loss)) if loss is not None and len(loss) else 0.0
    share = SHARE_OF_START_OF_TOKENS if predicts_tokens(run) or _learnt_on(run, evaluation) else SHARE_OF_START
    chance = (math.sqrt(2 * math.log(len(evaluation))) + 0.9) * _noise(evaluation.value)
    return max(LEAST_RISE * abs(lowest), share * max(first, started), chance)


def _noise(values: Floats) -> float:
    """Return the noise, of the later half where that is less: a steep beginning is no noise."""
    whole, later = noise_on_slope(values), values[len(values) // 2 :]
    return min(whole, noise_on_slope(later)) if len(later) >= LEAST_LATE else whole


def _learnt_on(run: Run, evaluation: Series) -> bool:
    """Say whether each evaluation behind the lowest is above the last, and the training loss falls on meanwhile."""
    best = int(np.argmin(evaluation.value))
    if "loss" not in run or len(evaluation) - best < LEAST_POINTS or (np.diff(evaluation.value[best:]) <= 0).any():
        return False
    steps, train, _ = aligned(run["loss"].finite, evaluation)
    train = train[steps >= evaluation.step[best]]
    return len(train) > 1 and float(train[-1]) < (1 - LEARNS_ON) * float(train[0])


def _rise(run: Run, evaluation: Series) -> EvalRise | None:
    best = int(np.argmin(evaluation.value))
    lowest, last, after = float(evaluation.value[best]), median(evaluation.value[-2:]), evaluation.value[best + 1 :]
    rise = last - lowest
    in_a_row = len(after) >= IN_A_ROW and bool((np.diff(evaluation.value[best:]) > 0).all())
    least = _least(run, evaluation, lowest, in_a_row=in_a_row)
    if rise <= 0 or rise < least or len(after) < 2:
        return None
    smooth = median_of_three(evaluation.value[: best + 1])
    if not in_a_row and rise < WANDERS * float(np.max(smooth - np.minimum.accumulate(smooth))):
        return None
    if best == 0 and len(evaluation) < LEAST_OF_EXCERPT and run.first_step > MIDDLE * run.last_step > 0:
        raise CannotTell("few evaluations from the middle of a run, the first the lowest: a lower one may come before")
    if best == 0 and "loss" not in run:
        raise CannotTell("the training loss is not logged beside an evaluation loss that only rises")
    train = _beside(run, evaluation, after, lowest + 0.5 * rise)
    if train is not None:
        at_best, half_way, at_end = train
        below = last < at_end and not in_a_row and rise < max(BELOW_TRAINING * abs(lowest), TIMES_BELOW * least)
        means = len(run["loss"].finite) < 2 * len(evaluation)
        stands = means and at_best - at_end < min(LEAST_FALL * abs(at_best), FALL_OF_RISE * rise)
        if max(at_end, half_way) > at_best + 0.5 * rise or below or stands:
            return None
    onset, wrong = float(evaluation.step[best]), worst_written(run)
    gains = wrong is not None and rise < SMALL * lowest and still_gains(wrong, onset)
    tokens = predicts_tokens(run) or run.kind == "unknown"
    slight = tokens and not in_a_row and not gains and rise < SLIGHT * abs(lowest)
    ends = None if train is None else (train[0], train[2])
    return EvalRise(evaluation.name, onset, lowest, last, ends, in_a_row, gains, slight)


def _beside(run: Run, evaluation: Series, after: Floats, half: float) -> tuple[float, float, float] | None:
    """Return the training loss at the minimum, where half of the rise is done, and at the end."""
    loss = run["loss"].finite if "loss" in run else None
    if loss is None:
        return None
    often = len(loss) >= OFTEN * len(evaluation)  # of single batches, whose noise would be taken for a rise
    before = (beside_training if often else aligned)(loss, evaluation)[1]
    if len(before) < len(after) + 1:
        return None
    half_way = int(np.argmax(after >= half)) - len(after)
    return float(before[-len(after) - 1]), float(before[half_way]), float(before[-1])
