"""What lines hold → records: one line at a time, or many of one shape or of several shapes that take turns.

Lines of a known shape are found by their skeletons, a block at a time, and taken without being read again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.logs.attempts import tells_resume
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.endings import is_error
from mldebug_mcp.logs.line_prefixes import ROW_MARK, records_in, without_prefix
from mldebug_mcp.logs.names.metrics import SUMMARY_MARKS, canonical, name_in_record
from mldebug_mcp.logs.numbers import HUGE, NO_DIGITS, to_number
from mldebug_mcp.logs.settings.settings import MAX_OBJECT
from mldebug_mcp.logs.text.assembler import Assembler, Lot, carried
from mldebug_mcp.logs.text.counters import RichBar, bar_in, is_fastprogress
from mldebug_mcp.logs.text.drawn_bars import BarSteps, Dicts, DrawnBars, may_train
from mldebug_mcp.logs.text.line_shape import Read, Shape, learn
from mldebug_mcp.logs.text.pairs import evaluation_name
from mldebug_mcp.logs.text.parsed_line import (
    MAX_LINES,
    Drawing,
    Histories,
    LineContent,
    Parsed,
    dict_in,
    history_in,
    is_bare_pair,
    is_record,
    object_in,
    parse_line,
)
from mldebug_mcp.logs.text.skeletons import MARKS, ODD, Layouts, Skeletons
from mldebug_mcp.logs.text.tables import Layout, Table, is_rule

# Printed dicts → records: those of one line, and those that were printed or wrapped over several.

_NUMBERS = " \t0123456789.,+-eE[]()"
"""What a line of a dict is made of that holds but values of a list, besides these words."""
_WORDS = regex(r"\b(?:(?:np\.|numpy\.)?float\d+|tensor|None|null|nan|inf(?:inity)?)\b", re.IGNORECASE)


_ANEW = regex(r"""[^'"{}\[\]]{0,60}\{\s?['"]""")
"""A line in which a dict begins that is in no other."""


class PrintedDicts:
    """Gathers the lines of a dict and gives whole ones to the records.

    What bars have drawn ends before a dict; `bar_steps` is notified of dicts without a step.
    """

    def __init__(self, records: Assembler, bars: DrawnBars, bar_steps: BarSteps) -> None:
        self._records = records
        self._bars = bars
        self._bar_steps = bar_steps
        self.histories = Histories()
        self._lines: list[str] = []
        self._characters = 0
        self._brackets = 0
        self._braces = 0
        self._evaluation = False

    @property
    def open(self) -> bool:
        """Whether a dict has begun on a line above and not ended yet."""
        return bool(self._lines)

    def begin(self, message: str, *, evaluation: bool) -> None:
        """Take the line in which a dict begins; `evaluation` says that it stands under the heading of one."""
        self._evaluation = evaluation
        self._lines, self._characters, self._brackets = [message], 0, _opened(message)
        self._braces = max(1, _opened(message, "{}"))

    def go_on(self, number: int, line: str) -> bool:
        """Read on in the open dict, which a terminal may have wrapped within a number; say whether this is of it."""
        if self._brackets <= 0 and _ANEW.match(line) and not self._lines[-1].rstrip().endswith((":", "(")):
            self.end(number)  # the closing brace is lost
            return False
        self._lines.append(line)
        self._characters += len(line)
        is_item = "'" in line or '"' in line or "}" in line or is_bare_pair(line)
        goes_on = is_item and len(self._lines) < MAX_LINES
        in_list = self._brackets > 0 and self._characters < MAX_OBJECT and not _WORDS.sub("", line).strip(_NUMBERS)
        self._brackets += _opened(line)
        self._braces += _opened(line, "{}")
        if self._braces > 0 and (goes_on or in_list):
            return True
        lines, self._lines = self._lines, []
        part = "}" in line
        self._gathered(number, lines if part else lines[:-1])
        return part

    def end(self, number: int = 0) -> None:
        """End the dict that is open, if one is, above the line of this number."""
        lines, self._lines = self._lines, []
        if lines:
            self._gathered(number, lines)

    def _gathered(self, number: int, lines: list[str]) -> None:
        text = "".join(lines)
        history, record = history_in(text), dict_in(text)
        counters = parse_line(text.partition("{")[0]).counters.values if record else {}
        record = {**counters, **record} or object_in(text)
        if history:
            self.histories.take(history)
        elif is_record(record):
            named = {evaluation_name(name): value for name, value in record.items()} if self._evaluation else record
            self.take(number, named)

    def take(self, number: int, record: dict[str, object]) -> None:
        """Take a dict of metrics."""
        self._bars.end()
        row = self._records.whole(number, record)
        if row is not None and not any(canonical(name) == "step" for name in record):
            self._bar_steps.printed(row, to_number(record.get("epoch")), regular="loss" in record)


def _opened(line: str, brackets: str = "[]") -> int:
    """Return how many brackets a line opens and leaves open, those of lists or, as "{}", of dicts."""
    return line.count(brackets[0]) - line.count(brackets[1])


# Lines of several shapes that take turns → records, all at once: training, with an evaluation every so often.
#
# What may hang on lines above or below, the first record and the last one, is taken by itself.

Lines = NDArray[np.int64]


class Part(NamedTuple):
    """Lines of one shape among those that are taken together.

    Args:
        shape: Their shape.
        at: Which of the lines they are, ascending, shape (n,).
        rows: The numbers in them, shape (n, numbers).
    """

    shape: Shape
    at: Lines
    rows: Floats

    def between(self, first: int, last: int) -> Part:
        """Return those of the lines first <= line < last, counted from 0 again."""
        low, high = np.searchsorted(self.at, (first, last))
        return Part(self.shape, self.at[low:high] - first, self.rows[low:high])


