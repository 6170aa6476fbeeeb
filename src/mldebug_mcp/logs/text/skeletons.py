"""A block of lines → the skeleton of each line, which names its shape, and the numbers that were taken out of it.

A skeleton is the line with a mark in place of each number. Runs of one sign (blanks, a rule, a bar as it grows) are cut
to two. Digits that belong to a word ("layer12") stay. The digits of a time stamp are no numbers: they are written as
zeros, as readers of prefixes count them. Lines of one skeleton differ in their numbers and times alone.

A line with a zero in place of each digit is its layout. Lines of one layout have their numbers at the same places,
so that only the first of them is looked through byte by byte. A block of many layouts is looked through as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.columns import Floats

WHOLE, DECIMAL, ODD, GROUPED = 1, 2, 3, 4
"""What stands in a skeleton for a whole number, for another one, for what only looks like one, such as "1.2.3"; and for
a whole number in groups of thousands, such as "12,345" or "12_345"."""
MARKS = (b"\x01", b"\x02", b"\x03", b"\x04")

_DIGIT, _DOT, _EXPONENT, _SIGN, _COMMA, _LETTER, _END = 1, 2, 4, 8, 16, 32, 64
_BETWEEN_GROUPS = _COMMA | _LETTER
"""The classes of what stands between groups of thousands; the only letter in a number is the underscore."""
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
_MARGIN_BYTES = 24
"""Bytes around the block, so that the neighbours of each byte and of each clock exist."""
_CLOCK_DIGITS = (0, 1, 3, 4, 6, 7)
"""Where the digits of a clock stand, such as those of "10:00:01"."""
_DATE_DIGITS = (-11, -10, -9, -8, -6, -5, -3, -2)
"""Where those of a date before it stand, such as those of "2026-11-20 "."""
_MAX_FRACTION = 9
"""Digits of the fraction of a second behind it."""
_WIDE_SIGN_BYTE = 0xE2
"""First byte of the signs of three bytes with which bars and rules are drawn."""

Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Span(NamedTuple):
    """Where a line or a number begins and ends in its block."""

    start: int
    end: int


class Skeletons:
    """The skeletons of the lines of a block, and their numbers.

    Args:
        block: Whole lines, ended by line feeds; without the bytes of `MARKS`.
        layouts: What is known of the lines above it.
    """

    def __init__(self, block: bytes, layouts: Layouts | None = None) -> None:
        self.block = block
        self._line_ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
        self._line_starts = np.append(0, self._line_ends[:-1] + 1)
        known = (layouts or Layouts()).find(block, self._line_starts, self.line)
        self._found: _Scan | _Expanded = _Scan(block) if known is None else known
        self.keys = self._found.keys
        self._starts, self._ends = self._found.starts, self._found.ends
        self.first: Places = self._found.first
        """Index of the first number of each line, and how many there are in all, shape (lines + 1,)."""

    def __len__(self) -> int:
        return len(self._line_ends)

    def line(self, index: int) -> bytes:
        """Return a line, without its end."""
        return self.block[self._line_starts[index] : self._line_ends[index]]

    def numbers_in(self, index: int) -> list[Span]:
        """Return where the numbers of a line stand in it."""
        these = slice(self.first[index], self.first[index + 1])
        at = int(self._line_starts[index])
        return [
            Span(start - at, end - at)
            for start, end in zip(self._starts[these].tolist(), self._ends[these].tolist(), strict=True)
        ]

    @cached_property
    def numbers(self) -> Floats:
        """The numbers of all lines, in order; what only looks like one is NaN."""
        return self._found.numbers()

    def rows(self, lines: Places) -> Floats:
        """Return the numbers of lines that have as many as one another, shape (len(lines), numbers)."""
        rows: Floats = self.numbers[self._places(lines)]
        return rows

    def widths(self, lines: Places) -> Places:
        """Return with how many bytes the numbers of such lines are written, shape (len(lines), numbers)."""
        at = self._places(lines)
        widths: Places = self._ends[at] - self._starts[at]
        return widths

    def _places(self, lines: Places) -> Places:
        width = int(self.first[lines[0] + 1] - self.first[lines[0]])
        places: Places = self.first[lines][:, None] + np.arange(width)
        return places

    @cached_property
    def listed(self) -> list[float]:
        """The numbers of all lines, as Python's."""
        listed: list[float] = self.numbers.tolist()
        return listed


