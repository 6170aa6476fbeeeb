"""What lines say → records: one line at a time, or many of one shape together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bar_steps import BarSteps
from mldebug_mcp.logs.lines.drawn import DrawnBars
from mldebug_mcp.logs.lines.parsed import Parsed
from mldebug_mcp.logs.lines.printed_dicts import PrintedDicts
from mldebug_mcp.logs.lines.said import Drawing, Said
from mldebug_mcp.logs.lines.shapes import Shape
from mldebug_mcp.logs.lines.together import Together
from mldebug_mcp.logs.numbers import HUGE

Lines = NDArray[np.int64]

MANY = 32
"""Lines of one shape from which on they are taken together."""
BELOW_HEADING = 5
"""Lines under the heading of an evaluation that belong to it."""


class Records:
    """Gives what lines say to those who put records together.

    Args:
        builder: Where the records go.
    """

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self.assembler = Assembler(builder)
        self.bars = DrawnBars(self.assembler)
        self.bar_steps = BarSteps()
        self.dicts = PrintedDicts(self.assembler, self.bars, self.bar_steps)
        self.together = Together(self.assembler, self.bar_steps, self.take)
        self._evaluated_from = 0  # the line of the heading under which an evaluation stands, 0 if none does

    def head(self, number: int, *, evaluation: bool) -> None:
        """Take note of a line that heads an evaluation, or training again."""
        self._evaluated_from = number * evaluation

    def under_heading(self, number: int) -> bool:
        """Say whether a line stands below the heading of an evaluation."""
        return self._evaluated_from > max(0, number - BELOW_HEADING)

    def take(self, number: int, said: Said) -> bool:
        """Take what a line says; return whether it says anything."""
        drawing = said.drawing
        if drawing is not None:
            if drawing.telling:
                self.bars.take(number, drawing)
            else:
                self.bar_steps.bar(drawing.bar.head, drawing.bar.at, drawing.bar.total)
        if said.opens:
            self.dicts.begin(said.opens)
        elif said.record is not None:
            self.dicts.take(number, said.record)
        elif said.history:
            self.dicts.histories.take(said.history)
        elif said.skipped is not None:
            self.assembler.flush()
            self.bar_steps.event(self._builder.rows)
            self._builder.numbers(said.skipped, event=True)
        else:
            return (said.plain is not None and self._take_plain(number, said.plain)) or drawing is not None
        return True

    def take_numbers(self, number: int, shape: Shape, numbers: Sequence[float]) -> bool:
        """Take a line by its shape and its numbers; return False if it has to be read."""
        like = shape.like
        plain = like.plain
        if shape.aside and self.assembler.passes_over(number, known=shape.known):
            return not self.under_heading(number)
        if plain is not None and like.drawing is None and self.assembler.ranks.is_echo(plain):
            self._take_echoes(plain, 1)
            return True
        if shape.only_counts:
            at, total = shape.number(0, numbers), shape.number(1, numbers)
            if like.drawing is None or not (0 <= at <= HUGE and 0 <= total <= HUGE):
                return False
            self.bar_steps.bar(like.drawing.bar.head, int(at), int(total))
            return True
        said = shape.said(numbers)
        if said is None or (plain is not None and not plain.counters.values and self.under_heading(number)):
            return False
        self.take(number, said)
        return True

    def leave_out(self, shapes: Mapping[int, Shape | None], places: Lines) -> NDArray[np.bool_]:
        """Take the lines of which only their number counts, or nothing, if what is open does not hang on them.

        Those are lines that other ranks print alike, and lines of numbers that nobody knows. Return which are left.

        Args:
            shapes: The shape of each place, None for one that is not known.
            places: The place of each line, shape (n,).
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
                left &= places != place
                self.assembler.ranks.leave_out(like.plain, int(np.count_nonzero(places == place)))
            elif shape.aside and not shape.known and not heads and not self.assembler.under_heading:
                left &= places != place
        return left

    def _take_echoes(self, like: Parsed, count: int) -> None:
        if like.counters.values:
            self._evaluated_from = 0
        self.bars.end()
        self.assembler.ranks.leave_out(like, count)

    def _take_plain(self, number: int, parsed: Parsed) -> bool:
        counters = parsed.counters
        if counters.values:
            self.head(number, evaluation=parsed.evaluation and not parsed.metrics and counters.batch is None)
        if parsed.telling:
            self.bars.end()
        elif "epoch" in counters.values:
            bare = not parsed.metrics and not counters.rest.strip(" |:-")
            self.bars.heading(counters.values["epoch"], bare=bare)
        if not parsed.metrics and not counters.values:
            return False
        self.assembler.take(number, parsed)
        return True

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
        said = shape.said(rows[index].tolist())
        assert said is not None  # noqa: S101 - its counters have been looked at
        self.take(int(numbers[index]), said)

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
                self.assembler.many_alone(dict(zip(like.metrics, columns, strict=True)))
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
            if not self.bars.draws_one(like, at, total):
                return 0
            counts = np.zeros(len(rows), dtype=np.bool_)
            counts[0] = counts[-1] = True
        else:
            named = like.evaluation or "step" in like.counters
            keys = [*columns[2 : 2 + len(like.head)], total, *([] if named else [at])]
            differs = np.any([key[1:] != key[:-1] for key in keys], axis=0)
            counts = np.append(differs, True)
        chosen = np.flatnonzero(counts)
        several = not like.bar.keras and len(chosen) >= MANY and bool(np.all(at[chosen] != 0))
        inside = chosen[1:-2]  # the last one waits for the next, and the one before it for what stands below
        for index in chosen.tolist():
            self._take_at(index, numbers, shape, rows)
            if several and self.bars.many(like, [column[inside] for column in columns]):
                self._take_at(int(chosen[-2]), numbers, shape, rows)
                self._take_at(int(chosen[-1]), numbers, shape, rows)
                break
            several = False
        return len(rows)


def _heads(like: Parsed) -> bool:
    return not like.telling and bool(like.counters.values)


def _are_counters(columns: Sequence[Floats]) -> bool:
    return all(bool(np.all((column >= 0) & (column <= HUGE))) for column in columns)
