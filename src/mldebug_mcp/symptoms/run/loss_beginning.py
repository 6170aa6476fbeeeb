"""Do the first steps make the training loss worse than it was?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.beginning import PASSES, is_late
from mldebug_mcp.measure.evaluation import evaluation_stands
from mldebug_mcp.measure.quality import as_shares
from mldebug_mcp.measure.statistics import blocks, mad, median, median_of_three, noise, positive, relative_noise
from mldebug_mcp.measure.terms import refuse_new_terms
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

FACTOR, FACTOR_OF_ONE = 1.25, 1.4
"""Times the first record: two records of the beginning, or a single one in a short log. Chosen: noise goes less far."""
SIGMAS, SIGMAS_ON_LOG = 8.0, 6.0
"""Standard deviations of the later noise, as it is and on the logarithm. Fitted: 2 in 1000 simulated healthy runs."""
ABOVE_ALL, HIGH_START = 1.15, 1.5
"""Times everything after the first third, unless the first record is so many times that. Chosen: else it is low."""
SHORT, LEAST_WINDOW, MOST_WINDOW = 100, 6, 39
"""Records of a short log, and the fewest and most that are its beginning. Chosen: a twelfth of the log within them."""
NEARLY_ZERO = 1e-4
"""Chosen: a loss that comes down to this within a warmup is gone, which other outcomes tell."""
RISE, RISE_SIGMAS, STEEPER = 0.25, 6.0, 1.5
"""Of the lowest loss, standard deviations of the noise, and times the rate there. Chosen: batches move it less."""
LEAST_OF_WARMUP, LAST = 8, 3
"""Records of the warmup, and those that are its end. Chosen: fewer show no course."""
HIGH, LEAST_HIGH = 1.4, 3
"""Times the first level, and records that lie there. Chosen: an untrained model guesses; far worse is wrong."""
QUIET, FIRST = 0.15, 5
"""Share to within which twice as many records agree, and how many are the first. Chosen: else their level is not
known."""
MIDDLE, WIDE, STRETCH = 0.2, 8, 1.15
"""Share of the steps after which a log begins trained, stretches that it is cut into, and times the start that one lies
at. Chosen: single batches are no trend."""
FAR = 6.0
"""Standard deviations that a record is away, or times that the first ones are quieter. Chosen: noise is one level."""
EPOCHS, ABOVE, DONE = 6, 1.05, 0.85
"""Means over epochs, how far the later ones lie above the first, and an accuracy with nothing left to gain. Chosen:
means have little noise."""


def loss_jumps_at_start(run: Run) -> Evidence | None:
    """The training loss leaps far above its first record within the first records, and comes down from there.

    Not this when: the first record is low by noise; the loss climbs over a longer stretch (`loss_hump`).
    """
    loss = run["loss"].finite
    values, count = loss.value, len(loss)
    first, later = float(values[0]), values[count // 3 :]
    beginning = values[1 : 1 + min(MOST_WINDOW, max(LEAST_WINDOW, count // 12))]
    top = float(beginning.max())
    # On the logarithm, the noise of a loss near zero is larger than that of the level where the leap is.
    spread = min(relative_noise(later), relative_noise(values[: count // 3])) if positive(values) else 0.0
    if first <= 0 or top - first < SIGMAS * noise(later) or top < first * (1 + SIGMAS_ON_LOG * spread):
        return None
    high = np.flatnonzero(beginning > FACTOR * first)
    above_all = len(high) >= 2 and np.sort(beginning)[-2] > ABOVE_ALL * later.max()
    enough = len(high) >= (1 if count < SHORT else 2)
    from_high = enough and top > FACTOR_OF_ONE * first > FACTOR_OF_ONE * HIGH_START * median(later)
    if not above_all and not from_high:
        return None
    at = float(loss.step[1 + int(beginning.argmax())])
    rate = run["learning_rate"].at(at) if "learning_rate" in run else None
    beside = f"; the learning rate there is {figure(rate)}" if rate is not None else ""
    return Evidence(
        f"loss leaps from {figure(first)} at {run.place(loss.step[0])} to {figure(top)} at "
        f"{run.place(at)} and comes down from there{beside}",
        steps=(float(loss.step[1 + int(high[0])]),),
        values={"first": first, "highest": top, "factor": top / first, "records": float(len(high))},
    )


def loss_rises_in_warmup(run: Run) -> Evidence | None:
    """The training loss falls while the learning rate is small, and climbs as warmup takes the rate to its peak.

    Not this when: there is no warmup, or it is too short to see; the climb is within the noise.
    """
    rate, loss = run["learning_rate"].finite, run["loss"].finite
    top = int(np.argmax(rate.value))
    warmup = loss.between(float(rate.step[0]), float(rate.step[top]))
    if rate.value[0] > rate.value[top] / STEEPER or len(warmup) < LEAST_OF_WARMUP:
        raise CannotTell(f"no warmup of {LEAST_OF_WARMUP} records or more is logged")
    level = median_of_three(warmup.value)
    low, end = int(np.argmin(level[:-LAST])), median(warmup.value[-LAST:])
    lowest = float(level[low])
    at_low, at_end = (rate.at(float(warmup.step[at])) or 0.0 for at in (low, -1))
    small = end - lowest < max(RISE * abs(lowest), RISE_SIGMAS * noise(warmup.value))
    if small or lowest <= NEARLY_ZERO or at_end < STEEPER * at_low:
        return None
    onset = float(warmup.step[low])
    return Evidence(
        f"loss rises from {figure(lowest)} at {run.place(onset)}, where the learning rate is {figure(at_low)}, to "
        f"{figure(end)} at {run.place(warmup.step[-1])}, where warmup has taken it to {figure(at_end)}",
        steps=(onset,),
        values={"lowest": lowest, "end": end, "rate_at_lowest": at_low, "rate_at_end": at_end},
    )


def loss_above_start(run: Run) -> Evidence | None:
    """Several records of the training loss lie far above the first ones, or no later epoch is as low as the first.

    Not this when: the first records vary widely; single batches stand out; the log begins trained; accuracy rises.
    """
    refuse_new_terms(run)
    loss = run["loss"].finite
    whole = run.step_name == "epoch" and bool(np.all(np.diff(loss.step) == 1))
    if whole or run.kind == "boosting":
        return _above_first_epoch(run, loss)
    start = median(loss.value[:FIRST])
    if len(loss) < SHORT // 4 or start <= 0:
        raise CannotTell(f"loss has {len(loss)} finite values here; {SHORT // 4} are needed")
    # A falling start is not noise: the noise is what is left of a straight line.
    if noise(loss.value[: 2 * FIRST]) > QUIET * start or float(np.ptp(loss.value[:FIRST])) > start:
        raise CannotTell("the first records of the loss vary too widely to be a level")
    high = np.flatnonzero(loss.value[FIRST:] > HIGH * start) + FIRST
    if len(high) < LEAST_HIGH:
        return None
    if evaluation_stands(run):
        raise CannotTell("the evaluation loss stands still, so what rises here is noise of the batches")
    if not _stays_high(loss.value, start):
        return None
    if is_late(run, float(loss.step[0]), MIDDLE, 0) and float(blocks(loss.value, WIDE).level.max()) < STRETCH * start:
        raise CannotTell(f"the log begins at {run.place(loss.step[0])}: its start is no beginning")
    onset = float(loss.step[high[0]])
    return Evidence(
        f"{len(high)} of {len(loss)} records of the loss lie above {figure(HIGH * start)}, up to "
        f"{figure(loss.value.max())}, from {run.place(onset)} on; the first ones are around {figure(start)}",
        steps=(onset,),
        values={"start": start, "highest": float(loss.value.max()), "records": float(len(high))},
    )


def _stays_high(values: Floats, start: float) -> bool:
    """Say whether a stretch is high, and not single batches or records that scatter around one level."""
    level = float(blocks(values).level.max())
    edges = np.flatnonzero(np.diff(values > HIGH * start, prepend=False, append=False))
    if level < STRETCH * start and int((edges[1::2] - edges[::2]).max(initial=0)) < LEAST_HIGH:
        return False
    far = float(values.max()) >= median(values) + FAR * mad(values)
    return far or level >= HIGH * start or noise(values) >= FAR * float(np.std(values[:FIRST], ddof=1))


def _above_first_epoch(run: Run, loss: Series) -> Evidence | None:
    """Compare the means of all later epochs or rounds with the first, in which the model was still untrained."""
    if len(loss) < EPOCHS or loss.step[0] > PASSES:
        raise CannotTell(f"the log begins at {run.place(loss.step[0])}, or has few records")
    first, later = float(loss.value[0]), loss.value[1:]
    if first <= 0 or float(later.min()) < first or median(later) < ABOVE * first:
        return None
    right = as_shares(run["accuracy"].finite.value) if "accuracy" in run else np.empty(0)
    if len(right) and (right[-1] > DONE or right[-1] > 2 * right[0]):
        return None
    beside = f"; accuracy goes from {figure(right[0])} to {figure(right[-1])}" if len(right) else ""
    return Evidence(
        f"loss is {figure(first)} in {run.place(loss.step[0])}, and between "
        f"{figure(later.min())} and {figure(later.max())} in all {len(later)} records after it{beside}",
        steps=(float(loss.step[1]),),
        values={"first": first, "lowest": float(later.min()), "median": median(later)},
    )


ask_in_turn(
    "loss_beginning",
    reading(
        loss_jumps_at_start,
        needs=("loss",),
        sources=("axolotl_stability",),
        points=20,
        background=0.004,
        follows=("loss_hump", "loss_nonfinite"),
    ),
    reading(
        loss_rises_in_warmup,
        needs=("loss", "learning_rate"),
        points=12,
        not_for=("preference",),
        background=0.005,
        follows=("loss_divergence", "loss_drops_to_zero", "loss_nonfinite", "loss_zero"),
    ),
    reading(
        loss_above_start,
        needs=("loss",),
        sources=("karpathy_recipe",),
        points=EPOCHS,
        background=0.01,
        instead=("loss_divergence", "loss_hump"),
        follows=("loss_pattern_by_epoch", "loss_spike_single", "loss_rises"),
    ),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl"),
)
