"""Lines and rows of tables whose shape is known.

They are found by their skeletons, a block at a time, and taken without being read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np

from mldebug_mcp.core.arrays import distinct
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.logs.attempts import tells_resume
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.endings import is_error
from mldebug_mcp.logs.line_prefixes import ROW_MARK, records_in, without_prefix
from mldebug_mcp.logs.text.assembler import Lot
from mldebug_mcp.logs.text.counters import RichBar, bar_in, is_fastprogress
from mldebug_mcp.logs.text.line_shape import Read, Shape, learn
from mldebug_mcp.logs.text.parsed_line import LineContent
from mldebug_mcp.logs.text.records import MIN_LINES_TOGETHER, Lines, Part, Records, counters_of, which_go
from mldebug_mcp.logs.text.skeletons import MARKS, ODD, Layouts, Skeletons
from mldebug_mcp.logs.text.tables import Layout, Table, is_rule

_UNTOLD = bytes.maketrans(b"".join(MARKS), bytes([*MARKS[0] * 2, ODD, *MARKS[0]]))


def untold(key: bytes) -> bytes:
    """Return a skeleton that does not tell whole numbers from others."""
    return key.translate(_UNTOLD)


def is_special(line: str) -> bool:
    """Say whether a line may say more than the row that it is, or holds something that is not a row's."""
    odd = any(sign in line for sign in ("\x1b", "\b", "^M", "{")) or without_prefix(line).message != line
    return odd or is_error(line) or tells_resume(line) or is_fastprogress(line) or len(records_in(line)) > 1


def keeps_names(record: Mapping[str, float]) -> bool:
    """Say whether the names of a record are those under which its numbers are kept."""
    builder = RunBuilder()
    builder.record(record)
    return all(len(builder.column(name)) == 1 for name in record)


# Rows of a printed table that come again and again → records, many at once: rows of one skeleton are of one shape.

MAX_KINDS = 200
"""Kinds of rows that are remembered."""


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
    scratch = deepcopy(table)
    is_plain = not is_special(text) and not text.startswith(ROW_MARK) and not is_rule(text) and bar_in(text) is None
    if not is_plain or RichBar().take(text) or not table.is_in_order(text):
        return LineContent()
    row = scratch.take(text)
    goes_on = scratch.layout == table.layout and scratch.expects_row
    return LineContent(record=dict(row)) if row and goes_on and table.tells and keeps_names(row) else LineContent()


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
