"""An evaluation loss that rises from its lowest, however little, while the training loss does not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.answers import still_gains, worst_written
from mldebug_mcp.measure.evaluation import evaluation_losses, refuse_after_explosion, start_of
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import aligned, median, median_of_three, noise_on_slope
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

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


def is_slight(run: Run, rise: Evidence) -> bool:
    """Say whether a rise of evaluation is by so little of the nats of tokens that sound fine-tuning ends so."""
    lasting = rise.values["in_a_row"] or not rise.present
    may_be_tokens = predicts_tokens(run) or run.kind == "unknown"
    return may_be_tokens and not lasting and rise.values["relative_rise"] < SLIGHT


def rise_of_evaluation(run: Run) -> Evidence | None:
    """Return what is seen of an evaluation loss that rises, by however little."""
    series = [one.finite for one in evaluation_losses(run)]
    series = [one for one in series if len(one) >= LEAST_POINTS]
    if not series:
        raise CannotTell(f"no evaluation loss has {LEAST_POINTS} finite values")
    refuse_after_explosion(run, series[0])
    found = [evidence for one in series if (evidence := _rise(run, one)) is not None]
    if len(series) == 1 or not found:
        return found[0] if found else None
    if 2 * len(found) < len(series):
        return None
    worst = max(found, key=lambda evidence: evidence.values["relative_rise"])
    return replace(worst, summary=f"{len(found)} of {len(series)} evaluation losses rise; {worst.summary}")


def _chance(count: int) -> float:
    """Return how many standard deviations the last of so many evaluations stand above the lowest by chance.

    The lowest of n normal values lies about sqrt(2 ln n) - 0.5 below their mean, and the mean of the last two by chance
    1.4 above it, two of its own standard deviations.
    """
    return math.sqrt(2 * math.log(count)) + 0.9


def _wandered(before: Floats) -> float:
    """Return by how much the evaluation has risen, and come back, on its way to its minimum."""
    smooth = median_of_three(before)
    return float(np.max(smooth - np.minimum.accumulate(smooth)))


def _rise(run: Run, evaluation: Series) -> Evidence | None:
    """Return what is seen of one evaluation loss, or None if it does not rise."""
    best = int(np.argmin(evaluation.value))
    lowest, last = float(evaluation.value[best]), median(evaluation.value[-2:])
    after = evaluation.value[best + 1 :]
    rise = last - lowest
    in_a_row = len(after) >= IN_A_ROW and bool((np.diff(evaluation.value[best:]) > 0).all())
    share = SHARE_OF_START_OF_TOKENS if predicts_tokens(run) else SHARE_OF_START
    first = abs(float(evaluation.value[0]))
    least = max(
        LEAST_RISE * abs(lowest),
        SHARE_IN_A_ROW * first if in_a_row else share * max(first, _start_of_training(run)),
        0.0 if in_a_row else _chance(len(evaluation)) * noise_on_slope(evaluation.value),
    )
    if rise <= 0 or rise < least or len(after) < 2:
        return None
    if not in_a_row and rise < WANDERS * _wandered(evaluation.value[: best + 1]):
        return None
    if best == 0 and len(evaluation) < LEAST_OF_EXCERPT and run.first_step > MIDDLE * run.last_step > 0:
        raise CannotTell("few evaluations from the middle of a run, the first the lowest: a lower one may come before")
    train = ""
    if "loss" in run:
        _, before, _ = aligned(run["loss"].finite, evaluation)
        if len(before) >= len(after) + 1:
            at_best, at_end = float(before[-len(after) - 1]), float(before[-1])
            half_way = int(np.argmax(after >= lowest + 0.5 * rise)) - len(after)
            if max(at_end, float(before[half_way])) > at_best + 0.5 * rise:
                return None
            if last < at_end and not in_a_row and rise < max(BELOW_TRAINING * abs(lowest), TIMES_BELOW * least):
                return None
            means = len(run["loss"].finite) < 2 * len(evaluation)
            if means and at_best - at_end < min(LEAST_FALL * abs(at_best), FALL_OF_RISE * rise):
                return None
            train = f", while the training loss goes from {figure(at_best)} to {figure(at_end)}"
    elif best == 0:
        raise CannotTell("the training loss is not logged beside an evaluation loss that only rises")
    onset = float(evaluation.step[best])
    wrong = worst_written(run)
    gains = wrong is not None and rise < SMALL * lowest and still_gains(wrong, onset)
    return Evidence(
        f"{evaluation.name} rises from its minimum {figure(lowest)} at {run.step_name} {figure(onset)} to "
        f"{figure(last)}{train}" + (", yet what is written out still gets better" if gains else ""),
        steps=(onset,),
        values={
            "minimum": lowest,
            "last": last,
            "relative_rise": rise / abs(lowest) if lowest else float("nan"),
            "in_a_row": in_a_row,
        },
        present=not gains,
    )


def _start_of_training(run: Run) -> float:
    """Return what the training loss began with, 0 if none is logged: evaluation may begin when most of it is learnt."""
    return abs(start_of(run, run["loss"].finite)) if "loss" in run and len(run["loss"].finite) else 0.0
