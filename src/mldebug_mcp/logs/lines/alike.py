"""Lines of a shape that is known: found by their skeletons, a block at a time, and taken without reading them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np

from mldebug_mcp.logs.lines.box_shapes import NEITHER, take_boxes, untold
from mldebug_mcp.logs.lines.memory import MAX_SHAPES, TRIES, Lines, Memory, Skeleton
from mldebug_mcp.logs.lines.records import MANY, Records
from mldebug_mcp.logs.lines.said import Said
from mldebug_mcp.logs.lines.shapes import Read, learn
from mldebug_mcp.logs.lines.skeletons import Skeletons
from mldebug_mcp.logs.lines.table_rows import alike_from, take_rows
from mldebug_mcp.logs.lines.tables import Table
from mldebug_mcp.logs.lines.together import Part, counters_of, which_go

TOGETHER, BOXED = -1, -2
"""Stand for the place of lines that can be taken together with those of other shapes, and of those of boxes."""


class IsSettled(Protocol):
    """Says whether no line above goes on in the next one."""

    def __call__(self, *, but_for_table: bool = False) -> bool:
        """Say so; the open table does not count, if `but_for_table`."""


class AlikeLines:
    """Takes the lines of known shapes out of a block and hands the others back, in the order of the lines.

    Args:
        records: Where what they say goes.
        slowly: Reads a line by its number; it returns what the line says, None if that hangs on other lines, and a
            `Said` of nothing if it says nothing at all.
        is_settled: Whether no line above goes on in the next one, but for the open table, if so asked.
        read: Reads a line by itself.
        memory: What was learnt.
        table: The table that may be open.
    """

    def __init__(
        self,
        records: Records,
        slowly: Callable[[int, bytes], Said | None],
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
        """Take a block.

        Args:
            skeletons: Its lines.
            before: Lines before it.
        """
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
            shapes = {place: self._memory.only_shape(place) for place in np.unique(places[lines]).tolist()}
            lines = lines[self._records.leave_out(shapes, places[lines])]
        kept = places[lines]
        parts = self._parts(skeletons, lines, kept)
        kinds = np.zeros_like(kept)
        for part in parts:
            kinds[part.at] = TOGETHER
        boxed = self._memory.boxes.kinds(skeletons, lines, kept)
        kinds[boxed != NEITHER] = BOXED
        for start, end in pairwise(_edges(kinds)):
            these = slice(max(start, int(np.searchsorted(lines, done))), end)
            if these.start >= end:
                continue
            if kinds[start] == TOGETHER and end - these.start >= MANY:
                among = [part.between(these.start, end) for part in parts]
                if self._records.together.take(before + lines[these] + 1, [part for part in among if len(part.at)]):
                    continue
            if kinds[start] == BOXED and end - these.start >= MANY:
                read = partial(self._read_each, skeletons, before)
                known, assembler = self._memory.boxes, self._records.assembler
                done = take_boxes(known, skeletons, lines[these], boxed[these], assembler=assembler, read=read)
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
            named = counters_of(shapes[0]) if len(shapes) == 1 else None
            if named is not None:
                rows = skeletons.rows(lines[at])
                fit = which_go(shapes[0], rows)
                parts.append(Part(shapes[0], at[fit], rows[fit]))
                counters[named] += len(at)
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

    def _read_each(self, skeletons: Skeletons, before: int, lines: Lines) -> int:
        """Read lines slowly, and those below in which what they say goes on; return the first one that is not done."""
        done = 0
        for line in lines.tolist():
            if line >= done:
                self._slowly(before + line + 1, skeletons.line(line))
                done = self._settle(skeletons, before, line + 1)
        return done

    def _settle(self, skeletons: Skeletons, before: int, line: int) -> int:
        """Read lines slowly from one on while what was said above goes on in them; return the first one after them."""
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
        if shape is None or last - line < MANY:
            return line
        take_rows(skeletons, line, last, shape, self._records.assembler)
        return last

    def _take_run(self, skeletons: Skeletons, before: int, lines: Lines, places: Lines) -> int:
        """Take lines of one skeleton; return the first line that is not done, as one may reach beyond them."""
        place = int(places[lines[0]])
        skeleton = self._memory.known[place]
        at, count, tried = 0, len(lines), False
        while at < count and not self._memory.dull[place]:
            if skeleton.shapes and count - at >= MANY and not tried:
                tried = True
                at += self._take_many(skeletons, before, lines[at:], skeleton)
                continue
            line = int(lines[at])
            at += 1
            if skeleton.shapes and self._take_one(skeletons, before, line, skeleton):
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
        rows = skeletons.rows(lines)
        shape = next((shape for shape in skeleton.shapes if shape.which_fit(rows).all()), None)
        return 0 if shape is None else self._records.take_many(before + lines + 1, shape, rows)

    def _take_one(self, skeletons: Skeletons, before: int, line: int, skeleton: Skeleton) -> bool:
        """Take a line by its shape, if that is known."""
        numbers = skeletons.listed[skeletons.first[line] : skeletons.first[line + 1]]
        shapes = skeleton.shapes
        shape = shapes[0] if len(shapes) == 1 and shapes[0].fits(numbers) else None
        shape = shape or next((shape for shape in shapes if shape.fits(numbers)), None)
        return shape is not None and self._records.take_numbers(before + line + 1, shape, numbers)

    def _take_slowly(self, skeletons: Skeletons, before: int, line: int, place: int) -> bool:
        """Read a line slowly, and learn its shape from it if its like has come before; return whether one was."""
        skeleton = self._memory.known[place]
        text = skeletons.line(line)
        said = self._slowly(before + line + 1, text)
        place = self._memory.places.get(skeletons.keys[line], 0)  # lines before may have moved it
        skeleton.seen += 1
        if said is None or skeleton.tries >= TRIES or not self._is_settled():
            return False
        if said.is_nothing:
            self._memory.dull[place] = 1
        elif skeleton.seen > 1 and self._memory.may_learn:
            shape = learn(text, skeletons.numbers_in(line), self._read_to_learn)
            if shape is None or len(skeleton.shapes) >= MAX_SHAPES:
                skeleton.tries += 1
            elif not _hangs_on_heading(said) or not self._records.under_heading(before + line + 1):
                self._memory.keep(skeletons.keys[line], len(skeletons.numbers_in(line)), shape)
                return counters_of(shape) is not None
        return False

    def _read_to_learn(self, line: str) -> Said:
        self._memory.reads += 1
        return self._read(line)


def _hangs_on_heading(said: Said) -> bool:
    return said.plain is not None and not said.plain.counters.values


def _edges(kinds: Lines) -> list[int]:
    """Return where runs of one kind begin, and the end."""
    return [*np.flatnonzero(np.diff(kinds, prepend=BOXED - 1)).tolist(), len(kinds)]


def _many_follow(places: Lines, line: int) -> bool:
    return int(np.count_nonzero(places[line:] == places[line])) > MANY