def counters_of(shape: Shape) -> frozenset[str] | None:
    """Return the counters of lines that are each a record, but for the epoch; None if they are no such lines.

    Dicts and drawings of bars without metrics have none: they go with lines of any counter.
    """
    like = shape.like
    if shape.only_counts:
        return frozenset()
    if like.drawing is not None or (like.record is None) == (like.plain is None):
        return None
    if like.plain is not None:
        counters = like.plain.counters
        steady = like.plain.telling and counters.batch is None and not counters.rounded and like.plain.metrics
        return (frozenset(counters.values) - {"epoch"} or frozenset({"epoch"})) if steady and counters.values else None
    names = like.record or {}
    sure = SUMMARY_MARKS.isdisjoint(names) and len({name_in_record(name, names) for name in names}) == len(names)
    return frozenset() if sure else None


def which_go(shape: Shape, rows: Floats, widths: Lines) -> NDArray[np.bool_]:
    """Say which lines of a shape can be taken with others, shape (n,).

    Their numbers, and with how many bytes these are written, have the shape (n, numbers).
    """
    fit = shape.which_fit(rows, widths)
    columns = shape.columns(rows)
    if shape.only_counts:
        counters, least = columns[:2], 0.0
    else:
        like = shape.like.plain
        names = list(shape.like.record or {}) if like is None else list(like.counters.values)
        counters = [column for name, column in zip(names, columns, strict=False) if like is not None or name == "epoch"]
        least = -HUGE
    for column in counters:  # one that is NaN is no counter
        fit &= (column >= least) & (column <= HUGE)
    return fit


class MixedLines:
    """Takes lines of several shapes at once.

    Drawings of bars and dicts without a step go to `bar_steps`.
    """

    def __init__(self, assembler: Assembler, bar_steps: BarSteps, take: Callable[[int, LineContent], object]) -> None:
        self._assembler = assembler
        self._bar_steps = bar_steps
        self._take = take

    def take(self, numbers: Lines, parts: Sequence[Part]) -> bool:
        """Take lines that follow one another, if that gives what taking each of them would give.

        `counters_of` and `which_go` have been asked for their shapes.
        """
        telling = [part for part in parts if not part.shape.only_counts]
        plain = [part.shape.like.plain for part in telling]
        echoes = [like is not None and self._assembler.ranks.is_echo(like) for like in plain]
        heard = [part for part, echo in zip(telling, echoes, strict=True) if not echo]
        bars = [part for part in parts if part.shape.only_counts]
        if not telling:
            _Drawings(bars, np.empty(0, dtype=np.int64), self._bar_steps).draw(len(numbers))
            return True
        if any(like is not None and self._assembler.counts_batches(like) for like in plain):
            return False
        if len(parts) > 1 and any(like is not None and like.label for like in plain):
            return False  # a line under a label may be a series of its own
        lots = [_lot(part, 0, int(part.at[-1]) + 1, part.at, part.at) for part in heard]
        if not heard or not self._assembler.keeps_loss(lots) or _counts_passes(heard):
            return False
        for part, like, echo in zip(telling, plain, echoes, strict=True):
            if like is not None and echo:
                self._assembler.ranks.leave_out(like, *_columns_by_name(part.shape, part.rows, like))
        self._take_heard(numbers, heard, bars)
        return True

    def _take_heard(self, numbers: Lines, parts: Sequence[Part], bars: Sequence[Part]) -> None:
        of, row = np.full(len(numbers), -1), np.zeros(len(numbers), dtype=np.int64)
        for place, part in enumerate(parts):
            of[part.at], row[part.at] = place, np.arange(len(part.at))
        at = np.flatnonzero(of >= 0)
        drawings = _Drawings(bars, at, self._bar_steps)

        def say(index: int) -> LineContent:
            part = parts[int(of[at[index]])]
            content: LineContent | None = part.shape.content(part.rows[row[at[index]]].tolist())
            assert content is not None  # noqa: S101 - its counters have been looked at
            return content

        def take_by_hand(index: int) -> None:
            drawings.draw(int(at[index]))
            self._take(int(numbers[at[index]]), say(index))

        take_by_hand(0)
        first = 1
        while first < len(at) and self._assembler.goes_on(say(first).plain):
            take_by_hand(first)
            first += 1
        joins = self._joins(parts, of[at[first:]], at[first:])
        last = first + int(np.flatnonzero(~joins)[-1]) if len(joins) else first
        if last > first:
            self._take_inside(parts, drawings, at[first:last], joins[: last - first])
        for index in range(last, len(at)):
            take_by_hand(index)
        drawings.draw(len(numbers))

    def _take_inside(self, parts: Sequence[Part], drawings: _Drawings, at: Lines, joins: NDArray[np.bool_]) -> None:
        """Take lines that hang on no others, some of them joining the one above."""
        record = np.cumsum(~joins) - 1
        lots = [_lot(part, int(at[0]), int(at[-1]) + 1, at, record) for part in parts]
        first = self._assembler.many_together([lot for lot in lots if len(lot.rows)], int(record[-1]) + 1)
        dicts = [lot for lot in lots if lot.like is None and len(lot.rows)]
        without = [lot for lot in dicts if not any(canonical(column) == "step" for column in lot.columns)]
        if not without:
            return
        rows = np.concatenate([lot.rows for lot in without])
        epochs = np.concatenate([lot.columns.get("epoch", np.full(len(lot.rows), np.nan)) for lot in without])
        regular = np.concatenate([np.full(len(lot.rows), lot.regular) for lot in without])
        order = np.argsort(rows)
        lines = at[np.searchsorted(record, rows[order])]
        drawings.draw_around(lines, Dicts(first + rows[order], epochs[order], regular[order]))

    def _joins(self, parts: Sequence[Part], of: Lines, at: Lines) -> NDArray[np.bool_]:
        """Say which lines belong to the record of the line above them, as they name the same step; the first does not.

        `of` says which part each line is of, `at` which line it is; both have the shape (n,).
        """
        joins = np.zeros(len(at), dtype=np.bool_)
        if len(parts) == 1 or not len(at):
            return joins
        order = np.arange(len(at))
        lots = [_lot(part, int(at[0]), int(at[-1]) + 1, at, order) for part in parts]
        is_plain = np.array([lot.like is not None for lot in lots])[of]
        alike = is_plain[1:] & is_plain[:-1]
        for name in {name for part in parts for name in _counters(part)} - {"epoch"}:
            values = np.full(len(at), np.nan)
            for lot in lots:
                if lot.like is not None:
                    values[lot.rows] = lot.columns[name]
            alike &= values[1:] == values[:-1]
        epochs = carried(lots, len(at), self._assembler.epoch)
        alike &= (epochs[1:] == epochs[:-1]) | np.isnan(epochs[:-1])
        names = [frozenset() if lot.like is None else frozenset(lot.like.metrics) for lot in lots]
        names_of_record: frozenset[str] = frozenset()
        last = -1
        for index in (np.flatnonzero(alike) + 1).tolist():
            names_of_record = names_of_record if last == index - 1 else names[of[index - 1]]
            more = names[of[index]]
            joins[index] = names_of_record.isdisjoint(more)
            names_of_record, last = names_of_record | more if joins[index] else more, index
        return joins


