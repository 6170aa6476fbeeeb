"""Boxes that come again and again → records, many at once.

A box is read as one long line: its rows together have a skeleton, of which a shape is learnt. Whole numbers and others
count alike here, as a box of a dozen values would have thousands of skeletons otherwise.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.error_lines import is_error
from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bars import is_fastprogress
from mldebug_mcp.logs.lines.boxes import Box, is_rule, name_in_row
from mldebug_mcp.logs.lines.lots import Lot
from mldebug_mcp.logs.lines.prefixes import records_in, without_prefix
from mldebug_mcp.logs.lines.said import Said
from mldebug_mcp.logs.lines.shapes import Shape, learn
from mldebug_mcp.logs.lines.skeletons import MARKS, ODD, Skeletons, Span
from mldebug_mcp.logs.process_starts import tells_resume

FEW = 6
"""Boxes one after another from which on they are taken together; the first and the last one are read."""
MAX_BOXES = 500
"""Kinds of boxes that are remembered."""
MAX_ROWS = 200
"""Rows of a box of which a shape is learnt."""
MAX_ROW_KINDS = 20_000
"""Kinds of rows that are remembered."""
RULE_LENGTH = 6
NEITHER, RULE = 0, -1
"""Kinds of lines that are no rows; those of rows count from 1."""

_DOUBLED = re.compile(r"([^\w\s]|\s)\1.*\w")
"""Stands in a name of which a skeleton may have cut something; what a framework cuts to fit ends with "..."."""
_AS_NUMBERS = bytes.maketrans(b"".join(MARKS), b"111")
_UNTOLD = bytes.maketrans(b"".join(MARKS), bytes([*MARKS[0] * 2, ODD]))

Lines = NDArray[np.int64]
ReadLines = Callable[[Lines], int]
"""Reads lines one by one, and those below in which what they say goes on; returns the first line that is not done."""


class BoxShapes:
    """What is known of boxes: the kinds of their lines, by the place of the skeleton, and their shapes by those."""

    def __init__(self) -> None:
        self._places = array("q", [NEITHER])
        self._rows: dict[bytes, int] = {}
        self._seen: Counter[bytes] = Counter()
        self._shapes: dict[bytes, Shape | None] = {}

    def add_place(self, key: bytes) -> None:
        """Take note of the skeleton that gets the next place."""
        text = key.translate(_AS_NUMBERS).decode("utf-8", errors="replace").strip()
        name = name_in_row(text) if text.startswith("|") and text.isprintable() else None
        row = self._rows.get(untold(key), len(self._rows) + 1)
        if name is not None and _DOUBLED.search(name) is None and row <= MAX_ROW_KINDS:
            self._places.append(self._rows.setdefault(untold(key), row))
        else:
            self._places.append(RULE if name is None and text and is_rule(text * RULE_LENGTH) else NEITHER)

    def forget_places(self) -> None:
        """Forget the places, but not what was learnt."""
        self._places = array("q", [NEITHER])

    def kinds(self, skeletons: Skeletons, lines: Lines, places: Lines) -> Lines:
        """Return the kind of each line, by its place, shape (n,)."""
        if not self._rows:
            return np.zeros(len(lines), dtype=np.int64)
        kinds = np.array(self._places, dtype=np.int64)[places]
        kinds[(kinds == RULE) & (skeletons.lengths(lines) < RULE_LENGTH)] = NEITHER
        return kinds

    def shape_of(self, skeletons: Skeletons, first: int, last: int, kinds: bytes) -> Shape | None:
        """Return the shape of a box, None if it has none that is sure; it is learnt when its like comes again.

        Args:
            skeletons: The block.
            first: Its first row, by its line.
            last: The line behind its last row.
            kinds: The kinds of its rows.
        """
        if kinds in self._shapes:
            return self._shapes[kinds]
        if len(self._seen) >= MAX_BOXES or last - first > MAX_ROWS:
            return None
        self._seen[kinds] += 1
        if self._seen[kinds] > 1:
            self._shapes[kinds] = _learn(skeletons.lines(first, last), skeletons.numbers_in(first, last))
        return self._shapes.get(kinds)


def take_boxes(
    boxes: BoxShapes, skeletons: Skeletons, lines: Lines, kinds: Lines, *, assembler: Assembler, read: ReadLines
) -> int:
    """Take the rows and rules of boxes; return the first line that is not done.

    Args:
        boxes: What is known of boxes.
        skeletons: The block.
        lines: The lines, ascending, shape (n,).
        kinds: Their kinds, shape (n,).
        assembler: Where the records go.
        read: Reads lines, each by itself.
    """
    row = np.concatenate([[False], kinds != RULE, [False]])
    gap = np.concatenate([[True], np.diff(lines) != 1, [True]])
    starts = np.flatnonzero(row[1:-1] & (gap[:-1] | ~row[:-2]))
    ends = np.flatnonzero(row[1:-1] & (gap[1:] | ~row[2:])) + 1
    ruled = ~gap[ends]  # else it may go on below a line that is empty
    written, width = kinds.tobytes(), kinds.itemsize
    shapes: list[Shape | None] = []
    for start, end, whole in zip(starts.tolist(), ends.tolist(), ruled.tolist(), strict=True):
        shape = None
        if whole:
            key = written[start * width : end * width]
            shape = boxes.shape_of(skeletons, int(lines[start]), int(lines[end - 1]) + 1, key)
        shapes.append(shape)
    known = np.array([shape is not None for shape in shapes], dtype=np.bool_)
    done = 0
    for low, high in pairwise([0, *(np.flatnonzero(np.diff(known)) + 1).tolist(), len(known)]):
        if high - low < FEW or not known[low]:
            continue
        done = read(lines[np.searchsorted(lines, done) : ends[low]])
        after = low + int(np.searchsorted(lines[starts[low:high]], done))
        if after < high - 1:
            inside = slice(after, high - 1)
            taken = [shape for shape in shapes[inside] if shape is not None]
            _take_alike(taken, skeletons, lines[starts[inside]], lines[ends[inside]], assembler)
            done = int(lines[starts[high - 1]])
    return max(done, read(lines[np.searchsorted(lines, done) :]))


def _take_alike(shapes: list[Shape], skeletons: Skeletons, starts: Lines, ends: Lines, assembler: Assembler) -> None:
    """Take boxes of known shapes from these lines to those, with no line above or below belonging to their records."""
    of: dict[int, list[int]] = {}
    for index, shape in enumerate(shapes):
        of.setdefault(id(shape), []).append(index)
    lots = []
    for at in of.values():
        shape, record = shapes[at[0]], shapes[at[0]].like.record or {}
        width = int(skeletons.first[ends[at[0]]] - skeletons.first[starts[at[0]]])
        columns = shape.columns(skeletons.rows(starts[at], width))
        lots.append(Lot(None, dict(zip(record, columns, strict=True)), np.array(at)))
    assembler.many_together(lots, len(shapes))


def _learn(box: bytes, numbers: list[Span]) -> Shape | None:
    shape = learn(box, numbers, _read)
    return None if shape is None or shape.fixed or shape.short or not shape.like.record else shape


def _read(text: str) -> Said:
    """Read the rows of a box by themselves; what comes of them is nothing, if they may say more than that."""
    box = Box()
    for line in text.split("\n"):
        if is_special(line) or not box.take(line):
            return Said()
    box.end()
    record = box.done or {}
    return Said(record=dict(record)) if kept_as_told(record) else Said()


def untold(key: bytes) -> bytes:
    """Return a skeleton that does not tell whole numbers from others."""
    return key.translate(_UNTOLD)


def is_special(line: str) -> bool:
    """Say whether a line may say more than the row that it is, or has something before it or in it that is no row's."""
    odd = any(sign in line for sign in ("\x1b", "\b", "^M", "{")) or without_prefix(line).message != line
    return odd or is_error(line) or tells_resume(line) or is_fastprogress(line) or len(records_in(line)) > 1


def kept_as_told(record: Mapping[str, float]) -> bool:
    """Say whether the names of a record are those under which its numbers are kept."""
    builder = RunBuilder()
    builder.record(record)
    return all(len(builder.column(name)) == 1 for name in record)
