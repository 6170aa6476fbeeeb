"""What moved suddenly, and when: jumps of any curve against its own local trend, those at one time together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.roles.quantities import LOSSES
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import MAD_TO_STD, heaviness, median, positive, row_medians, sample

BEFORE = 5
"""Records before one, whose median it is compared with. Chosen: the fewest that one outlier does not move."""
AROUND = 40
"""Records around one, from which the usual size of such a difference is taken. Chosen: twice a usual window."""
SIGMAS = 7.0
"""Standard deviations of that size, times the heaviness of its tails, beyond which a curve jumps. Chosen: in ten
thousand records of normal noise none does."""
HEAVIEST = 1.4
"""Heaviness that is believed. Chosen: where every tenth record is a jump, they are no tail."""
LEAST_SHARE = 0.1
"""Share of the middle 95 % of all values that a jump has at least. Chosen: a smaller one is hardly seen by eye."""
LEAST_OF_LEVEL = 0.03
"""Share of the level that it has at least. Chosen: of values that are nearly constant."""
BEGINNING = 0.1
"""Share of the records, from the first on, in which a move is the usual one of a run that begins; but a loss or a
gradient does not rise then. Chosen: half of what most runs take to settle."""
RESTLESS = 3.0
"""Times the usual spread of the whole curve that the spread around a record is at most. Chosen: a beginning in which
everything moves hides nothing."""
RISES_UNUSUALLY = LOSSES | {Quantity.GRADIENT_NORM, Quantity.KL}
FEWEST = 8
"""Records from which a trend can be told. Chosen: three more than `BEFORE`."""
OUTLYING = 5.0
"""Times the median that the highest value is, for logarithms to be compared. Chosen: of what varies by factors."""
MOST_POINTS = 10_000
"""Stretches of a longer curve, of which only the extremes are looked at. Chosen: finer than any picture of it."""
NEAR = 3
"""Records within which jumps of several curves are one event. Chosen: what brings a jump about precedes it by one."""
AT_ONCE, UNLIKE = 0.4, 3.0
"""A rate jumps where its logarithm moves by this much from one record to the next, and so many times as far as before
and after. Chosen: a factor of 1.5, which no smooth schedule makes at once."""
MOST_SERIES = 60
"""Curves that are looked at. Chosen: those of hundreds of layers move together."""


@dataclass(frozen=True, slots=True)
class Change:
    """A sudden move of one curve.

    Args:
        metric: The name of the series.
        step: Where it begins.
        before: The level before.
        there: The value farthest from that.
        back: The step at which it is back on a third of the way; None where it does not come back.
        sigmas: How large it is, in standard deviations of what is usual for the curve.
        records: Records between those of the curve, in steps.
    """

    metric: str
    step: float
    before: float
    there: float
    back: float | None
    sigmas: float
    records: float


@dataclass(frozen=True, slots=True)
class Event:
    """What moved at about one time, the first mover first."""

    changes: tuple[Change, ...]

    @property
    def step(self) -> float:
        """Where the first of them begins."""
        return self.changes[0].step

    @property
    def sigmas(self) -> float:
        """How large the largest of them is."""
        return max(one.sigmas for one in self.changes)

    @property
    def first_mover(self) -> str:
        """The curve that moved before all others; "" where several did at once or there is one alone."""
        first, *others = self.changes
        return first.metric if others and all(one.step > first.step for one in others) else ""


def events_of(run: Run, names: Sequence[str]) -> list[Event]:
    """Return the sudden moves of these curves, in order; those of several within a few records are one event."""
    changes: list[Change] = []
    for name in names[:MOST_SERIES]:
        role = run[name].role
        rate = role is not None and role.quantity is Quantity.LEARNING_RATE
        changes += _jumps_of_rate(run[name].finite) if rate else _jumps(run[name].finite)
    return _together(changes)


def _together(changes: Iterable[Change]) -> list[Event]:
    groups: list[list[Change]] = []
    for one in sorted(changes, key=lambda change: (change.step, change.metric)):
        if groups and one.step - groups[-1][0].step <= NEAR * min(one.records, groups[-1][0].records):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [Event(tuple({one.metric: one for one in reversed(group)}.values())[::-1]) for group in groups]


def _jumps(series: Series) -> list[Change]:
    """Return where a curve leaves its trend at once."""
    if len(series) < FEWEST or float(series.value.min()) == float(series.value.max()):
        return []
    found = [*_one_way(series, +1), *_one_way(series, -1)]
    return _without_returns(sorted(found, key=lambda one: one.step))


def _without_returns(changes: list[Change]) -> list[Change]:
    """Return the moves of a curve without those that only end the one before, at the level from which it began."""
    kept: list[Change] = []
    for one in changes:
        ended = kept and kept[-1].back is not None and one.step <= kept[-1].back
        if not ended or abs(one.there - kept[-1].before) > abs(kept[-1].there - kept[-1].before) / 3:
            kept.append(one)
    return kept


def _one_way(series: Series, sign: int) -> list[Change]:
    """Return the jumps up (+1) or down (-1)."""
    at, value = _extremes(series.value, sign)
    logarithmic = positive(value) and float(value.max()) > OUTLYING * median(sample(value))
    scaled = np.log(value) if logarithmic else value
    level = _levels_before(scaled)
    away = sign * (scaled - level)
    usual, spread = _usual(away)
    least = max(LEAST_SHARE * _span(scaled), LEAST_OF_LEVEL * (1.0 if logarithmic else abs(median(value))), 1e-12)
    sigmas = (away - usual) / np.maximum(spread, least / SIGMAS)
    limit = SIGMAS * min(HEAVIEST, max(1.0, heaviness(scaled)))
    beyond = (sigmas > limit) & (away > least)
    at_once = sign > 0 and series.role is not None and series.role.quantity in RISES_UNUSUALLY
    beyond[: 1 if at_once else max(NEAR, int(BEGINNING * len(value)))] = False
    places = np.flatnonzero(beyond)
    groups = np.split(places, np.flatnonzero(np.diff(places) > BEFORE) + 1) if len(places) else []
    before = np.exp(level) if logarithmic else level
    looked = Series(series.name, series.step[at], value)
    interval = median(np.diff(series.step))
    return [_change(looked, before, group, float(sigmas[group].max()), interval) for group in groups]


def _change(series: Series, level: Floats, group: NDArray[np.int64], sigmas: float, interval: float) -> Change:
    value, first = series.value, int(group[0])
    before = float(level[first])
    peak = int(group[np.argmax(np.abs(value[group] - before))])
    there = float(value[peak])
    away = np.abs(value[peak + 1 :] - before) < abs(there - before) / 3
    back = float(series.step[peak + 1 + int(np.argmax(away))]) if away.any() else None
    return Change(series.name, float(series.step[first]), before, there, back, min(1000.0, sigmas), interval)


def _extremes(value: Floats, sign: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the indices and values to look at: all, or of a long curve the extreme one of each stretch."""
    stride = -(-len(value) // MOST_POINTS)
    if stride == 1:
        return np.arange(len(value)), value
    whole = len(value) // stride * stride
    rows = sign * value[:whole].reshape(-1, stride)
    at = np.arange(0, whole, stride) + rows.argmax(axis=1)
    return at, value[at]


def _levels_before(value: Floats) -> Floats:
    """Return the median of the records before each one, shape (n,); before the first stands the first."""
    padded = np.concatenate([np.repeat(value[:1], BEFORE), value[:-1]])
    return row_medians(np.lib.stride_tricks.sliding_window_view(padded, BEFORE))


def _usual(away: Floats) -> tuple[Floats, Floats]:
    """Return the usual difference of a record from those before it, and its spread, in the records around each."""
    count = max(1, len(away) // AROUND)
    edges = np.linspace(0, len(away), count + 1).astype(int)
    which = np.minimum(np.searchsorted(edges, np.arange(len(away)), side="right") - 1, count - 1)
    parts = [away[first:last] for first, last in pairwise(edges)]
    middle = np.array([median(part) for part in parts])
    spread = np.array([MAD_TO_STD * median(np.abs(part - usual)) for part, usual in zip(parts, middle, strict=True)])
    return middle[which], np.minimum(spread, RESTLESS * median(spread))[which]


def _span(value: Floats) -> float:
    low, high = (float(edge) for edge in np.quantile(sample(value), (0.025, 0.975)))
    return high - low


def _jumps_of_rate(rate: Series) -> list[Change]:
    """Return where a learning rate moves at once, as no smooth schedule does."""
    above = rate.where(rate.value > 0)
    if len(above) < 4:
        return []
    moves = np.diff(np.log(above.value))
    size = np.abs(moves)
    beside = np.maximum(np.append(np.inf, size[:-1]), np.append(size[1:], 0.0))
    interval = median(np.diff(above.step))
    places = np.flatnonzero((size > AT_ONCE) & (size > UNLIKE * beside)).tolist()
    step, value = above.step.tolist(), above.value.tolist()
    return [Change(rate.name, step[at + 1], value[at], value[at + 1], None, 100.0, interval) for at in places]
