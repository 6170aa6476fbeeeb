"""The shape of a line, learnt from one line and used to read the others many times as fast.

A line with a mark in place of each number is its skeleton, which names its shape. The numbers are replaced by probes
and the line is read once more: where the probes come out tells which number is which metric, with which factor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names.metrics import is_known
from mldebug_mcp.logs.numbers import HUGE
from mldebug_mcp.logs.text.bars import Bar
from mldebug_mcp.logs.text.counters import Counters
from mldebug_mcp.logs.text.parsed_line import Drawing, LineContent, is_remark

# A block of lines → the skeleton of each line, which names its shape, and the numbers that were taken out of it.
#
# A skeleton is the line with a mark in place of each number, and with runs of one sign (blanks, a rule, a bar as it
# grows) cut to two. Digits that belong to a word ("layer12") stay. The digits of a time stamp are no numbers: they are
# written as zeros, as readers of prefixes count them. Lines of one skeleton differ in their numbers and times alone.
# It is worked out for all lines of a block at once.


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
_MARGIN = 24
"""Bytes around the block, so that the neighbours of each byte and of each clock exist."""
_CLOCK_DIGITS = (0, 1, 3, 4, 6, 7)
"""Where the digits of a clock stand, such as those of "10:00:01"."""
_DATE_DIGITS = (-11, -10, -9, -8, -6, -5, -3, -2)
"""Where those of a date before it stand, such as those of "2026-11-20 "."""
_MAX_FRACTION = 9
"""Digits of the fraction of a second behind it."""
_TIME = re.compile(rb"(?:\d{4}[-/]\d\d[-/]\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_OTHER_DATE, _OTHER_CLOCK = b"20310817", b"234556987654321"
"""Digits of a time that a line of a shape may have as well as its own."""
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
        self.keys = self._keys(times[self._classes[times] == _DIGIT])
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


# The shape of a line, learnt from one line and used to read the others many times as fast.
#
# A line's numbers are replaced by probes, the line is read once more, and where the probes come out says which number
# is which metric, with which factor. Numbers that belong to a name ("Acc@5") or tell who prints ("[3]:") show by what
# they change: lines of the shape have the same there. Probes of other lengths prove it. So a shape says exactly what
# the slow way says, or it is not made at all.


MAX_NUMBERS = 90
"""Numbers in a line of which a shape is learnt."""
MAX_DIGITS_OF_SHORT = 3
"""Digits of a number where a longer one would make another line: "100%"."""
_FIRST_PROBE = 700_001
_FRACTION_OF_PROBE = 0.25
_FIRST_SHORT_PROBE = 101
_FIRST_PROOF = 11

Read = Callable[[str], LineContent]
Slot = tuple[int, float]
"""A number of the line, by its place, and the factor of its unit; or -1 and a value that all lines have."""


class _Outline(NamedTuple):
    """What a line says: all but its numbers, and the numbers."""

    words: tuple[object, ...]
    numbers: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the lines of one shape say.

    Args:
        like: What one of them says.
        slots: What each number in it is, in the order of `_outline`.
        fixed: Numbers by their place that are the same in all of them.
        short: Places of whole numbers that say nothing and have no more than `MAX_DIGITS_OF_SHORT` digits, such as
            a percentage.
        aside: Its lines have neither a counter nor a metric that only training prints.
        known: They name a metric that is known.
        words: What tells the shape from others, but for the places of its numbers.
    """

    like: LineContent
    slots: tuple[Slot, ...]
    fixed: tuple[Slot, ...]
    short: tuple[int, ...]
    aside: bool
    known: bool
    words: tuple[object, ...]

    @property
    def only_counts(self) -> bool:
        """Whether its lines are drawings of a bar that reports no metric."""
        like = self.like
        return like.drawing is not None and not like.drawing.telling and like.plain is None and like.record is None

    def number(self, slot: int, numbers: Sequence[float]) -> float:
        """Return one of the numbers that a line says."""
        place, factor = self.slots[slot]
        return numbers[place] * factor if place >= 0 else factor

    @property
    def identity(self) -> tuple[object, ...]:
        """What is equal of two shapes whose lines say alike: bars that are drawn with other signs."""
        return (self.words, self.slots, self.fixed, self.short)

    def fits(self, numbers: Sequence[float]) -> bool:
        """Say whether a line of the skeleton has this shape, by its numbers."""
        fixed = all(numbers[place] == value for place, value in self.fixed)
        return fixed and all(numbers[place] < 10**MAX_DIGITS_OF_SHORT for place in self.short)

    def which_fit(self, rows: Floats) -> NDArray[np.bool_]:
        """Say which lines have this shape, shape (n,), by their numbers, shape (n, numbers)."""
        fit = np.ones(len(rows), dtype=np.bool_)
        for place, value in self.fixed:
            fit &= rows[:, place] == value
        for place in self.short:
            fit &= rows[:, place] < 10**MAX_DIGITS_OF_SHORT
        return fit

    def said(self, numbers: Sequence[float]) -> LineContent | None:
        """Return what a line says, None if a counter in it is beyond bounds."""
        values = [numbers[place] * factor if place >= 0 else factor for place, factor in self.slots]
        try:
            return _rebuilt(self.like, values)
        except (ValueError, OverflowError):  # a counter is not finite
            return None

    def columns(self, rows: Floats) -> list[Floats]:
        """Return the numbers that lines say, in the order of the slots, each of shape (n,)."""
        return [rows[:, place] * factor if place >= 0 else np.full(len(rows), factor) for place, factor in self.slots]


