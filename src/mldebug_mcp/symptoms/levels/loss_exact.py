"""Losses that are exactly, or by their size alone, what no sound training gives: zero, below it, huge, clipped."""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.quality import ACCURACIES
from mldebug_mcp.measure.scale import predicts_tokens, uniform_loss
from mldebug_mcp.measure.statistics import end_level, last_decimal, median, noise, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

HUGE = 1e15
"""Chosen: squared errors of prices that nobody scaled come to some 1e12."""
NEARLY_ZERO = 1e-4
"""Chosen: no real data are fitted to this cross-entropy within the first tenth of a run."""
EARLY, MOSTLY = 0.1, 0.5
"""Share of the records by which it is zero, and of those from there on. Chosen: learning takes longer."""
AT_ONCE = 0.05
"""Of the loss at the start: what it comes from. Chosen: from less it may have come down by learning, and rounding."""
LEAST_MOVE, LEAST_GUESS = 0.05, 0.1
"""By this share of its highest a small loss of its own units moves; below the second no cross-entropy begins.

Chosen: a seventh of ln 2."""
LAST_DIGITS = 2.5
"""Units of the last decimal from which a loss is not rounded to zero. Chosen: progress of a record is less."""
SHORT, FROM_SHORT = 10, 0.5
"""In fewer records a single zero is enough, from this share of the start. Chosen: excerpts are cut to show it."""
BELOW = 0.1
"""Share of the records below zero. Chosen: single ones may be of a regulariser."""
BEYOND_NOISE = 2.0
"""Standard deviations of its noise that a loss has to fall. Chosen: that of a policy crosses zero all the time."""
RUNAWAY, UNBENT = 20.0, 0.4
"""Times its first size, and share of the fall in the later half, of a loss that has no bound. Chosen: a straight line
has half of it there, an exponential a quarter."""
LEAST = 3
"""First records that are a level. Chosen: single ones scatter."""
_OVERLAP = re.compile(r"dice|iou|jaccard", re.IGNORECASE)
_VARIANCE = re.compile(r"(?:^|[_/.])(?:log_?)?(?:sigma|var(?:iance)?)(?:[_/.\d]|$)", re.IGNORECASE)
"""Names of what scales an error and is learnt with it: the logarithm of it is in the loss."""


def loss_huge(run: Run) -> Evidence | None:
    """A finite loss is so large that its numbers are near overflow, or made of uninitialised memory.

    Not this when: targets of a regression are large and nobody scaled them. One record is enough.
    """
    loss = _finite(run)
    huge = np.abs(loss.value) >= HUGE
    if not huge.any():
        return None
    at = int(np.argmax(np.abs(loss.value)))
    top = float(loss.value[at])
    return Evidence(
        f"loss is {figure(top)} at {run.place(loss.step[at])}",
        steps=(float(loss.step[int(np.argmax(huge))]),),
        values={"largest": top, "records": float(np.count_nonzero(huge))},
    )


def loss_drops_to_zero(run: Run) -> Evidence | None:
    """The training loss is well above zero, and exactly zero from the next record on, as filtered NaN are printed.

    Not this when: it is zero from the first record, or may be rounded; the gradient norm stays above zero.
    """
    loss = run["loss"]
    zero = loss.value == 0
    zeros = int(np.argmin(zero[::-1])) if not zero.all() else len(zero)
    short = zeros < 2
    if not zeros or zeros == len(zero) or (short and len(zero) >= SHORT):
        return None
    last = len(zero) - zeros - 1
    before, start = float(loss.value[last]), float(loss.value[0])
    if not np.isfinite(before) or abs(before) < (FROM_SHORT if short else AT_ONCE) * abs(start):
        return None
    if abs(before) < LAST_DIGITS * last_decimal(loss.value):
        raise CannotTell(f"the loss stands at {figure(before)} in its last decimal before: it may be rounded to zero")
    first = float(loss.step[last + 1])
    if "grad_norm" in run and bool(np.any(run["grad_norm"].finite.between(first, run.last_step).value > 0)):
        raise CannotTell("the gradient norm is above zero where the loss reads zero")
    return Evidence(
        f"loss is {figure(before)} at {run.place(loss.step[last])}, exactly 0 at {figure(first)} "
        f"and in all {counted(zeros, 'record')} from there on",
        steps=(first,),
        values={"before": before, "zeros": float(zeros)},
    )


