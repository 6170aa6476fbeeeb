"""Bars that report metrics → records; see `counters` for the step that a drawing belongs to.

A printed dict that tells only the epoch takes its step from the bar around it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct, median
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Column, Floats, Rows, stretches_of
from mldebug_mcp.logs.names.metrics import is_evaluation
from mldebug_mcp.logs.text.assembler import Assembler, FirstPass
from mldebug_mcp.logs.text.counters import MAX_REDRAWS, BarCounts, Counters, Order, Placed
from mldebug_mcp.logs.text.pairs import evaluation_name
from mldebug_mcp.logs.text.parsed_line import Drawing, Parsed

MAX_DRAWN_BARS = 64
"""Bars whose last drawing is remembered: those that are drawn in turns."""
MAX_HELD = 100
"""Drawings of the first epoch that are held until it is known what their bar counts. Chosen: two are usual."""


class _Last(NamedTuple):
    key: tuple[object, ...]
    number: int
    parsed: Parsed
    keras: bool


class _Drawn(NamedTuple):
    number: int
    drawing: Drawing
    epoch: float | None

    @property
    def metrics(self) -> dict[str, float]:
        return self.drawing.metrics


@dataclass(slots=True)
class _CountedBar:
    """A bar that counts steps, and the steps of those before it that were drawn alike to their ends."""

    counts: BarCounts[_Drawn]
    before: int
    epoch: float | None


class DrawnBars:
    """Holds drawings of a bar until it is known which step they belong to."""

    def __init__(self, records: Assembler) -> None:
        self._records = records
        self._last: _Last | None = None
        self._orders: dict[str, Order] = {}
        self._bars: dict[tuple[object, ...], _CountedBar] = {}
        self._current: _CountedBar | None = None
        self._shown_last: dict[str, float] = {}
        self._shown: dict[str, float] = {}
        self._counts_epochs: dict[int, bool] = {}  # by its end, whether a bar counts the epochs that its head names
        self._held: list[tuple[int, Drawing]] = []  # of a bar for which that is not known yet
        self._is_at_start = False  # those that are given count no batch yet
        self._given: Drawing | None = None  # the first of those that were held when something else came
        self._finished: Drawing | None = None  # the last one of Keras at its end, in this epoch
        self._is_whole = False  # it was the first one of its epoch
        self._first = FirstPass()
        self.evaluated = False
        self.rows_at_once = (0, 0.0, "")  # the line that says how many rows an evaluation takes at once, and its words
        self._evaluates = ""

    @property
    def open(self) -> bool:
        """Whether a drawing waits for the next one."""
        return self._last is not None or self._current is not None or bool(self._held)

    @property
    def holds_record(self) -> bool:
        """Whether the drawing that waits begins a record of its own."""
        counted = self._current is not None and self._current.counts.waits
        return counted or bool(self._held) or (self._last is not None and not self._last.parsed.evaluation)

    def take(self, number: int, drawing: Drawing) -> None:
        """Take a drawing that reports a metric of training."""
        bar = drawing.bar
        if bar.keras and self._is_evaluation(drawing):
            self.evaluated = not self._is_kept(number, drawing) or self.evaluated
        elif not self._holds(number, drawing):
            self._give_held()
            self._take(number, drawing)

    def _holds(self, number: int, drawing: Drawing) -> bool:
        """Hold the drawings of the first epoch that a head names, until those of the next one show what is counted.

        A bar that counts epochs goes on by one in each, where one of batches begins anew.
        """
        bar, epoch = drawing.bar, drawing.counters.get("epoch")
        if epoch is None or not _counts(drawing) or bar.total in self._counts_epochs:
            return False
        first = self._held[0][1] if self._held else self._given or drawing
        moved, counted = epoch - first.counters["epoch"], bar.at - first.bar.at
        is_same = bar.total == first.bar.total and (abs(bar.at - epoch) <= 1 or first.bar.at <= 1)
        holds = is_same and moved == 0 and 0 <= counted <= 1 and len(self._held) < MAX_HELD
        if holds:
            self._held.append((number, drawing))
            return True
        counts_epochs = is_same and moved == counted > 0
        have_steps = not self._held and first.bar.at > 0  # those that were given before
        if counts_epochs and have_steps:
            self._records.count_batches_over_all()
        self._counts_epochs[first.bar.total] = counts_epochs and not have_steps
        return False

    def _give_held(self) -> None:
        """Give the drawings that are held; before it is known what they count, one at 0 counts no batch yet."""
        held, self._held = self._held, []
        for number, drawing in held:
            self._given = self._given or drawing
            self._is_at_start = drawing.bar.total not in self._counts_epochs and held[0][1].bar.at == 0
            self._take(number, drawing)
        self._is_at_start = False

    def _take(self, number: int, drawing: Drawing) -> None:
        if self._is_second_of_epoch(drawing):
            drawing = _of_evaluation(drawing, self._first.epoch or 0.0)
        if _counts(drawing) and not self._is_over_epochs(drawing):
            self._take_count(_Drawn(number, drawing, self._records.epoch))
            return
        last = self._drawn(number, drawing)
        if self._current is not None or (
            self._last is not None and (self._last.key != last.key or self._begins_unheaded_epoch(last))
        ):
            self.end()
        self._last = last

    @property
    def lag(self) -> int:
        """How many steps what bars show may be older than their counts, at most."""
        return max((order.lag for order in self._orders.values()), default=0)

    def shows_last(self, like: Drawing, at: Floats) -> bool:
        """Say whether of drawings like one, at counts of shape (n,), the last one at each shows the metrics of it."""
        order = self._orders.get(like.words)
        moved = np.diff(at)
        moved = moved[moved > 0]
        apart = float(moved.min()) if len(moved) else math.inf
        return not _counts(like) or (order is not None and order.shows_first is False and apart >= order.interval)

    def _take_count(self, drawn: _Drawn) -> None:
        """Take a drawing of a bar that counts steps."""
        drawing, bar = drawn.drawing, drawn.drawing.bar
        key = (drawing.words, drawing.head, bar.total)
        order = self._orders.setdefault(drawing.words, Order())
        counted = self._bars.get(key)
        is_other_pass = (
            counted is not None
            and counted.counts.is_finished
            and bar.at == bar.total
            and "epoch" not in drawing.counters
            and counted.epoch != drawn.epoch
        )
        if counted is None or counted is not self._current or is_other_pass:
            self.end()
        if counted is None or bar.at < counted.counts.at or is_other_pass:
            if bar.at == 0 and drawn.metrics == self._shown_last:
                return  # Lightning opens the bar of the next epoch with what the last one showed
            if counted is None and bar.at == 0 and not any(drawn.metrics.values()):
                return  # CTGAN: zeros that keep the place of what the first batch will show
            if counted is not None:
                self._place(counted, counted.counts.pause())
            if drawing.from_zero:  # Lightning's: it counts first
                order.shows_first = False
            elif bar.at == 0:
                order.begins(drawn.metrics)
            counts = BarCounts(order, bar.total, Placed(bar.at, drawn))
            before = 0
            if counted is not None and counted.counts.is_finished:
                before = counted.before + bar.total
            counted = self._bars[key] = _CountedBar(counts, before, drawn.epoch)
            if len(self._bars) > MAX_DRAWN_BARS:
                del self._bars[next(iter(self._bars))]
        else:
            self._place(counted, counted.counts.take(bar.at, drawn))
        self._current, self._shown_last = counted, drawn.metrics

    def _place(self, bar: _CountedBar, placed: Iterable[Placed[_Drawn]]) -> None:
        """Give drawings to the records whose count is known."""
        for at, (number, drawing, epoch) in placed:
            values = dict(drawing.counters)
            place = Counters(values, first_epoch=0.0 if drawing.from_zero else None, planned=drawing.planned)
            if "epoch" in values:
                place.batch = (at, drawing.bar.total)
            else:
                values["step"] = float(at + bar.before)
                place.planned += (("step", drawing.bar.total),)
                if epoch is not None:  # a heading that comes before the last drawing ends is of the next one
                    values["epoch"] = epoch
            headed = self._records.epoch
            self._take_parsed(number, Parsed(place, dict(drawing.metrics), None, telling=True))
            if "epoch" not in drawing.counters:
                self._records.epoch = headed  # what was drawn above the heading of an epoch does not end it

    def _is_over_epochs(self, drawing: Drawing) -> bool:
        return "epoch" in drawing.counters and self._counts_epochs.get(drawing.bar.total, self._is_at_start)

    def _begins_unheaded_epoch(self, last: _Last) -> bool:
        """Say whether a bar of Keras follows one that ended its epoch, in a log without headings of epochs."""
        before = self._last
        if before is None or not last.keras or self._records.epoch is not None:
            return False
        return any(name.startswith("val_") for name in before.parsed.metrics) and (
            before.parsed.metrics != last.parsed.metrics
        )

    def _is_second_of_epoch(self, drawing: Drawing) -> bool:
        """Say whether a bar without a phase follows the finished one of its epoch, of another length: validation."""
        bar, epoch = drawing.bar, drawing.counters.get("epoch", self._records.epoch)
        if bar.keras or epoch is None or drawing.evaluation or "train" in bar.head.lower():
            return False
        return self._first.is_over(epoch, bar.at, bar.total, tuple(drawing.metrics))

    def _are_all_first(self, at: Floats, total: Floats, epoch: Floats | None) -> bool:
        """Say whether drawings, each of shape (n,), count batches, as many as in the first bar of the epoch."""
        first = self._first
        if epoch is not None and self._counts_epochs.get(int(total[0]), True):
            return False
        if first.epoch is None:
            return True
        if bool(np.any(total != first.total)):
            return False
        first.reaches(first.epoch if epoch is None else float(epoch[-1]), float(at[-1]))
        return True

    def draws_unfinished(self, like: Drawing, at: Floats, total: Floats) -> bool:
        """Say whether drawings of Keras are all of one bar that is not finished yet."""
        return self._finished is None and not like.bar.line and bool(np.all(at != total))

    def many(self, like: Drawing, columns: Sequence[Floats]) -> bool:
        """Take drawings of different steps that follow one another, if they are all like the last one that was taken.

        Each column has the shape (n,): where they are, totals, numbers of the head, counters and metrics.
        """
        behind = 2 + len(like.head)
        counters = dict(zip(like.counters, columns[behind:], strict=False))
        metrics = dict(zip(like.metrics, columns[behind + len(counters) :], strict=True))
        groups = [[name for name in metrics if belongs(name)] for belongs in _GOES_ON]
        shown = [name for name in metrics if name in groups[0] or name in groups[1]]
        others = {name: 0.0 for name in metrics if name not in shown}
        if like.evaluation or (groups[0] and groups[1]) or not others:
            return False
        if not self._are_all_first(columns[0], columns[1], counters.get("epoch")):
            return False
        at, total, size = columns[0], columns[1], len(columns[0])
        bar = self._bars.get((like.words, tuple(float(column[0]) for column in columns[2:behind]), int(total[0])))
        before = 0
        if _counts(like) and "epoch" not in counters:
            before = 0 if bar is None else bar.before
            if bool(np.any(np.diff(at) < 0)) or any(bool(np.any(column != column[0])) for column in columns[1:behind]):
                return False
        self.end()
        batch: list[Floats] = []
        if "epoch" in counters and "step" not in counters:
            batch = [at, total]
        else:
            counters.setdefault("step", np.trunc(at) + before)
            if self._records.epoch is not None:
                counters.setdefault("epoch", np.full(size, self._records.epoch))
        place = Counters(
            dict.fromkeys(counters, 0.0), first_epoch=0.0 if like.from_zero else None, planned=like.planned
        )
        parsed = Parsed(place, others, None, telling=True)
        if not self._records.is_steady(parsed):
            return False
        logged: dict[str, NDArray[np.bool_]] = {}
        if shown:
            last = [np.append(self._shown.get(name, math.nan), metrics[name][:-1]) for name in shown]
            news = np.asarray(np.any([metrics[name] != prior for name, prior in zip(shown, last, strict=True)], axis=0))
            logged = dict.fromkeys(shown, news)
            self._shown |= {name: float(metrics[name][-1]) for name in shown}
        self._records.many(parsed, counters, batch, metrics, logged)
        self._shown_last = {name: float(column[-1]) for name, column in metrics.items()}
        if bar is not None:
            bar.counts.passes(int(at[-1]), self._shown_last)
        return True

    def many_shown_first(self, like: Drawing, columns: Sequence[Floats], begins: Rows) -> bool:
        """Take drawings of a bar that shows metrics before it counts their batch, if each batch drew once.

        The first drawing of `begins` was taken last; that at its end is left.

        `begins` are the first drawings at each count, ascending.
        """
        order, bar, at = self._orders.get(like.words), self._current, columns[0]
        behind = 2 + len(like.head) + len(like.counters)
        metrics = columns[behind:]
        first, last = int(begins[0]), int(begins[-1])
        inside = slice(first, last + 1)
        if order is None or bar is None or not (order.shows_first and order.is_dense and order.drawings == 1):
            return False
        if any(bool(np.any(column[inside] != column[first])) for column in columns[1:behind]):
            return False
        drawn, counted = np.diff(begins) - 1, np.diff(at[begins])
        if bool(np.any(drawn != counted)) or bool(np.any(drawn > MAX_REDRAWS)):
            return False
        if any(bool(np.any(metric[begins[1:]] != metric[begins[1:] - 1])) for metric in metrics):
            return False
        batches = np.setdiff1d(np.arange(first + 1, last - 1), begins)
        steps = at[first] + np.arange(1.0, len(batches) + 1)
        if not len(batches) or not self.many(like, [steps, *(column[batches] for column in columns[1:])]):
            return False
        shown = {name: float(metric[last - 1]) for name, metric in zip(like.metrics, metrics, strict=True)}
        bar.counts.passes(int(at[begins[-2]]), shown, int(drawn[-1]))
        return True

    def heading(self, epoch: float, *, bare: bool) -> None:
        """Take note of a line that names an epoch; under a bare one Keras draws the bars of the next one."""
        self._give_held()
        if bare:
            self._finished = None
        if self._current is not None and self._current.counts.is_finished and self._current.epoch not in (None, epoch):
            self.end()
        if self._last is not None and self._last.parsed.evaluation:
            if self._last.parsed.counters.values.get("epoch", epoch) != epoch:
                self.end()
            return
        last = self._last.parsed.counters.values if self._last is not None and self._last.keras else {"epoch": epoch}
        if last.get("epoch") != epoch:
            if not last and epoch > 1:
                last["epoch"] = epoch - 1  # the log begins inside an epoch, behind its heading
            self.end()

    def end(self) -> None:
        """Give what was drawn last to the records."""
        self._give_held()
        if self._current is not None:
            bar, self._current = self._current, None
            self._place(bar, bar.counts.pause())
        if self._last is not None:
            last, self._last = self._last, None
            self._shown_last = dict(last.parsed.metrics)
            self._take_parsed(last.number, last.parsed, keras=last.keras)

    def _take_parsed(self, number: int, parsed: Parsed, *, keras: bool = False) -> None:
        metrics = parsed.metrics
        for belongs in () if keras else _GOES_ON:
            shown = {name: value for name, value in metrics.items() if belongs(name)}
            # A bar goes on showing the last evaluation: what has not changed is not new.
            if len(metrics) > len(shown) and all(self._shown.get(name) == value for name, value in shown.items()):
                for name in shown:
                    del metrics[name]
            self._shown |= shown
        parsed.drawn = True
        self._records.take(number, parsed)

    def _is_evaluation(self, drawing: Drawing) -> bool:
        """Say whether a bar of Keras is that of `evaluate`, which comes under the heading of the last epoch.

        One as long as that of training lacks the validation of the epoch, or is another whole one without any.
        """
        bar, done = drawing.bar, self._finished
        if done is None:
            self._finished = drawing if bar.at == bar.total and self._records.epoch is not None else None
            self._is_whole = self._last is None or self._last.key != ("epoch", self._records.epoch)
            return False
        before, now = (any(map(is_evaluation, metrics)) for metrics in (done.metrics, drawing.metrics))
        differs = done.metrics.keys() == drawing.metrics.keys() and done.metrics != drawing.metrics
        if bar.line or bar.total != done.bar.total or bar.at < done.bar.total or before > now:
            return True
        if self._is_whole and differs and not before:
            return True
        self._finished = drawing
        return False

    def _is_kept(self, number: int, drawing: Drawing) -> bool:
        """Keep what `evaluate` printed below a line that says how many rows it takes at once; say whether it is so."""
        line, rows, words = self.rows_at_once
        self._evaluates = self._evaluates or words
        if number != line + 1 or words != self._evaluates:
            return False  # of another set, maybe
        return drawing.bar.at != drawing.bar.total or self._records.keeps_by_rows(rows, drawing.metrics)

    def _drawn(self, number: int, drawing: Drawing) -> _Last:
        bar, values, evaluation = drawing.bar, dict(drawing.counters), drawing.evaluation
        place = Counters(values, first_epoch=0.0 if drawing.from_zero else None, planned=drawing.planned)
        parsed = Parsed(place, dict(drawing.metrics), None, telling=True, evaluation=evaluation)
        if bar.keras:
            epoch = self._records.epoch
            if epoch is not None:
                values["epoch"] = epoch
            return _Last(("epoch", epoch), number, parsed, keras=True)
        key = (drawing.words, drawing.head, bar.total)
        if self._is_over_epochs(drawing):
            is_of_plan = abs(bar.at - values["epoch"]) <= 1 and not self._is_at_start
            place.planned = place.planned or (("epoch", bar.total),) * is_of_plan
        elif "epoch" in values and "step" not in values:
            place.batch = (bar.at, bar.total)
        return _Last(key, number, parsed, keras=False)


def _counts(drawing: Drawing) -> bool:
    """Say whether the count of a bar is a step: not that of Keras or of an evaluation, nor where a step is named."""
    return not drawing.bar.keras and not drawing.evaluation and "step" not in drawing.counters


def _of_evaluation(drawing: Drawing, epoch: float) -> Drawing:
    """Return a drawing as one of the evaluation of an epoch."""
    metrics = {evaluation_name(name): value for name, value in drawing.metrics.items()}
    return replace(drawing, evaluation=True, metrics=metrics, counters={**drawing.counters, "epoch": epoch})


_GOES_ON: tuple[Callable[[str], bool], ...] = (is_evaluation, lambda name: name.endswith("_epoch"))
"""What a bar goes on showing after it was measured."""


# The steps of printed dicts, which tell only the epoch: taken from the progress bar around them.
#
# The Trainer prints its dict between two drawings of its bar, so the count of the next drawing is the step. Other bars
# (evaluation, loading weights) and a bar that lags behind are told apart by the epoch, to which steps are proportional.

_MAX_WAITING_DICTS = 50
"""Dicts that wait for the next drawing."""
_MAX_BARS = 10_000
"""Bars, distinguished by their lengths, that are remembered."""
MAX_LAG_OF_BAR = 1.1
"""Times as many steps by the epochs as by the bar: then the bar lags. Chosen by hand."""
MIN_DICTS_OF_OFFSET = 20
"""Epochs from which on it can be seen whether the steps of bars begin where the epochs do. Chosen by hand."""
MAX_ROUNDING = 0.005
"""Epochs by which a printed one is off at most, where it has two digits."""
_MAX_LONGEST_BARS = 5
"""Bars that may be that of training: the longest ones."""


@dataclass(slots=True)
class _Dict:
    row: int
    epoch: float
    regular: bool
    counts: dict[int, int] = field(default_factory=dict)


class Dicts(NamedTuple):
    """Dicts in order, each of shape (n,): their records, epochs (NaN for none), whether they have a training loss."""

    rows: Rows
    epochs: Floats
    regular: NDArray[np.bool_]

    def chosen(self, which: slice | NDArray[np.bool_]) -> Dicts:
        """Return some of them."""
        return Dicts(self.rows[which], self.epochs[which], self.regular[which])


class BarSteps:
    """Watches bars and dicts as they come."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._longest: list[int] = []
        self._waiting: deque[_Dict] = deque()
        self._events: list[_Dict] = []
        # Of the dicts that wait no more, by their records: the epoch (NaN for none), whether they have a training
        # loss, and what each bar showed.
        self._epochs = Column()
        self._regular = Column()
        self._shown: dict[int, Column] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> BarSteps:
        other = BarSteps()
        other._longest = self._longest  # replaced, never changed
        other._counts, other._events = self._counts.copy(), self._events.copy()
        # A dict changes only while bars are drawn below it.
        other._waiting = self._waiting.copy()
        other._epochs, other._regular = self._epochs.copy(), self._regular.copy()
        other._shown = {total: column.copy() for total, column in self._shown.items()}
        return other

    def bar(self, head: str, count: int, total: int) -> None:
        """Take a drawing of a bar that reports no metrics. The Trainer's own has no description before it."""
        if not may_train(head):
            return
        if total not in self._counts:
            if len(self._counts) >= _MAX_BARS:
                return
            self._longest = sorted((*self._longest, total), reverse=True)[:_MAX_LONGEST_BARS]
        self._counts[total] = count
        for waiting in self._waiting:
            waiting.counts[total] = count
        if self._waiting and total == self._longest[0]:
            self._keep_waiting(0)

    def printed(self, row: int, epoch: float | None, *, regular: bool) -> None:
        """Take a dict without a step: the record at `row`. A regular one has a training loss."""
        epoch_or_nan = float("nan") if epoch is None else epoch
        self._waiting.append(_Dict(row, epoch_or_nan, regular, {total: self._counts[total] for total in self._longest}))
        if len(self._waiting) > _MAX_WAITING_DICTS:
            self._keep_waiting(_MAX_WAITING_DICTS)

    def printed_many(self, dicts: Dicts) -> None:
        """Take dicts without a step between which no bar is drawn."""
        done = max(0, len(dicts.rows) - _MAX_WAITING_DICTS)
        if done:
            self._keep_waiting(0)
            self._keep(dicts.chosen(slice(done)), {})
        left = (column[done:].tolist() for column in dicts)
        for row, epoch, has_loss in zip(*left, strict=True):
            self.printed(row, epoch, regular=has_loss)

    def printed_before(self, dicts: Dicts, counts: Floats, total: int) -> bool:
        """Take dicts without a step each with the longest bar drawn below it; return whether it is that bar.

        `counts` is what the next drawing below each of them shows, shape (n,), and `total` where the bar ends.
        """
        most = int(np.unique(counts, return_counts=True)[1].max())
        if not self._longest or total != self._longest[0] or most + len(self._waiting) > _MAX_WAITING_DICTS:
            return False
        for waiting in self._waiting:
            waiting.counts[total] = int(counts[0])
        self._keep_waiting(0)
        self._keep(dicts, {total: counts})
        self._counts[total] = int(counts[-1])
        return True

    def _keep(self, dicts: Dicts, counts: Mapping[int, Floats]) -> None:
        """Take dicts that wait for no bar any more; `counts` are what bars show that were drawn below them."""
        parts, size = stretches_of(dicts.rows), len(dicts.rows)
        self._epochs.extend(parts, dicts.epochs)
        self._regular.extend(parts, dicts.regular.astype(float))
        for total in self._longest:
            shown = counts[total] if total in counts else np.full(size, float(self._counts[total]))
            self._shown.setdefault(total, Column()).extend(parts, shown)

    def _keep_waiting(self, count: int) -> None:
        """Let only the last dicts wait on."""
        while len(self._waiting) > count:
            oldest = self._waiting.popleft()
            self._epochs.append(oldest.row, oldest.epoch)
            self._regular.append(oldest.row, float(oldest.regular))
            for total, shown in oldest.counts.items():
                if total not in self._shown:
                    self._shown[total] = Column()
                self._shown[total].append(oldest.row, shown)

    def event(self, row: int) -> None:
        """Take an event between records, such as a skipped step: the bar before it tells its step."""
        counts = self._counts.copy() if len(self._counts) <= _MAX_LONGEST_BARS else {}
        self._events.append(_Dict(row, float("nan"), regular=False, counts=counts))

    def settle(self, builder: RunBuilder) -> None:
        """Give the records their steps, if a bar tells them; if one exists and does not, say so."""
        if not self._counts:
            self._epochs, self._regular = Column(), Column()  # a long log's need much memory
            return
        last = min((waiting.row for waiting in self._waiting), default=builder.rows)  # no bar is drawn from it on
        self._keep_waiting(0)
        rows, epochs = self._epochs.arrays()
        regular = self._regular.values() > 0
        dicts = Dicts(rows, epochs, regular).chosen(epochs > 0)
        records_by_total = {
            total: int(np.isin(column.arrays()[0], dicts.rows).sum()) for total, column in self._shown.items()
        }
        # Most bars of a long log stand by few of its records, and are no bar of training: look at the others alone.
        for total in sorted(
            (total for total, times in records_by_total.items() if 0 < times * 2 >= len(dicts.rows)), reverse=True
        ):
            steps = self._steps(dicts, total)
            if steps is not None:
                if total == self._longest[0]:
                    followed = dicts.rows < last
                    steps = steps - followed * _ahead(dicts.epochs[followed], steps[followed])
                first = rows[regular][0] if regular.any() else 0
                before = rows[(rows < first) & (epochs == 0)]  # evaluations of epoch 0 that came before training
                at, counts = self._of_events(total)
                where = np.concatenate([at, before, dicts.rows])
                builder.overwrite_steps(where, np.concatenate([counts, np.zeros(len(before)), steps]))
                builder.note("the printed records tell no step: it is read from the progress bar around them")
                return
        if len(rows) < 2 and self._events and len(self._counts) == 1:  # nothing else it could be
            (total,) = self._counts
            at, counts = self._of_events(total)
            shown, count = self._shown[total].arrays() if total in self._shown else (rows[:0], epochs[:0])
            builder.overwrite_steps(np.concatenate([at, shown]), np.concatenate([counts, count]))
            builder.note("the printed records tell no step: it is read from the progress bar around them")
        elif (steps := self._from_epochs(dicts)) is not None:
            builder.overwrite_steps(dicts.rows, steps)
            builder.note(
                "the printed records tell no step: it is worked out from their epoch and the length of the bar"
            )
        elif len(dicts.rows) and self._counts:
            builder.note("the printed records tell no step, and the progress bar does not fit them: epochs are used")

    def _of_events(self, total: int) -> tuple[Rows, Floats]:
        """Return the records that are events and what a bar showed at them."""
        events = [event for event in self._events if total in event.counts]
        rows = np.array([event.row for event in events], dtype=np.int64)
        return rows, np.array([float(event.counts[total]) for event in events])

    def _from_epochs(self, dicts: Dicts) -> Floats | None:
        """Return the steps where stdout came in bursts, so that no bar stands by its record.

        The bar of training is the longest that was finished, and the last epoch is its end: a whole one, or one that
        makes the steps of an epoch whole. Epochs printed with two
        digits are too coarse to tell the step; then records at one interval are counted.
        """
        finished = [total for total, count in self._counts.items() if count == total]
        if not finished or not len(dicts.rows):
            return None
        last = float(dicts.epochs.max())
        per_epoch = max(finished) / last
        if last != round(last) and abs(per_epoch - round(per_epoch)) > 1e-3 * per_epoch:
            return None
        steps = np.round(dicts.epochs * per_epoch)
        logged = np.flatnonzero(dicts.regular)
        interval = float(max(finished) // max(len(logged), 1))
        slack = 0.0051 * per_epoch + 1
        counted = interval * np.arange(1, len(logged) + 1)
        if bool(np.all(np.abs(counted - dicts.epochs[logged] * per_epoch) <= slack)):
            steps[logged] = counted
        return steps if len(distinct(steps)) * 2 > len(steps) else None

    def _steps(self, dicts: Dicts, total: int) -> Floats | None:
        """Return the step of each record if those of this bar are proportional to the epochs."""
        rows, counts = self._shown[total].arrays()
        count = np.zeros(len(dicts.rows))
        count[np.isin(dicts.rows, rows)] = counts[np.isin(rows, dicts.rows)]
        has_count = count != 0
        if np.count_nonzero(has_count) < max(2, len(has_count) / 2) or len(distinct(count[has_count])) == 1:
            return None
        per_epoch = median(count[has_count] / dicts.epochs[has_count])
        # Epochs are printed rounded, to two or to four digits: both this one and the one that gave `per_epoch`.
        slack = 1 + 0.01 * per_epoch
        fits = has_count & (np.abs(count - dicts.epochs * per_epoch) <= slack + 0.02 * count)
        # Evaluations may stand by a later drawing; then their epoch tells the step.
        regular = dicts.regular if dicts.regular.any() else np.ones(len(has_count), dtype=np.bool_)
        sure = fits & regular
        if np.count_nonzero(sure) * 10 < np.count_nonzero(regular) * 9:
            return None
        counted: Floats = np.where(fits, count, np.round(dicts.epochs * per_epoch))
        # A bar that is drawn more seldom than dicts are printed stands still between two of them; late in the run it is
        # the smallest share of the steps that it lags by.
        late = has_count & (dicts.epochs == dicts.epochs[has_count].max())
        drawn_seldom: Floats = np.round(dicts.epochs * (count[late] / dicts.epochs[late]).max())
        apart = [len(distinct(steps[sure])) for steps in (counted, drawn_seldom)]
        return drawn_seldom if apart[1] > MAX_LAG_OF_BAR * apart[0] else counted


def _ahead(epochs: Floats, steps: Floats) -> float:
    """Return how many steps the bars below dicts count beyond those of the dicts: 0 where the Trainer drew them.

    A console that keeps each drawing once has none below a dict but that of the next step, and steps that begin at 1.
    The epochs are rounded to two digits or more, which hides less than a step in many records. All have the shape (n,).
    """
    if len(distinct(epochs)) < MIN_DICTS_OF_OFFSET:
        return 0.0
    slope, offset = np.polyfit(epochs, steps, 1)
    spread = float(np.std(steps - slope * epochs - offset))
    is_sure = spread <= MAX_ROUNDING * slope and abs(offset - round(offset)) + 6 * spread / math.sqrt(len(steps)) < 0.5
    return max(0.0, float(round(offset))) if is_sure else 0.0


def may_train(head: str) -> bool:
    """Say whether a bar may be that of training by what stands before it."""
    return not any(map(str.isalpha, head)) or head.strip().lower().startswith("train")
