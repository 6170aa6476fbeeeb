"""A block of lines → the skeleton of each line, which names its shape, and the numbers that were taken out of it.

A skeleton is the line with a mark in place of each number, and with runs of one sign (blanks, a rule, a bar as it
grows) cut to two. Digits that belong to a word ("layer12") stay. Lines of one skeleton differ in their numbers alone.
It is worked out for all lines of a block at once.
"""

from __future__ import annotations

from functools import cached_property
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Floats

WHOLE, DECIMAL, ODD = 1, 2, 3
"""What stands in a skeleton for a whole number, for another one, and for what only looks like one, such as "1.2.3"."""
MARKS = (b"\x01", b"\x02", b"\x03")

_DIGIT, _DOT, _EXPONENT, _SIGN, _COMMA, _LETTER, _END = 1, 2, 4, 8, 16, 32, 64
_CLASSES = bytearray(256)
for _byte in range(256):
    _character = chr(_byte)
    if _byte < 128 and (_character.isalpha() or _character == "_"):
        _CLASSES[_byte] = _EXPONENT if _character in "eE" else _LETTER
    elif _byte < 128 and _character.isdigit():
        _CLASSES[_byte] = _DIGIT
_CLASSES[ord(".")], _CLASSES[ord(",")], _CLASSES[ord("\n")] = _DOT, _COMMA, _END
_CLASSES[ord("-")] = _CLASSES[ord("+")] = _SIGN
_CLASS_OF = bytes(_CLASSES)
_MARGIN = 4
"""Bytes around the block, so that the neighbours of each byte exist."""
_WIDE = 0xE2
"""First byte of the signs of three bytes with which bars and rules are drawn."""

Mask = NDArray[np.bool_]
Places = NDArray[np.int64]


class Span(NamedTuple):
    """Where a line or a number begins and ends in its block."""

    start: int
    end: int