class _Scan:
    """The skeletons of the lines of a block, where they begin and end, looked for byte by byte."""

    def __init__(self, block: bytes) -> None:
        padded = bytes(_MARGIN_BYTES) + block + bytes(_MARGIN_BYTES)
        self._bytes = np.frombuffer(padded, dtype=np.uint8)
        self._classes = np.frombuffer(padded.translate(_CLASS_OF), dtype=np.uint8)
        number = self._number_bytes()
        times = self._time_bytes()
        number[times] = False
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
        self._of_times: Places = times[self._classes[times] == _DIGIT]
        self.keys = self._keys(self._of_times)
        self.starts: Places = starts - _MARGIN_BYTES
        self.ends: Places = ends - _MARGIN_BYTES
        line_starts = np.append(_MARGIN_BYTES, np.flatnonzero(self._classes == _END)[:-1] + 1)
        self.first: Places = np.append(np.searchsorted(starts, line_starts), len(starts))

    def numbers(self) -> Floats:
        """Return the numbers of all lines, in order; what only looks like one is NaN."""
        if not len(self._starts):
            return np.empty(0)
        text = self._bytes.copy()
        text[self._ends] = ord("\n")
        kept = self._number.copy()
        kept &= (self._classes & _BETWEEN_GROUPS) == 0
        kept[self._ends] = True
        return _to_floats(_chosen(text, kept))

    def digits_of_words(self) -> Places:
        """Return where the digits stand that are of neither a number nor a time."""
        of_words = (self._classes == _DIGIT) & ~self._number
        of_words[self._of_times] = False
        return np.flatnonzero(of_words) - _MARGIN_BYTES

    def _number_bytes(self) -> Mask:
        """Return which bytes belong to numbers, those that belong to words among them."""
        classes = self._classes
        size = len(classes)

        def near(offset: int) -> Bytes:
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
        between = (here == _COMMA) | (self._bytes[2 : size - 3] == ord("_"))
        self._join_thousands(number, np.flatnonzero(between & digit_before & digit_follows) + 2)
        return number

    def _join_thousands(self, number: Mask, signs: Places) -> None:
        """Take commas and underscores between groups of three digits for parts of a number: "12,345", "12_345"."""
        if not len(signs):
            return
        padded = np.concatenate([np.zeros(_MARGIN_BYTES, np.uint8), self._classes, np.zeros(_MARGIN_BYTES, np.uint8)])
        at = signs + _MARGIN_BYTES
        first, second, third, fourth = (padded[at + offset] == _DIGIT for offset in (1, 2, 3, 4))
        back = [padded[at - offset] for offset in (2, 3, 4)]
        short = (back[0] != _DIGIT) & (back[0] != _DOT)
        short |= (back[0] == _DIGIT) & (back[1] != _DIGIT) & (back[1] != _DOT)
        short |= (back[0] == _DIGIT) & (back[1] == _DIGIT) & (back[2] != _DIGIT) & (back[2] != _DOT)
        number[signs[first & second & third & ~fourth & short]] = True

    def _time_bytes(self) -> Places:
        """Return the bytes of times: a clock, with or without a date before it and a fraction of a second behind it."""
        there, classes = self._bytes, self._classes
        colons: Places = np.flatnonzero(there == ord(":"))
        at: Places = colons[:-1][np.diff(colons) == 3] - 2
        if not len(at):
            return at
        at = at[np.all([classes[at + place] == _DIGIT for place in _CLOCK_DIGITS], axis=0)]
        dated = np.all([classes[at + place] == _DIGIT for place in _DATE_DIGITS], axis=0)
        dated &= (there[at - 7] == there[at - 4]) & np.isin(there[at - 4], (ord("-"), ord("/")))
        dated &= np.isin(there[at - 1], (ord(" "), ord("T"))) & (classes[at - 12] != _DIGIT)
        alone = ((classes[at - 1] & (_DIGIT | _DOT | _LETTER | _EXPONENT)) == 0) & (there[at - 1] != ord(":"))
        whole: Mask = (dated | alone) & (classes[at + 8] != _DIGIT) & (there[at + 8] != ord(":"))
        at, dated = at[whole], dated[whole]
        parts = [(at[:, None] + np.arange(8)).ravel(), (at[dated][:, None] + np.arange(-11, 0)).ravel()]
        digits = at + 9
        thousandths = np.all([classes[digits + place] == _DIGIT for place in range(3)], axis=0)
        thousandths &= (classes[digits + 3] & (_DIGIT | _DOT)) == 0
        digits = digits[((there[at + 8] == ord(",")) & thousandths) | (there[at + 8] == ord("."))]
        parts.append(digits[classes[digits] == _DIGIT] - 1)
        for _ in range(_MAX_FRACTION):
            digits = digits[classes[digits] == _DIGIT]
            parts.append(digits)
            digits = digits + 1
        return np.concatenate(parts)

    def _keys(self, of_times: Places) -> list[bytes]:
        """Return the skeletons, one for each line, by the digits that belong to times."""
        there, classes = self._bytes, self._classes
        text = there.copy()
        marks = np.full(len(self._starts), WHOLE, dtype=np.uint8)
        grouped = np.flatnonzero(self._number & ((classes & _BETWEEN_GROUPS) != 0))
        marks[np.searchsorted(self._starts, grouped, side="right") - 1] = GROUPED
        # Whether a number is whole: no sign, dot or exponent stands in it. A second dot makes it odd.
        signs = np.flatnonzero(self._number & ((classes & (_DOT | _SIGN | _EXPONENT)) != 0))
        of = np.searchsorted(self._starts, signs, side="right") - 1
        marks[of] = DECIMAL
        dots = of[classes[signs] == _DOT]
        marks[dots[1:][dots[1:] == dots[:-1]]] = ODD
        text[self._starts] = marks
        text[of_times] = ord("0")
        keep = ~self._number
        keep[self._starts] = True
        # Runs of one sign.
        plain = (classes[2:] & (_DIGIT | _LETTER | _EXPONENT | _END)) == 0
        again = (there[2:] == there[1:-1]) & (there[2:] == there[:-2]) & plain
        keep[2:] &= ~again
        wide = np.flatnonzero(there[3:-_MARGIN_BYTES] == _WIDE_SIGN_BYTE) + 3
        if len(wide):
            alike = (there[wide] == there[wide - 3]) & (there[wide + 1] == there[wide - 2])
            wide = wide[alike & (there[wide + 2] == there[wide - 1])]
            keep[wide] = keep[wide + 1] = keep[wide + 2] = False
        inside = slice(_MARGIN_BYTES, len(there) - _MARGIN_BYTES)
        keys = _chosen(text[inside], keep[inside]).split(b"\n")
        del keys[-1]
        return keys


