"""The loss that a loop logs beside the mean cross-entropy that a recorder worked out of the same outputs and labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.looks import LEAST, Seen
from mldebug_mcp.measure.statistics import aligned, median
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import figure

ONCE, TWICE, SHIFTED = "recomputed/once", "recomputed/twice", "recomputed/shifted"
"""As a recording names it: of the outputs as logits, of their softmax as logits, of the next label."""
SMALL = 1e-4
"""A cross-entropy below this tells no factor. Chosen: it is rounded to seven digits."""
TINY = 1e-12
"""What stands for a factor of nothing. Chosen: that it can be divided by is all that is needed."""
SAME = 0.03
"""Part of a loss by which two are the same. Chosen: the mean over a part of a batch's rows is a little off."""
CLOSER = 5.0
"""Times by which one is nearer to the loss than another. Chosen: where all rows count it is the same to six digits."""
TIMES = 1.5
"""Times the mean cross-entropy. Chosen: two micro-batches that are summed make 2."""
UNLIKE = 0.3
"""Part of the mean cross-entropy. Chosen: label smoothing and weights of classes are off by less, most of the time."""


class Beside(NamedTuple):
    """A logged loss over another one, look by look.

    Args:
        factor: The median.
        off: The median distance from that factor, as a share of it.
        from_one: The median distance from 1.
        looks: How many there are.
        first: The step of the first.
    """

    factor: float
    off: float
    from_one: float
    looks: int
    first: float


def multiplied(run: Run) -> Seen | None:
    """Return that the loss is at all looks the same multiple of the cross-entropy."""
    beside = loss_beside(run)
    if beside.factor < TIMES or beside.off > SAME:
        return None
    said = f"the loss is {figure(beside.factor)} times the mean cross-entropy of the outputs, at {beside.looks} looks"
    return Seen(said, (beside.first,), {"factor": beside.factor, "looks": beside.looks})


def softmax_twice(run: Run) -> Seen | None:
    """Return that the loss is that of a second softmax, and not that of the outputs."""
    once, twice = loss_beside(run), loss_beside(run, TWICE)
    if twice.from_one > SAME or once.from_one < max(SAME, CLOSER * twice.from_one):
        return None
    said = f"the loss is that of a second softmax at {once.looks} looks, and {once.from_one:.0%} off that of one"
    return Seen(said, (once.first,), {"off": once.from_one, "looks": once.looks})


def unlike_outputs(run: Run) -> Seen | None:
    """Return that the loss is far from the cross-entropy, and no multiple of it."""
    beside = loss_beside(run)
    if beside.from_one < UNLIKE:
        return None
    said = f"the loss is now more, now less than {figure(beside.factor)} times the mean cross-entropy of the outputs"
    return Seen(said, (beside.first,), {"factor": beside.factor, "off": beside.from_one, "looks": beside.looks})


def loss_beside(run: Run, name: str = ONCE) -> Beside:
    """Return the loss over what was worked out anew; of two alignments of the labels over that which fits better.

    Raises:
        CannotTell: no recorder saw outputs and labels often enough.
    """
    names = [one for one in ((ONCE, SHIFTED) if name == ONCE else (name,)) if one in run and "loss" in run]
    found = [one for each in names if (one := _beside(run, each)) is not None]
    if not found:
        raise CannotTell(f"no recorder saw the outputs of the model and labels {LEAST} times")
    return min(found, key=lambda one: one.off)


def _beside(run: Run, name: str) -> Beside | None:
    steps, logged, anew = aligned(run["loss"].finite, run[name].finite)
    told = anew > SMALL
    if np.count_nonzero(told) < LEAST:
        return None
    ratios: Floats = logged[told] / anew[told]
    factor = median(ratios)
    off = median(np.abs(ratios - factor)) / max(abs(factor), TINY)
    return Beside(factor, off, median(np.abs(ratios - 1)), int(told.sum()), float(steps[told][0]))
