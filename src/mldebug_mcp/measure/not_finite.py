"""Numbers that are not finite: how many, scattered or for good, what came before, and what stays finite beside them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.names import canonical, is_part_of_loss, is_training_loss
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import median

LAST = 3
"""Records before the first number that is not finite in which a climb towards it is looked for, and as many after.
Chosen: a run that goes off takes some records."""
STEEP = 1e3
"""Times that each of fewer records stands above the one before. Chosen: no batch takes a loss up by powers of ten."""
PARTS = 4
"""Stretches from the first such number to the end of the log, whose shares of them compare. Chosen: a trend."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A series that is not finite in some records.

    Args:
        series: The series.
        bad: Where it is not finite, shape (n,).
        at: Index of the first such record.
    """

    series: Series
    bad: NDArray[np.bool_]
    at: int

    @property
    def step(self) -> float:
        """The step of the first record that is not finite."""
        return float(self.series.step[self.at])

    @property
    def kind(self) -> str:
        """NaN or infinite, as the first of them is."""
        return "NaN" if np.isnan(self.series.value[self.at]) else "infinite"

    @property
    def count(self) -> int:
        """How many records are not finite."""
        return int(self.bad.sum())

    @property
    def for_good(self) -> bool:
        """Whether no finite record follows."""
        return self.count == len(self.bad) - self.at


@dataclass(frozen=True, slots=True)
class Climb:
    """How a curve goes up to where it is lost.

    Args:
        level: The lowest finite value up to the last few.
        last: The highest of the last few.
        since: The step of the first of them.
    """

    level: float
    last: float
    since: float


@dataclass(frozen=True, slots=True)
class Beside:
    """Parts of the loss in the records where the whole is not finite.

    Args:
        finite: Those that are finite in all of them.
        gone: Those that are finite in none.
    """

    finite: tuple[str, ...]
    gone: tuple[str, ...]


def lost(series: Series) -> Lost | None:
    """Return where a series is not finite, None if it always is."""
    bad = ~np.isfinite(series.value)
    return Lost(series, bad, int(np.argmax(bad))) if bad.any() else None


def training_losses(run: Run) -> list[Series]:
    """Return the total loss by its names, else its parts, else all of a log in which nothing is ever finite."""
    totals = [one for name, one in run.series.items() if canonical(name) == "loss"]
    parts = totals or [one for name, one in run.series.items() if is_training_loss(name)]
    if parts:
        return parts
    measured = [one for one in run.series.values() if not np.array_equal(one.value, np.round(one.value))]
    never = len(measured) > 1 and not any(np.isfinite(one.value).any() for one in measured)
    return measured if never else []


def first_lost(several: list[Series]) -> Lost | None:
    """Return the series that is the first not to be finite, None if all are finite throughout."""
    return min((one for series in several if (one := lost(series)) is not None), key=lambda one: one.step, default=None)


def climb(loss: Lost) -> Climb | None:
    """Return how a loss goes up before it is lost, None if too few finite records come before.

    Four are enough, or two of which each stands powers of ten above the one before.
    """
    before = loss.series.value[: loss.at]
    steep = 2 <= len(before) <= LAST and bool(np.all(before[1:] > STEEP * before[:-1]))
    if len(before) <= LAST and not steep:
        return None
    level, last = float(before[: max(1, len(before) - LAST)].min()), float(before[-LAST:].max())
    return Climb(level, last, float(loss.series.step[max(0, loss.at - LAST)]))


def returns(loss: Lost) -> tuple[float, float] | None:
    """Return the level just before the first number that is not finite, and that of the last finite ones after it.

    None if none is finite before, or fewer than `LAST` after.
    """
    value, finite = loss.series.value, ~loss.bad
    before, after = value[: loss.at][finite[: loss.at]], value[loss.at :][finite[loss.at :]]
    if not len(before) or len(after) < LAST:
        return None
    return median(before[-LAST:]), median(after[-LAST:])


def shares(loss: Lost) -> tuple[float, ...]:
    """Return the share of numbers that are not finite in each of `PARTS` stretches from the first of them on."""
    after = loss.bad[loss.at :]
    if len(after) < 2 * PARTS:
        return ()
    edges = np.linspace(0, len(after), PARTS + 1).astype(int)
    return tuple(float(after[first:last].mean()) for first, last in pairwise(edges))


def beside(run: Run, loss: Lost) -> Beside:
    """Return which parts of the loss are finite where it is not, and which are lost with it."""
    steps = loss.series.step[loss.bad]
    parts = [one for name, one in run.series.items() if name != loss.series.name and is_part_of_loss(name)]
    there = [(one.name, np.isfinite(one.value[np.isin(one.step, steps)])) for one in parts]
    return Beside(
        tuple(name for name, finite in there if len(finite) and finite.all()),
        tuple(name for name, finite in there if len(finite) and not finite.any()),
    )