def loss_zero(run: Run) -> Evidence | None:
    """The training loss is zero, or nearly, from early on, and did not get there by learning.

    Not this when: it falls record by record; margins of preferences are so wide; it has small units of its own.
    """
    loss = _finite(run)
    if len(loss) == 1 and not _no_gradient(run):
        raise CannotTell("a single loss was logged")
    zero = np.abs(loss.value) < NEARLY_ZERO
    start = int(np.argmax(zero))
    share = float(zero[start:].mean())
    if not zero.any() or start > max(1, EARLY * len(loss)) or share < MOSTLY:
        return None
    if start > 2 and loss.value[:start].min() < AT_ONCE * median(loss.value[:LEAST]):
        return None
    if (not start or loss.value[0] < LEAST_GUESS) and _has_its_own_units(run, loss):
        raise CannotTell("the loss is small and never zero: squares of small numbers are, which are no cross-entropy")
    first = float(loss.step[start])
    if run.kind == "preference" and _is_told_apart(run, first):
        return None
    return Evidence(
        f"loss is {figure(loss.value[start])} at {run.place(first)} and below {NEARLY_ZERO:g} in "
        f"{share:.0%} of the records from there on",
        steps=(first,),
        values={"share": share, "median": median(loss.value[start:])},
    )


def _no_gradient(run: Run) -> bool:
    return "grad_norm" in run and not bool(np.any(run["grad_norm"].finite.value > 0))


def _is_cross_entropy(run: Run) -> bool:
    """Say whether the settings or an accuracy make the loss one of classes or tokens."""
    return predicts_tokens(run) or uniform_loss(run) is not None or any(name in run for name in ACCURACIES)


def _has_its_own_units(run: Run, loss: Series) -> bool:
    """Say whether a loss moves above zero throughout, and nothing shows that it is one of classes or tokens."""
    moves = float(np.ptp(loss.value)) > LEAST_MOVE * float(loss.value.max()) and float(loss.value.min()) > 0
    return moves and not _is_cross_entropy(run) and run.kind in ("unknown", "supervised")


def _is_told_apart(run: Run, step: float) -> bool:
    """Say whether the pairs of a preference run are told apart so well that the loss, -log sigmoid(margin), is zero."""
    margin = run["rewards/margins"].finite.at(step) if "rewards/margins" in run else None
    return margin is not None and margin > -math.log(NEARLY_ZERO)


def loss_negative(run: Run) -> Evidence | None:
    """The training loss is negative where it must be a cross-entropy, or falls below zero without a bound.

    Not this when: the curve bends, as that of a log-density or of decibels does; a variance is learnt with the rest;
    the loss stays above -20 beside a Dice.
    """
    loss = run["loss"].finite
    below = loss.value < 0
    if below.mean() < BELOW:
        return None
    first, half = float(loss.step[int(np.argmax(below))]), len(loss) // 2
    start, middle, end = start_level(loss.value), start_level(loss.value[half:]), end_level(loss.value)
    masks = any(_OVERLAP.search(name) for name in run.series)
    bound = RUNAWAY * (1.0 if masks else max(1.0, abs(float(loss.value[0]))))
    fallen = start - end
    goes_on = end < 0 and fallen > BEYOND_NOISE * noise(loss.value) and middle - end > UNBENT * fallen
    learnt_with_it = any(_VARIANCE.search(name) for name in run.series)
    endless = (goes_on and not learnt_with_it) or end < -bound
    wrong = endless or _is_cross_entropy(run)
    return Evidence(
        f"loss is below zero from {run.place(first)} on, in {below.mean():.0%} of the records; the lowest "
        f"is {figure(loss.value.min())}{'' if wrong else ': a log-density or a ratio in decibels may be'}",
        steps=(first,),
        values={"share": float(below.mean()), "lowest": float(loss.value.min()), "start": start, "end": end},
        present=bool(wrong),
    )


def _finite(run: Run) -> Series:
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    return loss