class _Drawings:
    """Drawings of bars without metrics, where only the first and last count between two records.

    `at` says which lines are records.
    """

    def __init__(self, parts: Sequence[Part], at: Lines, bar_steps: BarSteps) -> None:
        self._bar_steps = bar_steps
        lines = np.concatenate([np.empty(0, dtype=np.int64), *(part.at for part in parts)])
        kinds = np.concatenate([np.empty(0), *(np.full(len(part.at), kind) for kind, part in enumerate(parts))])
        columns = [part.shape.columns(part.rows)[:2] for part in parts]
        counts, totals = (np.concatenate([np.empty(0), *(column[place] for column in columns)]) for place in (0, 1))
        order = np.argsort(lines)
        keys = [column[order] for column in (kinds, np.trunc(totals), np.searchsorted(at, lines))]
        differs = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        kept = order[np.append(True, differs) | np.append(differs, True)] if len(order) else order
        heads = [part.shape.like.drawing.bar.head if part.shape.like.drawing is not None else "" for part in parts]
        self._lines: list[int] = lines[kept].tolist()
        self._heads = [heads[int(kind)] for kind in kinds[kept].tolist()]
        self._counts: list[float] = counts[kept].tolist()
        self._totals: list[float] = totals[kept].tolist()
        self._next = 0

    def draw(self, line: int) -> None:
        """Draw those above a line."""
        while self._next < len(self._lines) and self._lines[self._next] < line:
            index = self._next
            self._bar_steps.bar(self._heads[index], int(self._counts[index]), int(self._totals[index]))
            self._next += 1

    def draw_around(self, lines: Lines, dicts: Dicts) -> None:
        """Draw those above and between dicts that tell no step, on these lines."""
        self.draw(int(lines[0]))
        above = np.searchsorted(self._lines, lines)
        followed = self._print_before(above, dicts)
        edges = np.flatnonzero(np.diff(above[followed:])) + 1 + followed
        for start, end in pairwise([followed, *edges.tolist(), len(lines)]):
            self.draw(int(lines[start]))
            self._bar_steps.printed_many(dicts.chosen(slice(start, end)))

    def _print_before(self, above: Lines, dicts: Dicts) -> int:
        """Take the dicts below which a drawing stands, if all are of the bar of training; return how many were taken.

        `above` says how many drawings stand above each of the dicts, shape (n,).
        """
        first, last = self._next, int(above[-1])
        followed = int(np.searchsorted(above, last))
        if not followed or len({*self._totals[first:last]}) > 1 or len({*self._heads[first:last]}) > 1:
            return 0
        counts, total = np.trunc(self._counts[first:last])[above[:followed] - first], int(self._totals[first])
        taken = may_train(self._heads[first]) and self._bar_steps.printed_before(
            dicts.chosen(slice(followed)), counts, total
        )
        self._next = last if taken else first
        return followed if taken else 0


def _counts_passes(parts: Sequence[Part]) -> bool:
    """Say whether lines count passes of several lengths, one of them maybe an evaluation."""
    plain = [like for part in parts if (like := part.shape.like.plain) is not None]
    return len({like.counters.total for like in plain} - {None}) > 1


def _counters(part: Part) -> list[str]:
    like = part.shape.like.plain
    return [] if like is None else list(like.counters.values)


def _lot(part: Part, first: int, last: int, at: Lines, record: Lines) -> Lot:
    """Return the lines of a part that are first <= line < last as records.

    `at` are the lines that are records or parts of one, `record` the record of each of those.
    """
    low, high = np.searchsorted(part.at, (first, last))
    columns, like = part.shape.columns(part.rows[low:high]), part.shape.like
    rows = record[np.searchsorted(at, part.at[low:high])]
    if like.plain is not None:
        return Lot(
            like.plain, dict(zip((*like.plain.counters.values, *like.plain.metrics), columns, strict=True)), rows
        )
    names = like.record or {}
    renamed = (name_in_record(name, names) for name in names)
    return Lot(None, dict(zip(renamed, columns, strict=True)), rows, regular="loss" in names)