class Skeletons:
    """The skeletons of the lines of a block, and their numbers.

    Args:
        block: Whole lines, ended by line feeds; without the bytes of `MARKS`.
        compiled: The log is large enough to be worth importing a compiled reader of numbers.
    """

    def __init__(self, block: bytes, *, compiled: bool) -> None:
        self.block = block
        self._compiled = compiled
        padded = bytes(_MARGIN) + block + bytes(_MARGIN)
        self._bytes = np.frombuffer(padded, dtype=np.uint8)
        self._classes = np.frombuffer(padded.translate(_CLASS_OF), dtype=np.uint8)
        number = self._number_bytes()
        edges = np.flatnonzero(number[1:] != number[:-1]) + 1
        starts, ends = edges[::2], edges[1::2]
        before = self._classes[starts - 1]
        free = (before & (_LETTER | _EXPONENT)) == 0
        if not free.all():
            number = number.copy()
            for start, end in zip(starts[~free].tolist(), ends[~free].tolist(), strict=True):
                number[start:end] = False
            starts, ends = starts[free], ends[free]
        self._number, self._starts, self._ends = number, starts, ends
        self.keys = self._keys()
        line_ends = np.flatnonzero(self._classes == _END)
        self._line_starts = np.append(_MARGIN, line_ends[:-1] + 1)
        self._line_ends = line_ends
        self.first: Places = np.append(np.searchsorted(starts, self._line_starts), len(starts))
        """Index of the first number of each line, and how many there are in all, shape (lines + 1,)."""

    def __len__(self) -> int:
        return len(self._line_ends)

    def line(self, index: int) -> bytes:
        """Return a line, without its end."""
        return self.block[self._line_starts[index] - _MARGIN : self._line_ends[index] - _MARGIN]

    def lines(self, first: int, last: int) -> bytes:
        """Return the lines first <= line < last, without the end of the last one."""
        return self.block[self._line_starts[first] - _MARGIN : self._line_ends[last - 1] - _MARGIN]

    def lengths(self, lines: Places) -> Places:
        """Return how many bytes lines have, without their ends."""
        lengths: Places = self._line_ends[lines] - self._line_starts[lines]
        return lengths

    def numbers_in(self, index: int, last: int | None = None) -> list[Span]:
        """Return where the numbers of a line stand in it, or those of the lines index <= line < last in them."""
        these = slice(self.first[index], self.first[index + 1 if last is None else last])
        at = int(self._line_starts[index])
        return [
            Span(start - at, end - at)
            for start, end in zip(self._starts[these].tolist(), self._ends[these].tolist(), strict=True)
        ]

    @cached_property
    def numbers(self) -> Floats:
        """The numbers of all lines, in order; what only looks like one is NaN."""
        if not len(self._starts):
            return np.empty(0)
        text = self._bytes.copy()
        text[self._ends] = ord("\n")
        kept = self._number.copy()
        kept[self._ends] = True
        kept &= self._classes != _COMMA
        kept[self._ends] = True
        return _to_floats(_chosen(text, kept), compiled=self._compiled)

    def rows(self, lines: Places, width: int | None = None) -> Floats:
        """Return the numbers of lines that have as many as one another, shape (len(lines), numbers).

        Args:
            lines: The lines.
            width: Numbers from the beginning of each of them on, if not as many as stand in the first line.
        """
        width = int(self.first[lines[0] + 1] - self.first[lines[0]]) if width is None else width
        rows: Floats = self.numbers[self.first[lines][:, None] + np.arange(width)]
        return rows

    @cached_property
    def listed(self) -> list[float]:
        """The numbers of all lines, as Python's."""
        listed: list[float] = self.numbers.tolist()
        return listed

    def _number_bytes(self) -> Mask:
        """Return which bytes belong to numbers, those that belong to words among them."""
        classes = self._classes
        size = len(classes)

        def near(offset: int) -> NDArray[np.uint8]:
            return classes[2 + offset : size - 3 + offset]

        here, after, before = near(0), near(1), near(-1)
        digit, digit_follows, digit_before = here == _DIGIT, after == _DIGIT, before == _DIGIT
        number = np.zeros(size, dtype=np.bool_)
        found = number[2 : size - 3]
        np.logical_or(digit, (here == _DOT) & (digit_before | digit_follows), out=found)
        at = np.flatnonzero((here == _EXPONENT) & ((before == _DIGIT) | (before == _DOT))) + 2
        if len(at):
            signed = (classes[at + 1] == _SIGN) & (classes[at + 2] == _DIGIT)
            at, signed = at[signed | (classes[at + 1] == _DIGIT)], signed[signed | (classes[at + 1] == _DIGIT)]
            number[at] = number[at - 1]
            number[at[signed] + 1] = number[at[signed] - 1]
        at = np.flatnonzero(here == _SIGN) + 2
        follows, second = classes[at + 1], classes[at + 2]
        leads = (follows == _DIGIT) | ((follows == _DOT) & (second == _DIGIT))
        leads &= (classes[at - 1] & (_DIGIT | _DOT | _LETTER | _EXPONENT)) == 0
        number[at[leads]] = True
        self._join_thousands(number, np.flatnonzero((here == _COMMA) & digit_before & digit_follows) + 2)
        return number

    def _join_thousands(self, number: Mask, commas: Places) -> None:
        """Take commas between groups of three digits for parts of a number: "12,345"."""
        if not len(commas):
            return
        padded = np.concatenate([np.zeros(_MARGIN, np.uint8), self._classes, np.zeros(_MARGIN, np.uint8)])
        at = commas + _MARGIN
        one, two, three, four = (padded[at + offset] == _DIGIT for offset in (1, 2, 3, 4))
        back = [padded[at - offset] for offset in (2, 3, 4)]
        short = (back[0] != _DIGIT) & (back[0] != _DOT)
        short |= (back[0] == _DIGIT) & (back[1] != _DIGIT) & (back[1] != _DOT)
        short |= (back[0] == _DIGIT) & (back[1] == _DIGIT) & (back[2] != _DIGIT) & (back[2] != _DOT)
        number[commas[one & two & three & ~four & short]] = True

    def _keys(self) -> list[bytes]:
        """Return the skeletons, one for each line."""
        there, classes = self._bytes, self._classes
        text = there.copy()
        marks = np.full(len(self._starts), WHOLE, dtype=np.uint8)
        # Whether a number is whole: no sign, dot or exponent stands in it. A second dot makes it odd.
        signs = np.flatnonzero(self._number & ((classes & (_DOT | _SIGN | _EXPONENT)) != 0))
        of = np.searchsorted(self._starts, signs, side="right") - 1
        marks[of] = DECIMAL
        dots = of[classes[signs] == _DOT]
        marks[dots[1:][dots[1:] == dots[:-1]]] = ODD
        text[self._starts] = marks
        keep = ~self._number
        keep[self._starts] = True
        # Runs of one sign.
        plain = (classes[2:] & (_DIGIT | _LETTER | _EXPONENT | _END)) == 0
        again = (there[2:] == there[1:-1]) & (there[2:] == there[:-2]) & plain
        keep[2:] &= ~again
        wide = np.flatnonzero(there[3:-_MARGIN] == _WIDE) + 3
        if len(wide):
            alike = (there[wide] == there[wide - 3]) & (there[wide + 1] == there[wide - 2])
            wide = wide[alike & (there[wide + 2] == there[wide - 1])]
            keep[wide] = keep[wide + 1] = keep[wide + 2] = False
        inside = slice(_MARGIN, len(there) - _MARGIN)
        keys = _chosen(text[inside], keep[inside]).split(b"\n")
        del keys[-1]
        return keys


def _chosen(text: NDArray[np.uint8], mask: Mask) -> bytes:
    # A mask as an index takes eight times as long, where it changes from byte to byte.
    return text.take(np.flatnonzero(mask)).tobytes()


def _to_floats(text: bytes, *, compiled: bool) -> Floats:
    """Return numbers that stand one in a line."""
    if not compiled:
        return np.array([_to_float(one) for one in text.split()])
    import polars as pl

    table = pl.read_csv(BytesIO(text), has_header=False, schema={"number": pl.Float64}, ignore_errors=True)
    return table["number"].fill_null(float("nan")).to_numpy()


def _to_float(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