def learn(line: bytes, spans: list[Span], read: Read) -> Shape | None:
    """Return the shape of a line, None if it cannot be told which of its numbers is which.

    Args:
        line: The line.
        spans: Where its numbers stand.
        read: Reads a line by itself.
    """
    if len(spans) > MAX_NUMBERS:
        return None
    says = read(_text(line))
    here = _outline(says)
    if here is None:
        return None
    texts = [line[start:end].replace(b",", b"") for start, end in spans]
    numbers = [_float(text) for text in texts]
    # A number with a fraction is probed with one: "[1763632001.5]" is a time, "[700001]" may be a counter.
    probes = [_FIRST_PROBE + place + _FRACTION_OF_PROBE * (not text.isdigit()) for place, text in enumerate(texts)]
    free, short = set(range(len(spans))), set[int]()
    if not _is_alike(here, _probed(line, spans, probes, free, read)):
        free = {place for place in free if _is_alike(here, _probed(line, spans, probes, {place}, read))}
        brief = [float(_FIRST_SHORT_PROBE + place) for place in range(len(spans))]
        others = [place for place, text in enumerate(texts) if place not in free and text.isdigit()]
        short = {place for place in others if _probed(line, spans, brief, {place}, read) == here}
        probes = [brief[place] if place in short else probe for place, probe in enumerate(probes)]
    again = _probed(line, spans, probes, free | short, read, at_other_time=True)
    slots = _slots(here, again, probes, free) if again is not None and _is_alike(here, again) else None
    if slots is None:
        return None
    fixed = tuple((place, number) for place, number in enumerate(numbers) if place not in free | short)
    if any(math.isnan(value) for _, value in fixed):
        return None
    shape = Shape(says, tuple(slots), fixed, tuple(sorted(short)), *_place_of(says), here.words)
    proof = [_FIRST_PROOF + place if text.isdigit() else 0.10101 + place for place, text in enumerate(texts)]
    proof = [number if place in free else numbers[place] for place, number in enumerate(proof)]
    proofs = ((numbers, here), (proof, _probed(line, spans, proof, free, read)))
    return shape if all(_tells(shape, told, outline) for told, outline in proofs) else None


def _place_of(said: LineContent) -> tuple[bool, bool]:
    """Say whether a line stands aside, and whether it names a metric that is known."""
    plain = said.plain
    if plain is None or said.drawing is not None or said.record is not None:
        return False, False
    return not plain.telling and not plain.counters.values, any(map(is_known, plain.metrics))


def _tells(shape: Shape, numbers: list[float], outline: _Outline | None) -> bool:
    said = shape.said(numbers)
    rebuilt = _outline(said) if said is not None else None
    if rebuilt is None or outline is None or rebuilt.words != outline.words:
        return False
    return all(
        one == other or (math.isnan(one) and math.isnan(other))
        for one, other in zip(rebuilt.numbers, outline.numbers, strict=True)
    )


def _probed(
    line: bytes,
    spans: list[Span],
    probes: Sequence[float],
    free: Iterable[int],
    read: Read,
    *,
    at_other_time: bool = False,
) -> _Outline | None:
    """Return what a line says with probes in place of the numbers that are free, or with other times too."""
    chosen = set(free)
    edges = [0, *(edge for span in spans for edge in span), len(line)]
    parts = [line[start:end] for start, end in pairwise(edges)]
    if at_other_time:
        parts[::2] = [_TIME.sub(_other_time, part) for part in parts[::2]]
    for place in chosen:
        parts[2 * place + 1] = f"{probes[place]:.10g}".encode()
    return _outline(read(_text(b"".join(parts))))


