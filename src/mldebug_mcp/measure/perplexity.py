"""A loss beside the logarithm of the perplexity that is logged with it: the same number, in the same unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import median


@dataclass(frozen=True, slots=True)
class LossAndPerplexity:
    """How many times the logarithm of a perplexity the loss of the same phase is, where 1 is expected.

    Args:
        loss, perplexity: The series.
        times: The median quotient.
        spread: The distance between the smallest and the largest quotient, as a share of the median.
        records: At how many records both stand and can be compared.
        step: The first of those.
        first: The loss and the logarithm of the perplexity there.
    """

    loss: Series
    perplexity: Series
    times: float
    spread: float
    records: int
    step: float
    first: tuple[float, float]


def loss_and_perplexity(run: Run) -> Iterator[LossAndPerplexity]:
    """Yield what a run logs of a loss and a perplexity, for training and for evaluation."""
    for phase, name in (("train", "loss"), ("eval", "eval_loss")):
        perplexity = next(run.with_role(Quantity.PERPLEXITY, phase=phase), None)
        if perplexity is not None and name in run and (one := _compared(run[name], perplexity)) is not None:
            yield one


def _compared(loss: Series, perplexity: Series) -> LossAndPerplexity | None:
    steps, ours, theirs = np.intersect1d(loss.step, perplexity.step, return_indices=True)
    level, power = loss.value[ours], perplexity.value[theirs]
    keep = np.isfinite(level) & np.isfinite(power) & (level > 0) & (power > 1)
    if not keep.any():
        return None
    level, logarithm = level[keep], np.log(power[keep])
    times = level / logarithm
    middle = median(times)
    spread = float(np.ptp(times)) / middle
    at = (float(level[0]), float(logarithm[0]))
    return LossAndPerplexity(loss, perplexity, middle, spread, len(times), float(steps[keep][0]), at)
