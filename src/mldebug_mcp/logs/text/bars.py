"""Progress bars of tqdm, Keras, fastprogress and Rich, and which batch the metrics belong to that one shows.

Hugging Face, diffusers, kohya, Lightning, torchtune and Ultralytics draw with tqdm. A bar is redrawn many times for
one step. The last drawing for a step counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeVar

from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.line_prefixes import without_prefix
from mldebug_mcp.logs.numbers import HUGE, whole_number

_TQDM = regex(
    r"(?P<percent>\d{1,3})%\s?(?:\|[^|\[]{0,400}\|)?\s*(?P<count>\d+(?:\.\d+)?[kM]?)/(?P<total>\d+(?:\.\d+)?[kM]?)\s*"
    r"\[(?P<inside>(?:[^\[\]]|\[\d{1,12}-\d{1,12}\]){0,2000})(?P<end>\]|$|(?=\[))"
)
_OVER_RANGE = regex(r"(?<=[A-Za-z]) \[\d{1,12}-\d{1,12}\](?=:)")
"""The steps that a mean is over, in its name, as NumPyro writes it: "avg. loss [381-400]: 102.5"."""
_COUNT_FIRST = regex(
    r"(?P<head>.{0,200}?)\[(?P<count>\d+)/(?P<total>\d+)\]\s{0,4}\d{1,3}%\|[^|,\[\]]{0,400}"
    r"(?:,\s?(?P<rest>[^\[\]]{0,2000}))?\[[\d:?]{1,20}<[\d:?]{1,20}\]\s*$"
)
"""tqdm as Ignite draws it: "Epoch [1/3]: [2/16]  12%|█▎        , loss=0.76 [00:00<00:00]"."""
_HEAD = 300
MAX_METRICS = 20_000
"""Characters behind a bar that are read."""
_KERAS = regex(
    r"\s*(?P<count>\d+)/(?P<total>\d+)\s*(?:(?P<drawn>\[[=>.]{5,}\]|[━─]{5,})|(?=- \d+m?s\b))\s*-?\s*(?P<rest>.*)$",
)
_ARROWS = regex(
    r"(?P<head>[A-Za-z][^\[\]{}]{0,80})?\s*\[[>=#.\- ]{5,200}\]\s*(?P<count>\d+)/(?P<total>\d+)\b,?\s*(?P<rest>.*)$"
)
_FRAMED = regex(
    r"(?P<head>[A-Za-z][^|\[\]{}]{0,80}?)\s*\|(?=[^|]{0,200}[#=█▉▊▋▌▍▎▏∙░▒▓◉◯■□▪])[#=>\-. █▉▊▋▌▍▎▏∙░▒▓◉◯■□▪]{4,200}\|"
    r"\s*\(?(?P<count>\d+)/(?P<total>\d+)\)?(?![\d/%])\s*(?P<rest>.*)$"
)
"""The bars of the package progress: "Processing |########    | (370/3700) Loss: 0.1"."""
_WITH_HEAD = (("<", _COUNT_FIRST), ("]", _ARROWS), ("|", _FRAMED))
"""What stands in each bar with a head, and its pattern; the second is "Training [>>>  ] 300/1000, loss=0.1"."""
_SIGNED = regex(r"\b((?:gen|disc)\w{0,20})\.? \(([+-]\d{1,12}\.\d{1,12}|[+-]?(?:nan|inf))\)", re.IGNORECASE)
"""The losses that CTGAN shows before its bar: "Gen. (+00.77) | Discrim. (-00.12): "."""
_FASTPROGRESS = regex(r"(?:Epoch \d+/\d+ :)?\s*\|[█-]{10,}\|\s*[\d.]+%\s*\[\d+/\d+[^\]]*\]")
_FASTPROGRESS_HEAD = regex(r"Epoch \d+/\d+ :")
_RATE = regex(
    r"^\s*\d[\d:]{0,30}(?:\s*<\s*[\d:?]{1,30}(?: day[^,]{0,30})?)?\s*,?\s*[\d.?]{1,30}\s*\w{1,30}/\w+\s*,?"
    r"|^\s*\d[\d:]*<[\d:?]+,?\s*"
)
_KERAS_TIME = regex(r"^(?:\s*-?\s*(?:ETA:\s*)?[\d:.]+(?:us|ms|s|m|h)?(?:/step|/epoch|/sample)?)+\s*-?\s*")


class Bar(NamedTuple):
    """One drawing of a progress bar.

    Args:
        head: The text before it: a description, sometimes with an epoch.
        at: How far it is.
        total: Where it ends.
        metrics: The text that reports metrics, without the times.
        around: The line without the bar.
        keras: A bar of Keras, or the line that it prints in its place (verbose=2): it belongs to the epoch whose
            heading came before.
        line: That line, which is never drawn again.
    """

    head: str
    at: int
    total: int
    metrics: str
    around: str
    keras: bool = False
    line: bool = False


def bar_in(line: str) -> Bar | None:
    """Return the last bar drawn in a line, or None."""
    if "/" not in line:
        return None
    if "%" in line:
        drawn = list(_TQDM.finditer(line))
        if drawn:
            return _tqdm(line, drawn)
    for mark, pattern in _WITH_HEAD:
        found = pattern.match(line) if mark in line else None
        if found is not None:
            at, total = whole_number(found["count"]), whole_number(found["total"])
            return Bar((found["head"] or "").strip(), at, total, (found["rest"] or "")[:MAX_METRICS], "")
    keras = _KERAS.match(line)
    if keras is None:
        return None
    at, total = whole_number(keras["count"]), whole_number(keras["total"])
    rest = _KERAS_TIME.sub("", keras["rest"][:MAX_METRICS])
    return Bar("", at, total, rest, "", keras=True, line=keras["drawn"] is None)


_SHORT_HEAD = 4
"""Characters of a head from which on it is a description: below them, what stands before a bar is not its own."""


def bars_apart(line: str) -> list[str]:
    """Return the parts of a line that holds one drawing of a bar after another without a line end, [] for others.

    Drawings of one bar begin alike, even where the terminal cut each off: "| epoch 1:  5%| | 1/20 [0:01, lo| epoch 1:".
    Another bar or a line of text begins right behind the bracket of the bar above it: "[00:32<53:42, 3.2s/it]Iter 20:".
    """
    drawn = list(_TQDM.finditer(line)) if "%|" in line else []
    if not drawn:
        return []
    head = line[: drawn[0].start()].strip()
    again = re.finditer(rf"{re.escape(head)}(?=\s{{0,8}}\d{{1,3}}%\|)", line) if len(head) >= _SHORT_HEAD else []
    starts = {found.start() for found in again} - {line.find(head)}
    starts |= {bar.end() for bar in drawn if bar["end"] and line[bar.end() : bar.end() + 1].strip()}
    edges = [0, *sorted(starts), len(line)]
    return [line[first:last] for first, last in pairwise(edges)] if starts else []


def is_fastprogress(line: str) -> bool:
    """Say whether a line is a drawing of fastai's bar, or blanks over one: it tells nothing that the table does not."""
    text = line.strip()
    if _FASTPROGRESS_HEAD.fullmatch(text):
        return line.endswith(" " * 20)
    return text == "█" or _FASTPROGRESS.fullmatch(text) is not None