def _columns_by_name(shape: Shape, rows: Floats, like: Parsed) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the counters and the metrics of lines of one shape, by name, each of shape (n,)."""
    columns = shape.columns(rows)
    counters, metrics = columns[: len(like.counters.values)], columns[len(columns) - len(like.metrics) :]
    return dict(zip(like.counters.values, counters, strict=True)), dict(zip(like.metrics, metrics, strict=True))


# What lines say → records: one line at a time, or many of one shape together.

MIN_LINES_TOGETHER = 32
"""Lines of one shape from which on they are taken together."""
MAX_ROUNDING = 6e-4
"""How far a loss of three decimals may be from the same one with more. Chosen: half of the last one, and a bit."""
BELOW_HEADING = 5
"""Lines under the heading of an evaluation that belong to it."""


class Records:
    """Gives what lines say to those who put records together."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self.assembler = Assembler(builder)
        self.bars = DrawnBars(self.assembler)
        self.bar_steps = BarSteps()
        self.dicts = PrintedDicts(self.assembler, self.bars, self.bar_steps)
        self.together = MixedLines(self.assembler, self.bar_steps, self.take)
        self._evaluated_loss = (-1, 0.0)  # the last line that tells nothing but the loss of an evaluation, and that
        self._evaluated_from = 0  # the line of the heading under which an evaluation stands, 0 if none does
        self._passes_below: tuple[float | None, float] | None = None  # the epoch and batches of one that counts these

    def head(self, number: int, *, evaluation: bool) -> None:
        """Take note of a line that heads an evaluation, or training again."""
        self._evaluated_from = number * evaluation
        self._passes_below = None

    def head_closing(self) -> None:
        """Take note of a line that heads evaluations of trained weights."""
        self.bars.end()
        self.assembler.begin_closing()

    def under_heading(self, number: int) -> bool:
        """Say whether a line stands below the heading of an evaluation."""
        return self._evaluated_from > max(0, number - BELOW_HEADING)

    def take(self, number: int, content: LineContent) -> bool:
        """Take what a line says; return whether it says anything."""
        drawing = content.drawing
        if drawing is not None:
            if drawing.telling:
                self.bars.take(number, drawing)
            else:
                self.bar_steps.bar(drawing.bar.head, drawing.bar.at, drawing.bar.total)
        if content.opens:
            self.dicts.begin(content.opens, evaluation=self.under_heading(number))
        elif content.record is not None:
            if content.record:
                self.dicts.take(number, content.record)
        elif content.history:
            self.dicts.histories.take(content.history)
        elif content.skipped is not None:
            self.assembler.flush()
            self.bar_steps.event(self._builder.rows)
            self._builder.numbers(content.skipped, event=True)
        else:
            return (content.plain is not None and self._take_plain(number, content.plain)) or drawing is not None
        return True

    def take_numbers(self, number: int, shape: Shape, numbers: Sequence[float]) -> bool:
        """Take a line by its shape and its numbers; return False if it has to be read."""
        like = shape.like
        plain = like.plain
        if shape.aside and self.assembler.passes_over(number, known=shape.known):
            return not self.under_heading(number)
        if plain is not None and like.drawing is None and self.assembler.ranks.is_echo(plain):
            self._take_echo(plain, shape.content(numbers))
            return True
        if shape.only_counts:
            at, total = (slot.of(numbers) for slot in shape.slots[:2])
            if like.drawing is None or not (0 <= at <= HUGE and 0 <= total <= HUGE):
                return False
            self.bar_steps.bar(like.drawing.bar.head, int(at), int(total))
            return True
        content = shape.content(numbers)
        if content is None or (plain is not None and not plain.counters.values and self.under_heading(number)):
            return False
        self.take(number, content)
        return True

    def leave_out(
        self, shapes: Mapping[int, Shape | None], places: Lines, rows: Callable[[NDArray[np.bool_]], Floats]
    ) -> NDArray[np.bool_]:
        """Take the lines where only their number counts, or nothing, if what is open does not hang on them.

        Those are lines that other ranks print alike, and lines of numbers that nobody knows. Return which are left.

        `shapes` has that of each place, None where it is not known; `rows` returns the numbers of lines that are alike.
        """
        left = np.ones(len(places), dtype=np.bool_)
        likes = {place: shape.like for place, shape in shapes.items() if shape is not None}
        bars = any(like.drawing is not None for like in likes.values())
        heads = any(like.plain is not None and _heads(like.plain) for like in likes.values())
        if len(likes) < len(shapes) or bars or self.bars.open or self._evaluated_from:
            return left
        for place, like in likes.items():
            shape = shapes[place]
            if like.plain is None or shape is None:
                continue
            if self.assembler.ranks.is_echo(like.plain):
                here = places == place
                left &= ~here
                self.assembler.ranks.leave_out(like.plain, *_columns_by_name(shape, rows(here), like.plain))
            elif shape.aside and not shape.known and not heads and not self.assembler.under_heading:
                left &= places != place
        return left

    def _take_echo(self, like: Parsed, content: LineContent | None) -> None:
        if like.counters.values:
            self._evaluated_from = 0
        self.bars.end()
        if content is not None and content.plain is not None:
            self.assembler.ranks.echoes(content.plain)

    def _take_plain(self, number: int, parsed: Parsed) -> bool:
        counters = parsed.counters
        if counters.values or counters.batch:
            batch = self._batch_of(parsed)
            goes_on = not parsed.evaluation and self._goes_on_evaluating(number, counters.values, batch)
            if self._passes_below is not None and not (goes_on or parsed.sums_up):
                self.assembler.end_pass()
            if counters.values:
                bare = parsed.evaluation and not parsed.metrics and counters.batch is None
                self.head(number, evaluation=bare or (goes_on and not parsed.telling))
            self._passes_below = (self.assembler.epoch, batch[1]) if goes_on and batch else None
            parsed = self._as_evaluation(parsed, batch) if goes_on and parsed.telling else parsed
        if parsed.telling:
            self._take_parts_of_evaluation(number, parsed)
            self.bars.end()
        elif "epoch" in counters.values:
            bare = not parsed.metrics and not counters.rest.strip(" |:-")
            self.bars.heading(counters.values["epoch"], bare=bare)
        if not parsed.metrics and not counters.values:
            return False
        if rows := parsed.metrics.get("eval_batch_size"):
            self.bars.rows_at_once = (number, rows, counters.rest.translate(NO_DIGITS))
        self.assembler.take(number, parsed)
        return True

    def _batch_of(self, parsed: Parsed) -> tuple[int, int] | None:
        """Return the batch of a line and how many there are, also where it stands alone below its epoch: "10/200"."""
        if parsed.counters.batch or not self.assembler.counts_batches(parsed):
            return parsed.counters.batch
        return int(parsed.counters.values["step"]), parsed.counters.total or 0

    def _goes_on_evaluating(self, number: int, counters: Mapping[str, float], batch: tuple[int, int] | None) -> bool:
        """Say whether a line below the heading of an evaluation tells the step or epoch under way: "Epoch 3: loss 0.5".

        So does one that counts on batches of the same evaluation.
        """
        if counters.get("epoch", self.assembler.epoch) != self.assembler.epoch:
            return False
        if batch is None and counters.get("step", self.assembler.step) != self.assembler.step:
            return False
        below = self._evaluated_from == number - 1 > 0
        return below or (batch is not None and self._passes_below == (self.assembler.epoch, batch[1]))

    def _as_evaluation(self, parsed: Parsed, batch: tuple[int, int] | None) -> Parsed:
        """Return a line as one of an evaluation, at its batch, if it does not speak of training itself."""
        if any(name.lower().startswith("train") for name in parsed.metrics):
            return parsed
        metrics = {evaluation_name(name): value for name, value in parsed.metrics.items()}
        counters, epoch = parsed.counters, self.assembler.epoch
        if batch and counters.batch is None and epoch is not None:
            counters = replace(counters, values={"epoch": epoch}, batch=batch)
        return replace(parsed, counters=counters, metrics=metrics, evaluation=True)

    def _take_parts_of_evaluation(self, number: int, parsed: Parsed) -> None:
        """Take a line below "Val loss: 2.407" that repeats its loss, "l1: 1.2 kl: 0.02 loss: 2.407", for its parts."""
        (above, before), loss = self._evaluated_loss, parsed.metrics.get("loss")
        counted = parsed.counters.values or parsed.counters.batch
        parts = {evaluation_name(name): value for name, value in parsed.metrics.items() if name != "loss"}
        if loss is not None and number == above + 1 and abs(loss - before) <= MAX_ROUNDING and parts and not counted:
            parsed.metrics = parts
        if [canonical(name) for name in parsed.metrics] == ["eval_loss"]:
            self._evaluated_loss = number, next(iter(parsed.metrics.values()))

    def take_many(self, numbers: Lines, shape: Shape, rows: Floats) -> int:
        """Take lines of one shape that follow one another, as far as that gives what taking each of them would give.

        Args:
            numbers: Line numbers, shape (n,).
            shape: Their shape.
            rows: The numbers that stand in them, shape (n, numbers).

        Returns:
            How many of them were taken, from the first one on.
        """
        like = shape.like
        if like.drawing is None and like.record is None and like.plain is not None:
            return self._take_lines(numbers, shape, rows, like.plain)
        if like.record is None and like.plain is None and like.drawing is not None and like.drawing.telling:
            return self._take_drawings(numbers, shape, rows, like.drawing)
        return 0

    def _take_at(self, index: int, numbers: Lines, shape: Shape, rows: Floats) -> None:
        content = shape.content(rows[index].tolist())
        assert content is not None  # noqa: S101 - its counters have been looked at
        self.take(int(numbers[index]), content)

    def _take_lines(self, numbers: Lines, shape: Shape, rows: Floats, like: Parsed) -> int:
        columns = shape.columns(rows)
        counters, columns = columns[: len(like.counters.values)], columns[len(like.counters.values) :]
        batch, columns = (columns[:2], columns[2:]) if like.counters.batch is not None else ([], columns)
        if shape.aside:
            return self._take_asides(numbers, shape, rows)
        if like.telling and not counters and not batch:
            return self._take_uncounted(numbers, shape, rows, like)
        if not counters or not _are_counters(batch):
            return 0
        if self._passes_below is not None or self._evaluated_from == numbers[0] - 1 > 0:
            self._take_at(0, numbers, shape, rows)
            return 1
        # The first line may belong to what stands above, and what follows to the last one.
        self._take_at(0, numbers, shape, rows)
        if not self.assembler.is_steady(like):
            return 1
        inside = slice(1, -1)
        self.assembler.many(
            like,
            {name: column[inside] for name, column in zip(like.counters.values, counters, strict=True)},
            [column[inside] for column in batch],
            {name: column[inside] for name, column in zip(like.metrics, columns, strict=True)},
            {},
        )
        self._take_at(-1, numbers, shape, rows)
        return len(rows)

    def _take_uncounted(self, numbers: Lines, shape: Shape, rows: Floats, like: Parsed) -> int:
        """Take lines of metrics without a counter: together, once none of them belongs to a record above."""
        for index, number in enumerate(numbers.tolist()):
            if self.under_heading(number):
                return index
            self._take_at(index, numbers, shape, rows)
            if self.assembler.stands_alone(number + 1, like):
                columns = shape.columns(rows[index + 1 :])
                self.assembler.many_alone(numbers[index + 1 :], dict(zip(like.metrics, columns, strict=True)))
                break
        return len(rows)

    def _take_asides(self, numbers: Lines, shape: Shape, rows: Floats) -> int:
        for index, number in enumerate(numbers.tolist()):
            if self.under_heading(number):
                return index
            if self.assembler.passes_over(number, known=shape.known):
                break  # and so are those below it
            self._take_at(index, numbers, shape, rows)
        return len(rows)

    def _take_drawings(self, numbers: Lines, shape: Shape, rows: Floats, like: Drawing) -> int:
        columns = shape.columns(rows)
        if not _are_counters(columns[:2]):
            return 0
        at, total = (np.trunc(column) for column in columns[:2])
        if like.bar.keras:
            if not self.bars.draws_unfinished(like, at, total):
                return 0
            counts = np.zeros(len(rows), dtype=np.bool_)
            counts[0] = counts[-1] = True
        else:
            named = like.evaluation or "step" in like.counters
            keys = [*columns[2 : 2 + len(like.head)], total, *([] if named else [at])]
            differs = np.any([key[1:] != key[:-1] for key in keys], axis=0)
            counts = np.append(differs, True)
            if not self.bars.shows_last(like, at[counts]):
                return self._take_shown_first(numbers, shape, rows, like)
        chosen = np.flatnonzero(counts)
        several = not like.bar.keras and len(chosen) >= MIN_LINES_TOGETHER and bool(np.all(at[chosen] != 0))
        several = several and self.bars.shows_last(like, at[chosen])
        inside = chosen[1:-2]  # the last one waits for the next, and the one before it for what stands below
        for index in chosen.tolist():
            self._take_at(index, numbers, shape, rows)
            if several and self.bars.many(like, [column[inside] for column in columns]):
                self._take_at(int(chosen[-2]), numbers, shape, rows)
                self._take_at(int(chosen[-1]), numbers, shape, rows)
                break
            several = False
        return len(rows)

    def _take_shown_first(self, numbers: Lines, shape: Shape, rows: Floats, like: Drawing) -> int:
        """Take drawings of a bar that may show metrics before it counts their batch."""
        columns = shape.columns(rows)
        columns[:2] = map(np.trunc, columns[:2])
        moved = np.diff(columns[0])
        bars = [0, *(np.flatnonzero(moved < 0) + 1).tolist(), len(rows)]
        for start, end in pairwise(bars):
            begins = start + 1 + np.flatnonzero(moved[start : end - 1])
            index, first = start, int(begins[0]) if len(begins) > 1 else end
            while index < end:
                self._take_at(index, numbers, shape, rows)
                together = index == first and self.bars.many_shown_first(like, columns, begins)
                index = int(begins[-1]) if together else index + 1
        return len(rows)


