"""What the loss does within each pass over the data: a profile by the place in the pass, and whether it comes again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import CannotTell

UNKNOWN_EPOCHS = "neither the epoch nor the steps per epoch are known"
"""Why `epochs_of` returns nothing."""
WHOLE = 0.9
"""Of the records of the first pass: what the last one must have to be compared. Chosen: by hand."""

PARTS, PER_PART = 8, 2
"""Stretches of an epoch that compare with the next, and records of each. Chosen: eight levels tell an order."""
FEW_PARTS, MANY_EPOCHS = 5, 6
"""Records of a short epoch, and how many such epochs. Chosen: more epochs make up for fewer stretches."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How the passes over the data are alike.

    Args:
        passes: Whole passes on record.
        parts: Stretches of a pass, whose levels are compared.
        alike: Correlation of each pass but the first with the mean of all the others, beside the line along which each
            falls, shape (passes - 1,); with two passes that of the one with the other.
        swing: How far the profile goes up and down, in the pass where it does so least.
        level: Typical size of the values.
        begins_anew: Whether each pass begins where the pattern starts over.
        second: The step at which the second pass begins.
    """

    passes: int
    parts: int
    alike: Floats
    swing: float
    level: float
    begins_anew: bool
    second: float


def epochs_of(run: Run, loss: Series) -> NDArray[np.int64] | None:
    """Return the epoch that each record belongs to, counted from 0, or None where neither it nor its length is known.

    A record that ends an epoch belongs to it. Where the log does not count epochs, the settings give their steps.
    """
    if "epoch" in run and len(series := run["epoch"].finite) > 1:
        value = series.interpolated(loss.step)
        if bool(np.all(series.value == np.round(series.value))):
            value = series.value[np.clip(np.searchsorted(series.step, loss.step, side="right") - 1, 0, None)]
            return np.asarray(value, dtype=np.int64)
        return np.asarray(np.maximum(np.ceil(np.round(value, 6)) - 1, 0), dtype=np.int64)
    per_pass = run.facts.steps_per_pass if run.step_name == "step" else run.setting("steps_per_epoch")
    if per_pass is None or per_pass < 1:
        return None
    return np.asarray(np.maximum(np.ceil(loss.step / per_pass) - 1, 0), dtype=np.int64)


def whole_passes(values: Floats, epoch: NDArray[np.int64]) -> list[Floats]:
    """Return the values of each pass; the last one only where it is whole."""
    found = [values[epoch == number] for number in np.unique(epoch)]
    if found and len(found[-1]) < WHOLE * len(found[0]):
        found.pop()
    return found


def parts_of(values: Floats, epoch: NDArray[np.int64]) -> int:
    """Return into how many parts epochs are cut; CannotTell if they have too few records, for as many as there are."""
    whole = whole_passes(values, epoch)
    fewest = min(map(len, whole), default=0)
    if fewest >= PARTS * PER_PART:
        return PARTS
    if fewest < FEW_PARTS or len(whole) < MANY_EPOCHS:
        raise CannotTell(f"an epoch has fewer than {PARTS * PER_PART} records, and there are {len(whole)}")
    return min(PARTS, fewest)


def profile_of(series: Series, epoch: NDArray[np.int64], parts: int, starts_over: float) -> Profile | None:
    """Return how the passes are alike; None with fewer than two whole ones.

    Args:
        series: Finite values.
        epoch: The pass of each, shape (len(series),).
        parts: Stretches of a pass; each has a record at least.
        starts_over: Of the swing: how far the step from one pass to the next may be from that which begins it anew.
    """
    levels = [_levels(one, parts) for one in whole_passes(series.value, epoch)]
    if len(levels) < 2:
        return None
    shapes = [_shape(one) for one in levels]
    swing = min(float(np.ptp(shape)) for shape in shapes[1:])
    anew = [
        abs((after[0] - before[-1]) - (again[0] - shape[-1])) < starts_over * swing
        for (before, after), (shape, again) in zip(pairwise(levels), pairwise(shapes), strict=True)
    ]
    return Profile(
        passes=len(levels),
        parts=parts,
        alike=_alike(shapes),
        swing=swing,
        level=median(np.abs(series.value)),
        begins_anew=all(anew),
        second=float(series.step[int(np.argmax(epoch > epoch[0]))]),
    )


def _alike(shapes: list[Floats]) -> Floats:
    if len(shapes) == 2:
        return np.array([_correlation(*shapes)])
    later = shapes[1:]  # learning bends the first pass
    total = np.sum(later, axis=0)
    return np.array([_correlation(one, total - one) for one in later])


def _correlation(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def _levels(values: Floats, parts: int) -> Floats:
    """Return the levels of the parts of a pass, shape (parts,)."""
    return np.array([median(part) for part in np.array_split(values, parts)])


def _shape(levels: Floats) -> Floats:
    """Return the levels of a pass beside the line along which it falls, if it does, shape (parts,)."""
    place = np.arange(len(levels)) - (len(levels) - 1) / 2
    slope = float(np.polyfit(place, levels, 1)[0])
    return np.asarray(levels - levels.mean() - min(slope, 0.0) * place)
