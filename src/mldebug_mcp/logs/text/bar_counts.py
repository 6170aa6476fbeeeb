"""Which batch the metrics belong to that a progress bar shows at a count.

tqdm counts in one call and shows metrics in another, and draws at both; drawings differ by the order of the two calls.
A loop that counts first (`update`, then `set_postfix`) draws the metrics of a batch at its own count, last. A loop that
shows metrics first draws them at the count before. Where it iterates over the bar, it draws many batches at one count,
as tqdm then counts on at intervals of time alone: how far the next count is tells how many batches these were.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Generic, NamedTuple, Protocol, TypeVar

from mldebug_mcp.core.lazy import dataclass

MAX_REDRAWS = 20_000
"""Drawings at one count that wait for the next count; with more, the first one alone is read."""
MIN_BATCHES_AT_COUNT = 3
"""Different metrics below the first ones at one count, from which on they are of several batches. Chosen by hand."""
MIN_COUNTS_OF_ORDER = 8
"""Counts without such drawings after which a loop is taken for one that counts first. Chosen by hand."""


class Shown(Protocol):
    """What a drawing shows."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """The metrics by name."""


S = TypeVar("S", bound=Shown)


class Placed(NamedTuple, Generic[S]):
    """A drawing and the count that its metrics belong to."""

    at: int
    shown: S


@dataclass(slots=True)
class Order:
    """In which order the loops behind bars of one description count and show metrics.

    Args:
        shows_first: Metrics are shown before their batch is counted; None while that is not known.
        is_dense: Each batch shows its metrics, as far as is known.
        drawings: How often each batch then draws; 0 while that is not known.
        counts: Counts that were drawn.
        are_single: Each count was drawn once, and they lie apart.
        lengths: How far apart the first counts lie.
        interval: The least count between two drawings of new metrics.
        shown: The metrics that were shown last.
        lag: Batches that lie at most between what is shown and its count.
    """

    shows_first: bool | None = None
    is_dense: bool = True
    drawings: int = 0
    counts: int = 0
    are_single: bool = True
    lengths: set[int] = field(default_factory=set)
    interval: float = math.inf
    shown: Mapping[str, float] = field(default_factory=dict)
    lag: int = 0

    def begins(self, metrics: Mapping[str, float]) -> None:
        """Take metrics that a bar shows before anything is counted; zeros only keep the place of some."""
        if metrics != self.shown and any(metrics.values()):
            self.shows_first = True


class BarCounts(Generic[S]):
    """Gathers the drawings of a bar at one count; `take` and `pause` yield those whose batch is known.

    Args:
        order: The order of the loop.
        total: Where the bar ends.
        first: Its first drawing that shows metrics, and the count of that.
    """

    def __init__(self, order: Order, total: int, first: Placed[S]) -> None:
        self._order = order
        self._total = total
        self.at = first.at
        self._own: S | None = None if order.shows_first and not first.at else first.shown
        self._first: S | None = None  # of a bar that is drawn from here on, what it showed first here is not known
        self._again: list[S] = [] if self._own is not None else [first.shown]
        self._drawn = len(self._again)
        self._done = 0
        self._changes = 0
        self._is_carried = False
        self._last_new = first.at
        self._is_placed = False
        order.shown = first.shown.metrics

    @property
    def is_finished(self) -> bool:
        """Whether the bar has reached its end."""
        return self.at >= self._total

    def take(self, at: int, shown: S) -> Iterator[Placed[S]]:
        """Take the next drawing of the bar; it does not count back."""
        order = self._order
        is_carried = shown.metrics == order.shown
        if at == self.at:
            self._take_again(shown)
        else:
            pending = None
            for placed in self._leave(at, is_carried=is_carried):
                if placed.at == at:
                    pending = placed.shown
                else:
                    yield placed
            self.at, self._done, self._drawn, self._again, self._is_carried = at, 0, 0, [], is_carried
            self._changes = 0
            self._own = self._first = shown
            if order.shows_first and pending is not None and not is_carried:
                self._own = pending
                self._take_again(shown)
        if at > self._last_new and not is_carried:
            order.interval = min(order.interval, at - self._last_new)
            self._last_new = at
        order.shown = shown.metrics

    def pause(self) -> Iterator[Placed[S]]:
        """Yield what is known of the drawings when something else comes below them, or the log ends."""
        if self._own is not None and not self._is_old():
            yield self._placed(self.at, self._own)
        self._own = None
        order, rest = self._order, self._total - self.at
        if not order.shows_first or not self._again or rest <= 0:
            self._done, self._again = self._drawn, []
            return
        drawings = order.drawings or (self._drawn // rest if _fits(self._drawn, rest) else 0)
        if drawings and order.is_dense:
            yield from self._spread(self._total, drawings)
        elif not self._is_placed:
            order.lag = max(order.lag, self._drawn)
            yield self._placed(self.at + self._drawn, self._again[-1])
        self._done, self._again = self._drawn, []

    def passes(self, at: int, metrics: Mapping[str, float], drawn: int = 0) -> None:
        """Take note of drawings up to a count, the last ones at this count, that were read without this bar."""
        self.at, self._last_new, self._own, self._again, self._drawn, self._done = at, at, None, [], drawn, drawn
        self._order.shown = metrics

    def _take_again(self, shown: S) -> None:
        self._drawn += 1
        self._changes += shown.metrics != self._order.shown
        if self._drawn <= MAX_REDRAWS:
            self._again.append(shown)
        if self._order.shows_first is None and self._changes >= MIN_BATCHES_AT_COUNT:
            self._order.shows_first, self._own = True, self._first
        if not self._order.shows_first or self.at >= self._total:
            self._own = shown

    def _leave(self, at: int, *, is_carried: bool) -> Iterator[Placed[S]]:
        """Yield what was drawn at the last count.

        What is carried was shown last at this count: tqdm drew it as it counted.
        """
        order, counted = self._order, at - self.at
        self._learn(counted)
        if not order.shows_first:
            if self._own is not None and not self._is_old():
                yield self._placed(self.at, self._own)
            return
        if self._own is not None:
            if self._is_carried and order.is_dense and _fits(self._drawn + 1, counted) > _fits(self._drawn, counted):
                self._again.insert(0, self._own)  # the first drawing is of the next batch, which shows the same numbers
                self._drawn += 1
            yield self._placed(self.at, self._own)
        if is_carried and not _fits(self._drawn, counted):
            self._again = self._distinct()
            self._drawn = self._done + len(self._again)
        if _fits(self._drawn, counted) and (is_carried or counted == 1):
            order.drawings = self._drawn // counted
            yield from self._spread(at, order.drawings)
            return
        order.is_dense = order.is_dense and self._drawn >= counted
        order.lag = max(order.lag, math.ceil(counted / max(1, self._drawn)))
        if self._drawn == 1 and self._again:
            yield self._placed(at, self._again[0])

    def _learn(self, counted: int) -> None:
        """Learn the order of the loop from how many drawings there were until so many batches were counted."""
        order = self._order
        if order.shows_first is not None:
            return
        order.counts += 1
        order.are_single = order.are_single and not self._drawn and counted > 1
        order.lengths.add(counted)
        if order.counts >= MIN_COUNTS_OF_ORDER:
            order.shows_first = False
            # Drawn as time passes alone, it may be drawn before the metrics of its batch are set.
            order.lag = int(order.are_single and len(order.lengths) > 1)

    def _distinct(self) -> list[S]:
        """Return the drawings at this count that differ from the one before: `tqdm.write` draws the bar once more."""
        before = [self._own, *self._again]
        return [shown for shown, last in zip(self._again, before, strict=False) if shown.metrics != _metrics_of(last)]

    def _is_old(self) -> bool:
        """Say whether this count shows nothing but what was set at one before, where metrics are set seldom."""
        is_new = self._order.shows_first or self._drawn or not self._is_carried
        return not is_new and self.at - self._last_new < self._order.interval < math.inf

    def _spread(self, until: int, drawings: int) -> Iterator[Placed[S]]:
        """Yield the last drawing of each batch up to a count, where each batch has as many."""
        for number, shown in enumerate(self._again, start=self._done + 1):
            if number % drawings == 0 and self.at + number // drawings <= until:
                yield self._placed(self.at + number // drawings, shown)

    def _placed(self, at: int, shown: S) -> Placed[S]:
        self._is_placed = True
        return Placed(at, shown)


def _metrics_of(shown: Shown | None) -> Mapping[str, float] | None:
    return None if shown is None else shown.metrics


def _fits(drawn: int, counted: int) -> bool:
    """Say whether each of the batches that were counted can have drawn as often."""
    return 0 < drawn <= MAX_REDRAWS and drawn % counted == 0
