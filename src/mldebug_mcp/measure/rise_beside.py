"""What the gradient norm and the learning rate do where the loss begins to rise for good."""

from __future__ import annotations

from dataclasses import dataclass

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.gradient_lead import ALIKE, gradient_norm
from mldebug_mcp.measure.statistics import median

LEAST = 6
"""Gradient norms on either side of the onset without which their levels are not known. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class GradientLevels:
    """Gradient norms before and after a step.

    Args:
        before: Their median before.
        highest: The highest before.
        after: Their median from there on.
    """

    before: float
    highest: float
    after: float


@dataclass(frozen=True, slots=True)
class RateThere:
    """The learning rate at a step.

    Args:
        rate: The rate.
        peak: The highest up to there.
        peak_step: Where that is reached.
    """

    rate: float
    peak: float
    peak_step: float


def gradient_levels(run: Run, step: float) -> GradientLevels | None:
    """Return the gradient norms on both sides of a step.

    None if they are not logged, in too few records, not finite, or stand at the clip, where a growth does not show.
    """
    norm = gradient_norm(run)
    if norm is None or len(norm.finite) < len(norm):
        return None
    before, after = norm.where(norm.step < step).value, norm.where(norm.step >= step).value
    if min(len(before), len(after)) < LEAST:
        return None
    top = float(norm.value.max())
    if 2 * int((norm.value >= (1 - ALIKE) * top).sum()) > len(norm):
        return None
    return GradientLevels(median(before), float(before.max()), median(after))


def rate_there(run: Run, step: float) -> RateThere | None:
    """Return the learning rate at a step beside its peak up to there, None if it is not logged by then."""
    if "learning_rate" not in run:
        return None
    rate = run["learning_rate"].finite
    rate = rate.where(rate.step <= step)
    if not len(rate) or float(rate.value.max()) <= 0:
        return None
    top = int(rate.value.argmax())
    return RateThere(float(rate.value[-1]), float(rate.value[top]), float(rate.step[top]))