def _tqdm(line: str, drawn: list[re.Match[str]]) -> Bar:
    match = drawn[-1]
    before = drawn[-2].end() if len(drawn) > 1 else 0
    head = line[max(before, match.start() - _HEAD) : match.start()]
    tail, brace, rest = line[match.end() :].partition("{")
    if "[" in tail or without_prefix(tail).message != tail:  # a message of another logger on the same line
        tail, rest = "", line[match.end() :]
        brace = ""
    whole = match["inside"] if match["end"] else match["inside"].rpartition(",")[0]  # cut where the terminal ended
    inside = _OVER_RANGE.sub("", _RATE.sub("", whole))
    if "(+" in head or "(-" in head:
        inside = ", ".join([f"{name}_loss={value}" for name, value in _SIGNED.findall(head)] + [inside])
        head = _SIGNED.sub(r"\1", head)
    return Bar(head.strip(), _count(match["count"]), _count(match["total"]), f"{inside} | {tail}", f"{brace}{rest}")


def _count(text: str) -> int:
    unit = {"k": 1000, "M": 1_000_000}.get(text[-1])
    return int(min(HUGE, float(text[:-1]) * unit if unit else float(text)))


# Lightning's bar as Rich draws it: the metrics behind it are wrapped over the lines below, in their own column.

_BAR = regex(
    r"Epoch (?P<epoch>\d+)/(?:\d+|-\d+)\s+(?:[━╸╺─]+\s+)?(?P<at>\d+)/(?P<total>\d+)\s+\d+:\d\d:\d\d\s+•\s+[-:\d]+"
    r"\s+[\d.]+(?:it|s)/(?:s|it)\s*(?P<metrics>.*)"
)
_COLUMN = " " * 20
MAX_LINES = 100
"""Lines over which the metrics of one bar may be wrapped."""


class RichBar:
    """Gathers a bar and the lines of its metrics. `take` a line; when the bar has ended, `done` holds it."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._metrics: list[str] = []
        self.done: Bar | None = None

    @property
    def open(self) -> bool:
        """Whether metrics of a bar may follow."""
        return self._bar is not None

    def take(self, line: str) -> bool:
        """Take a line if it belongs to a bar."""
        if self._bar is not None and line.startswith(_COLUMN) and len(self._metrics) < MAX_LINES:
            self._metrics.append(line.strip())
            return True
        self.end()
        match = _BAR.match(line) if line.startswith("Epoch ") else None
        if match is None:
            return False
        self._bar = Bar(f"Epoch {match['epoch']}:", int(match["at"]), int(match["total"]), "", "")
        self._metrics = [match["metrics"]]
        return True

    def end(self) -> None:
        """End the bar that is open, if one is."""
        if self._bar is not None:
            self.done = self._bar._replace(metrics=" ".join(self._metrics)[:MAX_METRICS])
        self._bar, self._metrics = None, []


# Which batch the metrics belong to that a progress bar shows at a count.
#
# tqdm counts in one call and shows metrics in another, and draws at both; drawings differ by the order of the two. A
# loop that counts first (`update`, then `set_postfix`) draws the metrics of a batch at its own count, last. A loop
# that shows metrics first draws them at the count before. Where it iterates over the bar, it draws many batches at one
# count, as tqdm then counts on at intervals of time alone: how far the next count is tells how many batches these
# were.

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

    `total` is where the bar ends, `first` its first drawing that shows metrics.
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

    @property
    def waits(self) -> bool:
        """Whether what was drawn at the last count is not known to be all of it yet."""
        return self._own is not None

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