def _chosen(text: Bytes, mask: Mask) -> bytes:
    # A mask as an index takes eight times as long, where it changes from byte to byte.
    return text.take(np.flatnonzero(mask)).tobytes()


def float_or_nan(text: bytes) -> float:
    """Return a number, NaN if it only looks like one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _to_floats(text: bytes) -> Floats:
    """Return numbers that stand one in a line."""
    texts = text.split()
    try:
        return np.array(list(map(float, texts)))
    except ValueError:  # one of them only looks like a number
        return np.array([float_or_nan(number) for number in texts])


# The layouts of lines that were seen.

_TO_ZEROS = bytes.maketrans(b"123456789", b"000000000")
LINES_PER_LAYOUT = 3
"""Lines of a block for each layout that is new in it; with fewer, it is looked through as a whole, which is
sooner than to learn them. Measured."""
MAX_LAYOUT_BYTES = 4_000_000
"""Bytes of the layouts that are remembered."""
MAX_EXACT_DIGITS, MAX_EXACT_POWER = 15, 22
"""Digits of a whole number, and the power of ten, up to which a double holds them exactly: their quotient or product is
rounded once, as Python rounds what it reads."""
_POWERS = np.array([float(10**power) for power in range(MAX_EXACT_POWER + 1)])
_SIMPLE = regex(rb"[-+]?(?P<mantissa>0*(?:\.(?P<decimals>0*))?)(?:[eE](?P<sign>[-+]?)0{1,2})?")


class _Form(NamedTuple):
    """How a number is written, with a zero in place of each digit.

    Args:
        kept: Where what belongs to the number stands, but for signs between groups of thousands.
        digits: Where its digits stand, but for those of the exponent; none if it is not read digit by digit.
        power: The power of ten by which these are multiplied, but for the exponent.
        exponent: Where the digits of the exponent stand.
        sign: That of the number.
        sign_of_exponent: That of the exponent.
    """

    kept: Places
    digits: tuple[int, ...] = ()
    power: int = 0
    exponent: tuple[int, ...] = ()
    sign: int = 1
    sign_of_exponent: int = 1

    @classmethod
    def of(cls, text: bytes) -> _Form:
        """Return the form of a number that is written so."""
        kept = [place for place, byte in enumerate(text) if byte not in b",_"]
        simple = _SIMPLE.fullmatch(bytes(text[place] for place in kept))
        digits = [place for place in kept if text[place] == ord("0")]
        if simple is None:
            return cls(np.array(kept))
        count = simple["mantissa"].count(b"0")
        decimals = len(simple["decimals"] or b"")
        if not 0 < count <= MAX_EXACT_DIGITS:
            return cls(np.array(kept))
        signs = [-1 if sign == b"-" else 1 for sign in (text[:1], simple["sign"])]
        return cls(np.array(kept), tuple(digits[:count]), -decimals, tuple(digits[count:]), *signs)

    def read(self, there: Bytes, starts: Places) -> tuple[Floats, Mask | None]:
        """Return the numbers that begin at some places of a text, and which are exact, None if all are."""
        values = _whole_numbers(there, starts, self.digits)
        exact = None
        if self.exponent:
            power = self.sign_of_exponent * _whole_numbers(there, starts, self.exponent).astype(np.int64) + self.power
            exact = np.abs(power) <= MAX_EXACT_POWER
            scale = _POWERS[np.minimum(np.abs(power), MAX_EXACT_POWER)]
            values = np.where(power < 0, values / scale, values * scale)
        elif self.power:
            values /= _POWERS[-self.power]
        return (np.negative(values) if self.sign < 0 else values), exact


def _whole_numbers(there: Bytes, starts: Places, digits: Sequence[int]) -> Floats:
    """Return the whole numbers of digits at such distances from the starts; a double holds each step exactly."""
    values = there[digits[0] :].take(starts).astype(np.float64)
    for place in digits[1:]:
        values *= 10.0
        values += there[place:].take(starts)
    values -= ord("0") * ((10 ** len(digits) - 1) // 9)
    return values


class _Layout(NamedTuple):
    """What lines of one layout have in common.

    Args:
        key: Their skeleton.
        starts: Where their numbers begin, counted from the beginning of the line, shape (numbers,).
        ends: Where these end.
        forms: The places of their forms.
        words: Where digits that belong to words stand.
        digits: Which these are.
    """

    key: bytes
    starts: Places
    ends: Places
    forms: Places
    words: Places
    digits: bytes


class Layouts:
    """The layouts of the lines that were seen, and the forms of their numbers."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._layouts: list[_Layout] = []
        self._bytes = 0
        self._form_places: dict[bytes, int] = {}
        self._forms: list[_Form] = []

    def find(self, block: bytes, starts: Places, line: Callable[[int], bytes]) -> _Expanded | None:
        """Return the skeletons and numbers of the lines of a block, None if too many of its layouts are new."""
        if self._bytes > MAX_LAYOUT_BYTES:
            self._forget()
        texts = block.translate(_TO_ZEROS).split(b"\n")
        del texts[-1]
        places = self._places_of(texts, line)
        there = np.frombuffer(block, dtype=np.uint8)
        if places is not None and self._add_words(texts, places, there, starts):
            places = self._places_of(texts, line)
        return None if places is None else _Expanded(there, starts, places, self._layouts, self._forms)

    def _forget(self) -> None:
        self._places, self._layouts, self._bytes = {}, [], 0
        self._form_places, self._forms = {}, []

    def _places_of(self, texts: list[bytes], line: Callable[[int], bytes]) -> Places | None:
        """Return the place of each line's layout, shape (lines,); None if too many are new."""
        known = self._places
        places = [known.get(text, -1) for text in texts]
        if -1 in places:
            new: dict[bytes, int] = {}
            for index, place in enumerate(places):
                if place < 0:
                    new.setdefault(texts[index], index)
            if len(new) * LINES_PER_LAYOUT > len(texts):
                return None
            self._learn(list(new), [line(index) for index in new.values()])
            places = [known[text] for text in texts]
        return np.array(places, dtype=np.int64)

    def _learn(self, texts: list[bytes], lines: list[bytes]) -> None:
        """Look through a line of each layout."""
        scan = _Scan(b"\n".join([*lines, b""]))
        begin = np.cumsum([0, *(len(line) + 1 for line in lines)])
        of_line = np.repeat(begin[:-1], np.diff(scan.first))
        starts, ends = scan.starts - of_line, scan.ends - of_line
        written = b"\n".join(lines).translate(_TO_ZEROS)
        spans = zip(scan.starts.tolist(), scan.ends.tolist(), strict=True)
        forms = np.array([self._form_place(written[start:end]) for start, end in spans], dtype=np.int64)
        words = scan.digits_of_words()
        first_words = np.searchsorted(words, begin).tolist()
        first = scan.first.tolist()
        for index, (text, line) in enumerate(zip(texts, lines, strict=True)):
            numbers = slice(first[index], first[index + 1])
            of_words = words[first_words[index] : first_words[index + 1]] - begin[index]
            digits = bytes(line[place] for place in of_words.tolist()) if len(of_words) else b""
            self._places[text] = len(self._layouts)
            self._bytes += len(text)
            self._layouts.append(
                _Layout(scan.keys[index], starts[numbers], ends[numbers], forms[numbers], of_words, digits)
            )

    def _form_place(self, text: bytes) -> int:
        place = self._form_places.setdefault(text, len(self._forms))
        if place == len(self._forms):
            self._forms.append(_Form.of(text))
        return place

    def _add_words(self, texts: list[bytes], places: Places, there: Bytes, starts: Places) -> bool:
        """Add the digits of words to the texts of lines that differ in these from the first of their layout."""
        differ = False
        for place in distinct(places).tolist():
            layout = self._layouts[place]
            if not len(layout.words):
                continue
            at = np.flatnonzero(places == place)
            digits = there[starts[at][:, None] + layout.words]
            other = np.flatnonzero((digits != np.frombuffer(layout.digits, dtype=np.uint8)).any(axis=1))
            for index in other.tolist():
                texts[at[index]] += b"\n" + digits[index].tobytes()
            differ = differ or len(other) > 0
        return differ