def _heads(like: Parsed) -> bool:
    return not like.telling and bool(like.counters.values)


def _are_counters(columns: Sequence[Floats]) -> bool:
    return all(bool(np.all((column >= 0) & (column <= HUGE))) for column in columns)


# Rows of a printed table that come again and again → records, many at once: rows of one skeleton are of one shape.

MAX_KINDS = 200
"""Kinds of rows that are remembered."""
_UNTOLD = bytes.maketrans(b"".join(MARKS), bytes([*MARKS[0] * 2, ODD, *MARKS[0]]))


def untold(key: bytes) -> bytes:
    """Return a skeleton that does not tell whole numbers from others."""
    return key.translate(_UNTOLD)


class RowShapes:
    """What is known of the rows of tables, by the table's layout and the row's skeleton."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[Layout, bytes], Shape | None] = {}

    def shape_of(self, skeletons: Skeletons, line: int, table: Table) -> Shape | None:
        """Return the shape of a row of the open table, None if it has none that is sure."""
        key = (table.layout, untold(skeletons.keys[line]))
        if key not in self._shapes and len(self._shapes) < MAX_KINDS:
            shape = learn(skeletons.line(line), skeletons.numbers_in(line), partial(_read_row, table))
            is_sure = shape is not None and shape.is_sure and bool(shape.like.record)
            self._shapes[key] = shape if is_sure else None
        return self._shapes.get(key)


def alike_from(skeletons: Skeletons, line: int) -> int:
    """Return the line behind those from `line` on whose skeletons differ in nothing but how numbers are written."""
    keys, wanted = skeletons.keys, untold(skeletons.keys[line])
    alike = {keys[line]}
    while line < len(keys) and (keys[line] in alike or untold(keys[line]) == wanted):
        alike.add(keys[line])
        line += 1
    return line


def _read_row(table: Table, text: str) -> LineContent:
    """Read a row by itself; nothing comes of one that may say more than that, or is not kept under its names."""
    is_odd = text.startswith(ROW_MARK) or any(sign in text for sign in ("\x1b", "\b", "^M", "{"))
    is_odd = is_odd or without_prefix(text).message != text or len(records_in(text)) > 1 or not table.is_in_order(text)
    tells_more = is_error(text) or tells_resume(text) or is_fastprogress(text) or bar_in(text) is not None
    if is_odd or tells_more or is_rule(text) or RichBar().take(text):
        return LineContent()
    open_table = deepcopy(table)
    row = open_table.take(text)
    goes_on = open_table.layout == table.layout and open_table.expects_row
    if not row or not goes_on or not table.tells:
        return LineContent()
    builder = RunBuilder()
    builder.record(row)
    return LineContent(record=dict(row) if all(len(builder.column(name)) == 1 for name in row) else None)


# What is known of the lines that were seen: their skeletons, and the shapes that were learnt from them.

MAX_KEYS = 20_000
"""Skeletons that are remembered."""
MAX_KEY = 4000
"""Bytes of a skeleton that is remembered."""
MAX_SHAPES = 64
"""Shapes of one skeleton, distinguished by numbers such as the rank."""
MAX_TRIES = 4
"""Lines of a skeleton from which no shape could be learnt, before it is given up."""

FREE_READS = 5000
"""Times that lines may be read to learn shapes from them, beyond as often as there are lines: learning never takes
much longer than reading each line by itself, whatever the text. Chosen by hand."""


@dataclass(slots=True)
class Skeleton:
    """What is known of the lines of one skeleton."""

    lines_read: int = 0
    tries: int = 0
    shapes: list[Shape] = field(default_factory=list)


@dataclass(slots=True)
class Memory:
    """The skeletons that were seen: the place of each, and by place what is known of it.

    `lines` counts the lines that were taken, `reads` how often lines were read to learn shapes from them.
    """

    places: dict[bytes, int] = field(default_factory=dict)
    known: list[Skeleton] = field(default_factory=lambda: [Skeleton(tries=MAX_TRIES)])
    dull: bytearray = field(default_factory=lambda: bytearray(1))
    first: dict[tuple[object, ...], int] = field(default_factory=dict)
    rows: RowShapes = field(default_factory=RowShapes)
    layouts: Layouts = field(default_factory=Layouts)
    lines: int = 0
    reads: int = 0

    @property
    def may_learn(self) -> bool:
        """Whether learning has cost no more than it may by now: where shapes seldom come again, it does not pay."""
        return self.reads < self.lines + FREE_READS

    def only_shape(self, place: int) -> Shape | None:
        """Return the shape that all lines of a skeleton have, None if there is not one that is sure."""
        shapes = self.known[place].shapes
        return shapes[0] if len(shapes) == 1 and shapes[0].is_sure else None

    def keep(self, key: bytes, numbers: int, shape: Shape) -> None:
        """Remember a shape; a skeleton whose lines say what those of another one say gets the place of that one."""
        skeleton = self.known[self.places[key]]
        place = self.first.setdefault((numbers, *shape.identity), self.places[key])
        if not skeleton.shapes and len(self.known[place].shapes) == 1:
            self.places[key] = place
        skeleton.shapes.append(shape)

    def places_of(self, keys: list[bytes]) -> Lines:
        """Return the place of each line's skeleton, 0 for one that is not remembered, shape (lines,)."""
        if len(self.places) >= MAX_KEYS:
            self._forget()
        known = self.places
        places = [known.get(key, -1) for key in keys]
        if -1 in places:
            places = [self._place(key) if place < 0 else place for key, place in zip(keys, places, strict=True)]
        return np.array(places, dtype=np.int64)

    def _forget(self) -> None:
        """Keep what was learnt alone."""
        kept = {key: self.known[place] for key, place in self.places.items() if self.known[place].shapes}
        self.places, self.known, self.dull, self.first = {}, [self.known[0]], bytearray(1), {}
        for key, skeleton in kept.items():
            self.known[self._place(key)] = skeleton

    def _place(self, key: bytes) -> int:
        place = self.places.get(key)
        if place is None:
            if len(key) > MAX_KEY or len(self.places) >= MAX_KEYS:
                return 0
            # Of a box: any of its numbers may be whole, so that a dozen of them would have thousands of skeletons.
            like = untold(key) if key.startswith(ROW_MARK.encode()) else key
            place = self.places[key] = self.places.setdefault(like, len(self.known))
        if place == len(self.known):
            self.known.append(Skeleton())
            self.dull.append(0)
        return place


