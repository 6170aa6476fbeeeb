"""Lines of several shapes that take turns → records, all at once: training, with an evaluation every so often.

What may hang on lines above or below, the first record and the last one, is taken by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.beside import SUMMARY_MARKS, name_in_record
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bar_steps import BarSteps, Dicts, may_train
from mldebug_mcp.logs.lines.lots import Lot, carried
from mldebug_mcp.logs.lines.said import Said
from mldebug_mcp.logs.lines.shapes import Shape
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.numbers import HUGE

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


def which_go(shape: Shape, rows: Floats) -> NDArray[np.bool_]:
    """Say which lines of a shape can be taken with others, shape (n,), by their numbers, shape (n, numbers)."""
    fit = shape.which_fit(rows)
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


class Together:
    """Takes lines of several shapes at once.

    Args:
        assembler: Where the records go.
        bar_steps: Where drawings of bars and dicts without a step go.
        take: Takes what a line says, by the line's number.
    """

    def __init__(self, assembler: Assembler, bar_steps: BarSteps, take: Callable[[int, Said], object]) -> None:
        self._assembler = assembler
        self._bar_steps = bar_steps
        self._take = take

    def take(self, numbers: Lines, parts: Sequence[Part]) -> bool:
        """Take lines that follow one another, if that gives what taking each of them would give.

        Args:
            numbers: Line numbers, shape (n,).
            parts: The lines by their shapes, for which `counters_of` and `which_go` have been asked.
        """
        told = [part for part in parts if not part.shape.only_counts]
        plain = [part.shape.like.plain for part in told]
        echoes = [like is not None and self._assembler.ranks.is_echo(like) for like in plain]
        heard = [part for part, echo in zip(told, echoes, strict=True) if not echo]
        bars = [part for part in parts if part.shape.only_counts]
        if not told:
            _Drawings(bars, np.empty(0, dtype=np.int64), self._bar_steps).draw(len(numbers))
            return True
        if not heard or not self._assembler.keeps_loss(_whole(heard)):
            return False
        for part, like, echo in zip(told, plain, echoes, strict=True):
            if like is not None and echo:
                self._assembler.ranks.leave_out(like, len(part.at))
        self._take_heard(numbers, heard, bars)
        return True

    def _take_heard(self, numbers: Lines, parts: Sequence[Part], bars: Sequence[Part]) -> None:
        of, row = np.full(len(numbers), -1), np.zeros(len(numbers), dtype=np.int64)
        for place, part in enumerate(parts):
            of[part.at], row[part.at] = place, np.arange(len(part.at))
        at = np.flatnonzero(of >= 0)
        drawings = _Drawings(bars, at, self._bar_steps)

        def say(index: int) -> Said:
            part = parts[int(of[at[index]])]
            said: Said | None = part.shape.said(part.rows[row[at[index]]].tolist())
            assert said is not None  # noqa: S101 - its counters have been looked at
            return said

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
        """Take lines that hang on no others, of which some join the one above them."""
        record = np.cumsum(~joins) - 1
        lots = [_lot(part, int(at[0]), int(at[-1]) + 1, at, record) for part in parts]
        first = self._assembler.many_together([lot for lot in lots if len(lot.rows)], int(record[-1]) + 1)
        dicts = [lot for lot in lots if lot.like is None and len(lot.rows)]
        without = [lot for lot in dicts if not any(canonical(one) == "step" for one in lot.columns)]
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

        Args:
            parts: The lines by their shapes.
            of: Which part each of the lines in question is of, shape (n,).
            at: Which lines they are, ascending, shape (n,).
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
        held: frozenset[str] = frozenset()
        last = -1
        for index in (np.flatnonzero(alike) + 1).tolist():
            held = held if last == index - 1 else names[of[index - 1]]
            more = names[of[index]]
            joins[index] = held.isdisjoint(more)
            held, last = held | more if joins[index] else more, index
        return joins


class _Drawings:
    """Drawings of bars without metrics, of which those count that stand first and last between two records.

    Args:
        parts: The drawings by their shapes.
        at: Which lines are records, ascending.
        bar_steps: Where they go.
    """

    def __init__(self, parts: Sequence[Part], at: Lines, bar_steps: BarSteps) -> None:
        self._bar_steps = bar_steps
        lines = np.concatenate([np.empty(0, dtype=np.int64), *(part.at for part in parts)])
        kinds = np.concatenate([np.empty(0), *(np.full(len(part.at), kind) for kind, part in enumerate(parts))])
        columns = [part.shape.columns(part.rows)[:2] for part in parts]
        counts, totals = (np.concatenate([np.empty(0), *(one[place] for one in columns)]) for place in (0, 1))
        order = np.argsort(lines)
        keys = [one[order] for one in (kinds, np.trunc(totals), np.searchsorted(at, lines))]
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

        Args:
            above: How many drawings stand above each of the dicts, shape (n,).
            dicts: The dicts.
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


def _counters(part: Part) -> list[str]:
    like = part.shape.like.plain
    return [] if like is None else list(like.counters.values)


def _whole(parts: Sequence[Part]) -> list[Lot]:
    return [_lot(part, 0, int(part.at[-1]) + 1, part.at, part.at) for part in parts]


def _lot(part: Part, first: int, last: int, at: Lines, record: Lines) -> Lot:
    """Return the lines of a part that are first <= line < last as records.

    Args:
        part: The part.
        first: The first line.
        last: The line behind the last one.
        at: Which lines are records or parts of one, ascending.
        record: The record of each of those.
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