def _other_time(time: re.Match[bytes]) -> bytes:
    digits = iter(_OTHER_DATE * (time[0][2:3] != b":") + _OTHER_CLOCK)
    return bytes(next(digits) if chr(byte).isdigit() else byte for byte in time[0])


def _is_alike(one: _Outline, other: _Outline | None) -> bool:
    return other is not None and one.words == other.words and len(one.numbers) == len(other.numbers)


def _slots(here: _Outline, probed: _Outline, probes: list[float], free: set[int]) -> list[Slot] | None:
    """Return what each number is; None if one is not one probe times a unit."""
    slots: list[Slot] = []
    for value, again in zip(here.numbers, probed.numbers, strict=True):
        if value == again or (math.isnan(value) and math.isnan(again)):
            slots.append((-1, value))
            continue
        # Units scale by powers of ten, and those of memory by powers of two, far more than probes differ.
        ratio = again / _FIRST_PROBE
        if not math.isfinite(again) or ratio <= 0:
            return None
        factors = (10.0 ** round(math.log10(ratio)), 2.0 ** round(math.log2(ratio)))
        found = ((round(again / factor - _FIRST_PROBE), factor) for factor in factors)
        slot = next((one for one in found if one[0] in free and probes[one[0]] * one[1] == again), None)
        if slot is None:
            return None
        slots.append(slot)
    return slots


def _outline(said: LineContent) -> _Outline | None:
    """Return the outline of what a line says; None if lines like it are not read by their shape."""
    words: list[object] = []
    numbers: list[float] = []
    if said.opens or said.skipped is not None:
        return None
    if said.drawing is not None:
        drawing, bar = said.drawing, said.drawing.bar
        words += [drawing.words, bar.keras, bar.line, drawing.evaluation, drawing.from_zero, drawing.telling]
        words += [tuple(drawing.counters), tuple(drawing.metrics), len(drawing.head)]
        numbers += [bar.at, bar.total, *drawing.head, *drawing.counters.values(), *drawing.metrics.values()]
    if said.record is not None:
        words += ["record", *said.record]
        for value in said.record.values():
            if not isinstance(value, float):
                return None
            numbers.append(value)
    if said.plain is not None:
        parsed, counters = said.plain, said.plain.counters
        bare = counters.rest.strip(" |:-") == ""
        words += [tuple(counters.values), tuple(parsed.metrics), parsed.rank, parsed.telling, parsed.evaluation, bare]
        words += [counters.batch is None, counters.phase, counters.rounded, counters.weak, counters.first_epoch]
        words.append(is_remark(parsed))
        numbers += [*counters.values.values(), *(counters.batch or ()), *parsed.metrics.values()]
    return _Outline(tuple(words), tuple(numbers)) if words else None


def _rebuilt(like: LineContent, values: list[float]) -> LineContent:
    """Return what a line says that has these numbers, in the order of `_outline`."""
    said, at = LineContent(), 0
    if like.drawing is not None:
        said.drawing, at = _rebuilt_drawing(like.drawing, values)
    if like.record is not None:
        said.record = dict(zip(like.record, values[at:], strict=True))
    if like.plain is not None:
        parsed = like.plain
        counters = parsed.counters
        after = at + len(counters.values)
        counted = dict(zip(counters.values, values[at:after], strict=True))
        batch = None
        if counters.batch is not None:
            batch = (_counter(values[after]), _counter(values[after + 1]))
            after += 2
        metrics = dict(zip(parsed.metrics, values[after:], strict=True))
        place = Counters(
            counted, batch, counters.phase, counters.rounded, counters.weak, counters.first_epoch, counters.rest
        )
        said.plain = type(parsed)(place, metrics, parsed.rank, parsed.telling, parsed.evaluation)
    return said


def _rebuilt_drawing(like: Drawing, values: list[float]) -> tuple[Drawing, int]:
    old = like.bar
    bar = Bar(old.head, _counter(values[0]), _counter(values[1]), "", "", old.keras, old.line)
    first = 2 + len(like.head)
    second = first + len(like.counters)
    last = second + len(like.metrics)
    counters = dict(zip(like.counters, values[first:second], strict=True))
    metrics = dict(zip(like.metrics, values[second:last], strict=True))
    head = tuple(values[2:first])
    drawing = Drawing(bar, like.words, head, counters, metrics, like.evaluation, like.from_zero, like.telling)
    return drawing, last


def _counter(value: float) -> int:
    if value > HUGE:
        raise OverflowError
    return int(value)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")


def _float(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