# Lines of a shape that is known: found by their skeletons, a block at a time, and taken without reading them again.

AMONG_OTHERS = -1
"""Stands for the place of lines that can be taken together with those of other shapes."""


class IsSettled(Protocol):
    """Says whether no line above goes on in the next one."""

    def __call__(self, *, but_for_table: bool = False) -> bool:
        """Say so; the open table does not count, if `but_for_table`."""


class KnownLines:
    """Takes the lines of known shapes out of a block and hands the others back, in the order of the lines.

    `slowly` reads a line by its number: it returns what the line says, None if that hangs on other lines.
    """

    def __init__(
        self,
        records: Records,
        slowly: Callable[[int, bytes], LineContent | None],
        is_settled: IsSettled,
        read: Read,
        *,
        memory: Memory,
        table: Table,
    ) -> None:
        self._records = records
        self._slowly = slowly
        self._is_settled = is_settled
        self._read = read
        self._memory = memory
        self._table = table
        self._learnt = False

    def take(self, skeletons: Skeletons, before: int) -> None:
        """Take a block that stands below so many lines."""
        places = self._memory.places_of(skeletons.keys)
        self._memory.lines += len(skeletons)
        done = self._settle(skeletons, before, 0)
        while done < len(skeletons):
            self._learnt = False
            done = self._take_from(skeletons, before, places, done)

    def _take_from(self, skeletons: Skeletons, before: int, places: Lines, done: int) -> int:
        """Take the lines from `done` on; return the first one that is left, where a shape that many have was learnt."""
        dull = np.frombuffer(bytes(self._memory.dull), dtype=np.bool_)[places[done:]]
        lines = np.flatnonzero(~dull) + done
        if self._is_settled():
            shapes = {place: self._memory.only_shape(place) for place in distinct(places[lines]).tolist()}
            some = lines
            lines = lines[self._records.leave_out(shapes, places[lines], lambda here: skeletons.rows(some[here]))]
        kept = places[lines]
        parts = self._parts(skeletons, lines, kept)
        kinds = np.zeros_like(kept)
        for part in parts:
            kinds[part.at] = AMONG_OTHERS
        for start, end in pairwise(_edges(kinds)):
            these = slice(max(start, int(np.searchsorted(lines, done))), end)
            if these.start >= end:
                continue
            if kinds[start] == AMONG_OTHERS and end - these.start >= MIN_LINES_TOGETHER:
                among = [part.between(these.start, end) for part in parts]
                if self._records.together.take(before + lines[these] + 1, [part for part in among if len(part.at)]):
                    continue
            done = self._take_runs(skeletons, before, lines[these], places)
            if self._learnt:
                return done
        return len(skeletons)

    def _parts(self, skeletons: Skeletons, lines: Lines, places: Lines) -> list[Part]:
        """Return the lines that can be taken together with those of other shapes, shape by shape."""
        order = np.argsort(places, kind="stable")
        parts: list[Part] = []
        counters: Counter[frozenset[str]] = Counter()
        for start, end in pairwise(_edges(places[order])):
            at = order[start:end]
            shapes = self._memory.known[places[at[0]]].shapes
            if not any(counters_of(shape) is not None for shape in shapes):
                continue
            rows, widths = skeletons.rows(lines[at]), _widths(skeletons, lines[at], shapes)
            left = np.ones(len(at), dtype=np.bool_)
            for shape in shapes:
                fit = which_go(shape, rows, widths) & left
                left &= ~fit
                named = counters_of(shape)
                if named is not None:
                    parts.append(Part(shape, at[fit], rows[fit]))
                    counters[named] += int(np.count_nonzero(fit))
        sure = max(counters, key=lambda named: (len(named) > 0, counters[named]), default=frozenset())
        return [part for part in parts if counters_of(part.shape) in (sure, frozenset())]

    def _take_runs(self, skeletons: Skeletons, before: int, lines: Lines, places: Lines) -> int:
        """Take lines by runs of one skeleton; return the first line that is not done."""
        done = 0
        for start, end in pairwise(_edges(places[lines])):
            if lines[end - 1] >= done and not self._learnt:
                first = start if lines[start] >= done else int(np.searchsorted(lines, done))
                done = self._take_run(skeletons, before, lines[first:end], places)
        return done

    def _settle(self, skeletons: Skeletons, before: int, line: int) -> int:
        """Read lines slowly from one on while the text above goes on in them; return the first one after them."""
        while line < len(skeletons) and not self._is_settled():
            self._slowly(before + line + 1, skeletons.line(line))
            line += 1
            if self._table.expects_row and line < len(skeletons):
                line = self._take_rows(skeletons, line)
        return line

    def _take_rows(self, skeletons: Skeletons, line: int) -> int:
        """Take the rows that are like the one above, but for the last one; return the first line that is not done."""
        above, keys = line - 1, skeletons.keys
        if untold(keys[above]) != untold(keys[line]) or not self._is_settled(but_for_table=True):
            return line
        shape = self._memory.rows.shape_of(skeletons, above, self._table)
        last = line if shape is None else alike_from(skeletons, above) - 1
        if shape is None or last - line < MIN_LINES_TOGETHER:
            return line
        lines = np.arange(line, last)
        columns = shape.columns(skeletons.rows(lines))
        named = dict(zip(shape.like.record or {}, columns, strict=True))
        self._records.assembler.many_together([Lot(None, named, lines - line)], len(lines))
        return last

    def _take_run(self, skeletons: Skeletons, before: int, lines: Lines, places: Lines) -> int:
        """Take lines of one skeleton; return the first line that is not done, as one may reach beyond them."""
        place = int(places[lines[0]])
        skeleton = self._memory.known[place]
        at, count, tried = 0, len(lines), False
        while at < count and not self._memory.dull[place]:
            if skeleton.shapes and count - at >= MIN_LINES_TOGETHER and not tried:
                tried = True
                at += self._take_many(skeletons, before, lines[at:], skeleton)
                continue
            line = int(lines[at])
            at += 1
            if skeleton.shapes and self._take_line(skeletons, before, line, skeleton):
                continue
            self._learnt = self._take_slowly(skeletons, before, line, place) and _many_follow(places, line)
            if self._learnt or not self._is_settled():
                done = self._settle(skeletons, before, line + 1)
                at += int(np.searchsorted(lines[at:], done))
                if self._learnt or at == count:
                    return done
        return int(lines[-1]) + 1

    def _take_many(self, skeletons: Skeletons, before: int, lines: Lines, skeleton: Skeleton) -> int:
        """Take lines of one skeleton by their shape, if they all have the same; return how many were taken."""
        rows, widths = skeletons.rows(lines), _widths(skeletons, lines, skeleton.shapes)
        shape = next((shape for shape in skeleton.shapes if shape.which_fit(rows, widths).all()), None)
        return 0 if shape is None else self._records.take_many(before + lines + 1, shape, rows)

    def _take_line(self, skeletons: Skeletons, before: int, line: int, skeleton: Skeleton) -> bool:
        """Take a line by its shape, if that is known."""
        numbers = skeletons.listed[skeletons.first[line] : skeletons.first[line + 1]]
        widths = [end - start for start, end in skeletons.numbers_in(line)]
        shape = next((shape for shape in skeleton.shapes if shape.fits(numbers, widths)), None)
        return shape is not None and self._records.take_numbers(before + line + 1, shape, numbers)

    def _take_slowly(self, skeletons: Skeletons, before: int, line: int, place: int) -> bool:
        """Read a line slowly, and learn its shape from it if its like has come before; return whether one was."""
        skeleton = self._memory.known[place]
        text = skeletons.line(line)
        content = self._slowly(before + line + 1, text)
        place = self._memory.places.get(skeletons.keys[line], 0)  # lines before may have moved it
        skeleton.lines_read += 1
        if content is None or skeleton.tries >= MAX_TRIES or not self._is_settled():
            return False
        if content.is_nothing:
            self._memory.dull[place] = 1
        elif skeleton.lines_read > 1 and self._memory.may_learn:
            hangs_on_heading = content.plain is not None and not content.plain.counters.values
            shape = learn(text, skeletons.numbers_in(line), self._read_to_learn)
            if shape is None or len(skeleton.shapes) >= MAX_SHAPES:
                skeleton.tries += 1
            elif not hangs_on_heading or not self._records.under_heading(before + line + 1):
                self._memory.keep(skeletons.keys[line], len(skeletons.numbers_in(line)), shape)
                return counters_of(shape) is not None
        return False

    def _read_to_learn(self, line: str) -> LineContent:
        self._memory.reads += 1
        return self._read(line)


def _widths(skeletons: Skeletons, lines: Lines, shapes: list[Shape]) -> Lines:
    """Return the widths of the numbers of lines, shape (n, numbers); (n, 0) where no shape asks for them."""
    return (
        skeletons.widths(lines) if any(shape.tight for shape in shapes) else np.empty((len(lines), 0), dtype=np.int64)
    )


def _edges(kinds: Lines) -> list[int]:
    """Return where runs of one kind begin, and the end."""
    return [*np.flatnonzero(np.diff(kinds, prepend=AMONG_OTHERS - 1)).tolist(), len(kinds)]


def _many_follow(places: Lines, line: int) -> bool:
    return int(np.count_nonzero(places[line:] == places[line])) > MIN_LINES_TOGETHER