class _Expanded:
    """The skeletons of the lines of a block, and where the numbers stand in each, by their layouts."""

    def __init__(
        self, there: Bytes, line_starts: Places, places: Places, layouts: Sequence[_Layout], forms: Sequence[_Form]
    ) -> None:
        self._there, self._forms = there, forms
        self.keys = [layouts[place].key for place in places.tolist()]
        used = distinct(places).tolist()
        of = np.searchsorted(used, places)
        counts = np.array([len(layouts[place].starts) for place in used], dtype=np.int64)
        per_line = counts[of]
        self.first: Places = np.append(0, np.cumsum(per_line))
        at = np.arange(self.first[-1]) - np.repeat(self.first[:-1] - (np.cumsum(counts) - counts)[of], per_line)
        begin = np.repeat(line_starts, per_line)
        starts, ends, of_forms = (
            np.concatenate([np.empty(0, dtype=np.int64), *(layouts[place][field] for place in used)])
            for field in (1, 2, 3)
        )
        self.starts: Places = starts[at] + begin
        self.ends: Places = ends[at] + begin
        self._of_forms: Places = of_forms[at]

    def numbers(self) -> Floats:
        """Return the numbers of all lines, in order; what only looks like one is NaN."""
        numbers = np.empty(len(self.starts))
        left: list[Places] = []
        texts: list[bytes] = []
        for place in distinct(self._of_forms).tolist():
            form, at = self._forms[place], np.flatnonzero(self._of_forms == place)
            if form.digits:
                numbers[at], exact = form.read(self._there, self.starts[at])
                if exact is None or exact.all():
                    continue
                at = at[~exact]
            text = np.full((len(at), len(form.kept) + 1), ord("\n"), dtype=np.uint8)
            text[:, :-1] = sliding_window_view(self._there, form.kept[-1] + 1)[self.starts[at]][:, form.kept]
            left.append(at)
            texts.append(text.tobytes())
        if left:
            numbers[np.concatenate(left)] = _to_floats(b"".join(texts))
        return numbers
