"""By how much the training loss falls where one pass over the data ends and the next begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.pass_profile import UNKNOWN_EPOCHS, epochs_of
from mldebug_mcp.measure.statistics import median, noise
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import counted

LEAST_PER_EPOCH, SIDE = 8, 3
"""Records of an epoch, and on either side of its boundary. Chosen: a median of fewer is noise."""
CUT = 0.67
"""Times the rate before. Chosen: step schedules cut it by a half or more."""


@dataclass(frozen=True, slots=True)
class PassSteps:
    """The loss at the boundaries of passes.

    Args:
        step: Where each pass after the first begins, shape (n,).
        before: The level before each boundary, shape (n,).
        drop: By how much the level falls across it, shape (n,).
        level: The typical level before a boundary.
        error: Standard error of a drop.
        fall: How far the loss falls since the middle of the first pass.
        rate_is_cut: Whether the learning rate falls by a third or more at most of the boundaries.
    """

    step: Floats
    before: Floats
    drop: Floats
    level: float
    error: float
    fall: float
    rate_is_cut: bool


def pass_steps(run: Run) -> PassSteps:
    """Compare the levels on both sides of each boundary; CannotTell where passes are not known, or hold few records."""
    loss = run["loss"].finite
    bounds, side = _boundaries(run)
    before = np.array([median(loss.value[max(0, at - side) : at]) for at in bounds])
    after = np.array([median(loss.value[at : at + side]) for at in bounds])
    return PassSteps(
        step=loss.step[bounds],
        before=before,
        drop=before - after,
        level=median(before),
        error=noise(loss.value[side:]) * float(np.sqrt(np.pi / side)),
        fall=median(loss.value[2 * side : 3 * side]) - median(loss.value[-side:]),
        rate_is_cut=_rate_is_cut(run, loss.step[bounds]),
    )


def _boundaries(run: Run) -> tuple[NDArray[np.int64], int]:
    """Return the records that begin an epoch, with enough on both sides, and how many of these are compared."""
    loss = run["loss"].finite
    epoch = epochs_of(run, loss)
    if epoch is None:
        raise CannotTell(UNKNOWN_EPOCHS)
    bounds = np.flatnonzero(np.diff(epoch) > 0) + 1
    if not len(bounds):
        raise CannotTell("the log does not reach a second epoch")
    length = int(median(np.diff(np.concatenate([[0], bounds])))) if len(bounds) > 1 else int(bounds[0])
    bounds = bounds[(bounds >= LEAST_PER_EPOCH) & (bounds <= len(loss) - max(SIDE, LEAST_PER_EPOCH // 2))]
    if length < LEAST_PER_EPOCH or not len(bounds):
        raise CannotTell(f"about {counted(length, 'record')} per epoch; {LEAST_PER_EPOCH} are needed")
    return bounds, max(SIDE, length // 4)


def _rate_is_cut(run: Run, steps: Floats) -> bool:
    if "learning_rate" not in run or run.step_name != "step":
        return False
    rate = run["learning_rate"].finite
    if len(rate) < 4:
        return False
    at = np.clip(np.searchsorted(rate.step, steps), 1, len(rate) - 1)
    return bool(np.mean(rate.value[at] < CUT * rate.value[at - 1]) * 2 > 1)
