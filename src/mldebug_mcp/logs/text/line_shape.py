"""The shape of a line, learnt from one line and used to read the others many times as fast.

A line with a mark in place of each number is its skeleton, which names its shape. The numbers are replaced by probes
and the line is read once more: where the probes come out tells which number is which metric, with which factor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names.metrics import is_of_record
from mldebug_mcp.logs.numbers import HUGE
from mldebug_mcp.logs.text.counters import Counters
from mldebug_mcp.logs.text.parsed_line import Drawing, LineContent, Parsed, is_remark
from mldebug_mcp.logs.text.skeletons import Places, Span, float_or_nan

MAX_NUMBERS = 90
"""Numbers in a line whose shape is learnt."""
MAX_DIGITS_OF_SHORT = 3
"""Digits of a number where a longer one would make another line: "100%"."""
_FIRST_PROBE = 700_001
"""Number that is put in place of the first one of a line, to see which metric it becomes. No real value is as odd."""
_FRACTION_OF_PROBE = 0.25
_FIRST_SHORT_PROBE = 101
"""The same for places that take three digits at most."""
_BRIEF = (b"5", b"05", b"55")
"""What else stands in the place of a whole number: a date whose hour has one digit more or less is not a date."""
_FIRST_PROOF = 11
"""Number that is put there as the proof: other numbers must reach the same metrics."""
_TIME = regex(rb"(?:\d{4}[-/]\d\d[-/]\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_OTHER_DATE, _OTHER_CLOCK = b"20310817", b"234556987654321"
"""Digits of a time that a line of a shape may have as well as its own."""

_FORMS = ("1", "2", "3")
"""Digits for probes of the same form."""

Read = Callable[[str], LineContent]


class Slot(NamedTuple):
    """A number that a line says: a constant, and numbers of the line by their places, each times a factor."""

    constant: float
    terms: tuple[tuple[int, float], ...] = ()

    def of(self, numbers: Sequence[float]) -> float:
        """Return the number, by the numbers of a line."""
        if len(self.terms) == 1 and not self.constant:
            place, factor = self.terms[0]
            return numbers[place] * factor
        return self.constant + sum(numbers[place] * factor for place, factor in self.terms)

    def column(self, rows: Floats) -> Floats:
        """Return the number of each line, shape (n,), by their numbers, shape (n, numbers)."""
        column = np.full(len(rows), self.constant)
        for place, factor in self.terms:
            # No sum of a zero: a number of the log stays as it is to the last bit.
            column = (
                rows[:, place] * factor + column if self.constant or len(self.terms) > 1 else rows[:, place] * factor
            )
        return column


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
        tight: Places of numbers that have to be written with as many bytes as in the first line, as the hour of a
            time; and how many these are.
        aside: Its lines have neither a counter nor a metric that only training prints.
        known: They name a metric that is known.
        words: What tells the shape from others, but for the places of its numbers.
    """

    like: LineContent
    slots: tuple[Slot, ...]
    fixed: tuple[tuple[int, float], ...]
    short: tuple[int, ...]
    tight: tuple[tuple[int, int], ...]
    aside: bool
    known: bool
    words: tuple[object, ...]

    @property
    def only_counts(self) -> bool:
        """Whether its lines are drawings of a bar that reports no metric."""
        like = self.like
        return like.drawing is not None and not like.drawing.telling and like.plain is None and like.record is None

    @property
    def is_sure(self) -> bool:
        """Whether all lines of the skeleton have this shape."""
        return not (self.fixed or self.short or self.tight)

    @property
    def identity(self) -> tuple[object, ...]:
        """What is equal of two shapes whose lines say alike: bars that are drawn with other signs."""
        return (self.words, self.slots, self.fixed, self.short, self.tight)

    def fits(self, numbers: Sequence[float], widths: Sequence[int]) -> bool:
        """Say whether a line of the skeleton has this shape, by its numbers and the bytes that each is written with."""
        fixed = all(numbers[place] == value for place, value in self.fixed)
        short = all(numbers[place] < 10**MAX_DIGITS_OF_SHORT for place in self.short)
        return fixed and short and all(widths[place] == width for place, width in self.tight)

    def which_fit(self, rows: Floats, widths: Places) -> NDArray[np.bool_]:
        """Say which lines have this shape, shape (n,).

        Their numbers, and with how many bytes these are written, have the shape (n, numbers).
        """
        fit = np.ones(len(rows), dtype=np.bool_)
        for place, width in self.tight:
            fit &= widths[:, place] == width
        for place, value in self.fixed:
            fit &= rows[:, place] == value
        for place in self.short:
            fit &= rows[:, place] < 10**MAX_DIGITS_OF_SHORT
        return fit

    def content(self, numbers: Sequence[float]) -> LineContent | None:
        """Return what a line says, None if a counter in it is beyond bounds."""
        values = [slot.of(numbers) for slot in self.slots]
        try:
            return _rebuilt(self.like, values)
        except (ValueError, OverflowError):  # a counter is not finite
            return None

    def columns(self, rows: Floats) -> list[Floats]:
        """Return the numbers that lines say, in the order of the slots, each of shape (n,)."""
        return [slot.column(rows) for slot in self.slots]


def learn(line: bytes, spans: list[Span], read: Read) -> Shape | None:
    """Return the shape of a line, None if its numbers cannot be identified."""
    if len(spans) > MAX_NUMBERS:
        return None
    says = read(_text(line))
    here = _outline(says)
    if here is None:
        return None
    texts = [_joined(line[start:end]) for start, end in spans]
    numbers = [float_or_nan(text) for text in texts]
    free, short = _loose(line, spans, here, texts, read)
    probes = _probes(texts)
    for place in short:
        probes[place] = float(_FIRST_SHORT_PROBE + place)
    again = _probed(line, spans, probes, free | short, read, at_other_time=True)
    if again is None or not _is_alike(here, again):
        return None
    rest = [place for place in range(len(spans)) if place not in free | short]
    tight = {place: terms for place in rest if (terms := _terms(line, spans, place, here, read)) is not None}
    slots = _slots(here, again, {place: probes[place] for place in free}, tight, numbers)
    if slots is None:
        return None
    fixed = tuple((place, numbers[place]) for place in rest if place not in tight)
    if any(math.isnan(value) for _, value in fixed):
        return None
    widths = tuple((place, spans[place].end - spans[place].start) for place in tight)
    shape = Shape(says, tuple(slots), fixed, tuple(sorted(short)), widths, *_place_of(says), here.words)
    # The proof: other numbers in all places that may change, at once.
    written = {place: _in_form(line[slice(*spans[place])], _FORMS[place % 2]) for place in tight}
    for place in free:
        probe = str(_FIRST_PROOF + place) if texts[place].isdigit() else f"{0.10101 + place:.10g}"
        written[place] = probe.encode()
    proof = [float_or_nan(_joined(written[at])) if at in written else number for at, number in enumerate(numbers)]
    proofs = ((numbers, here), (proof, _outline(read(_text(_with_numbers(line, spans, written))))))
    return shape if all(_rebuilds(shape, example, outline) for example, outline in proofs) else None


def _loose(
    line: bytes, spans: list[Span], here: _Outline, texts: Sequence[bytes], read: Read
) -> tuple[set[int], set[int]]:
    """Return the places where any number makes a line like it, and those where any of three digits says nothing."""

    def says_with(place: int, text: bytes) -> _Outline | None:
        return _outline(read(_text(_with_numbers(line, spans, {place: text}))))

    probes = _probes(texts)
    free = set(range(len(spans)))
    if not _is_alike(here, _probed(line, spans, probes, free, read)):
        free = {place for place in free if _is_alike(here, _probed(line, spans, probes, {place}, read))}
    whole = {place for place, text in enumerate(texts) if text.isdigit()}
    free -= {place for place in whole if not all(_is_alike(here, says_with(place, form)) for form in _BRIEF[:2])}
    short = set()
    for place in whole - free:
        forms = (*_BRIEF, str(_FIRST_SHORT_PROBE + place).encode())
        if all(says_with(place, form) == here for form in forms):
            short.add(place)
    return free, short


def _probes(texts: Sequence[bytes]) -> list[float]:
    """Return a probe for each number; one with a fraction has one: "[1763632001.5]" is a time, "[700001]" a counter."""
    return [_FIRST_PROBE + place + _FRACTION_OF_PROBE * (not text.isdigit()) for place, text in enumerate(texts)]


def _in_form(text: bytes, digit: str) -> bytes:
    """Return a number of the same form: each digit is another one, and everything else stays."""
    return bytes(ord(digit) if chr(byte).isdigit() else byte for byte in text)


def _terms(line: bytes, spans: list[Span], place: int, here: _Outline, read: Read) -> dict[int, float] | None:
    """Return by what factor each number that a line says goes with a number of the line; none where it says nothing.

    None if another number of the same form makes another line of it, or the two do not go together in a straight line.
    """
    text = line[slice(*spans[place])]
    number = float_or_nan(_joined(text))
    factors: dict[int, float] | None = None
    for form in [form for form in (_in_form(text, digit) for digit in _FORMS) if form != text][:2]:
        other = _outline(read(_text(_with_numbers(line, spans, {place: form}))))
        if other is None or not _is_alike(here, other):
            return None
        moved = float_or_nan(_joined(form)) - number
        found = {
            at: (after - before) / moved
            for at, (before, after) in enumerate(zip(here.numbers, other.numbers, strict=True))
            if not (after == before or (math.isnan(after) and math.isnan(before)))
        }
        if not all(map(math.isfinite, found.values())) or (factors is not None and found != factors):
            return None
        factors = found
    return factors


def _with_numbers(
    line: bytes, spans: list[Span], written: Mapping[int, bytes], *, at_other_time: bool = False
) -> bytes:
    """Return a line with other text in place of some of its numbers, by their places, or with other times too."""
    edges = [0, *(edge for span in spans for edge in span), len(line)]
    parts = [line[start:end] for start, end in pairwise(edges)]
    if at_other_time:
        parts[::2] = [_TIME.sub(_other_time, part) for part in parts[::2]]
    for place, text in written.items():
        parts[2 * place + 1] = text
    return b"".join(parts)


def _place_of(content: LineContent) -> tuple[bool, bool]:
    """Say whether a line stands aside, and whether it names a metric that is known."""
    plain = content.plain
    if plain is None or content.drawing is not None or content.record is not None:
        return False, False
    return not plain.telling and not plain.counters.values, plain.goes_on or any(map(is_of_record, plain.metrics))


def _rebuilds(shape: Shape, numbers: list[float], outline: _Outline | None) -> bool:
    content = shape.content(numbers)
    rebuilt = _outline(content) if content is not None else None
    if rebuilt is None or outline is None or rebuilt.words != outline.words:
        return False
    return all(
        number == other or (math.isnan(number) and math.isnan(other))
        for number, other in zip(rebuilt.numbers, outline.numbers, strict=True)
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
    written = {place: f"{probes[place]:.10g}".encode() for place in free}
    return _outline(read(_text(_with_numbers(line, spans, written, at_other_time=at_other_time))))


def _other_time(time: re.Match[bytes]) -> bytes:
    digits = iter(_OTHER_DATE * (time[0][2:3] != b":") + _OTHER_CLOCK)
    return bytes(next(digits) if chr(byte).isdigit() else byte for byte in time[0])


def _is_alike(outline: _Outline, other: _Outline | None) -> bool:
    return other is not None and outline.words == other.words and len(outline.numbers) == len(other.numbers)


_UNITS = (60.0, 3600.0, 86_400.0)
"""Factors besides powers of ten and of two: minutes, hours and days in seconds."""


def _slots(
    here: _Outline,
    probed: _Outline,
    probes: Mapping[int, float],
    tight: Mapping[int, Mapping[int, float]],
    numbers: Sequence[float],
) -> list[Slot] | None:
    """Return what each number is; None if one is not one probe times a unit, and numbers of a form times factors.

    `tight` has the factors by which what the line says goes with numbers of one form.
    """
    slots: list[Slot] = []
    for at, (value, again) in enumerate(zip(here.numbers, probed.numbers, strict=True)):
        terms = [(place, factors[at]) for place, factors in tight.items() if at in factors]
        of_terms = sum(numbers[place] * factor for place, factor in terms)
        if value == again or (math.isnan(value) and math.isnan(again)):
            slots.append(Slot(value - of_terms if terms else value, tuple(terms)))
            continue
        term = _term(again - of_terms, probes)
        if term is None:
            return None
        slots.append(Slot(0.0, (term, *terms)))
    return slots


def _term(value: float, probes: Mapping[int, float]) -> tuple[int, float] | None:
    """Return the place of the probe that came out as a value, and its factor; None if none did."""
    # Units scale by powers of ten, and those of memory by powers of two, far more than probes differ.
    ratio = value / _FIRST_PROBE
    if not math.isfinite(value) or ratio <= 0:
        return None
    factors = (10.0 ** round(math.log10(ratio)), 2.0 ** round(math.log2(ratio)), *_UNITS)
    found = ((round(value / factor - _FIRST_PROBE), factor) for factor in factors)
    return next((pair for pair in found if pair[0] in probes and probes[pair[0]] * pair[1] == value), None)


def _outline(content: LineContent) -> _Outline | None:
    """Return the outline of what a line says; None if lines like it are not read by their shape."""
    words: list[object] = []
    numbers: list[float] = []
    if content.opens or content.skipped is not None or content.record == {}:
        return None
    if content.drawing is not None:
        drawing, bar = content.drawing, content.drawing.bar
        words += [drawing.words, bar.keras, bar.line, drawing.evaluation, drawing.from_zero, drawing.telling]
        words += [tuple(drawing.counters), tuple(drawing.metrics), len(drawing.head), drawing.planned]
        numbers += [bar.at, bar.total, *drawing.head, *drawing.counters.values(), *drawing.metrics.values()]
    if content.record is not None:
        words += ["record", *content.record]
        for value in content.record.values():
            if not isinstance(value, float):
                return None
            numbers.append(value)
    if content.plain is not None:
        parsed, counters = content.plain, content.plain.counters
        bare = counters.rest.strip(" |:-") == ""
        words += [tuple(counters.values), tuple(parsed.metrics), parsed.rank, parsed.telling, parsed.evaluation, bare]
        words += [counters.batch is None, counters.phase, counters.rounded, counters.weak, counters.first_epoch]
        words += [is_remark(parsed), counters.total, counters.planned, counters.ends_epoch]
        words += [parsed.goes_on, parsed.label]
        numbers += [*counters.values.values(), *(counters.batch or ()), *parsed.metrics.values()]
    return _Outline(tuple(words), tuple(numbers)) if words else None


def _rebuilt(like: LineContent, values: list[float]) -> LineContent:
    """Return what a line says that has these numbers, in the order of `_outline`."""
    content, at = LineContent(), 0
    if like.drawing is not None:
        content.drawing, at = _rebuilt_drawing(like.drawing, values)
    if like.record is not None:
        content.record = dict(zip(like.record, values[at:], strict=True))
    if like.plain is not None:
        parsed, of = like.plain, like.plain.counters
        after = at + len(of.values)
        counted = dict(zip(of.values, values[at:after], strict=True))
        batch = None
        if of.batch is not None:
            batch = (_counter(values[after]), _counter(values[after + 1]))
            after += 2
        metrics = dict(zip(parsed.metrics, values[after:], strict=True))
        place = Counters(
            counted, batch, of.phase, of.rounded, of.weak, of.first_epoch, of.rest, of.step_name, of.total, of.planned,
            of.ends_epoch, of.length_is_known,
        )  # fmt: skip
        content.plain = Parsed(
            place,
            metrics,
            parsed.rank,
            parsed.telling,
            parsed.evaluation,
            label=parsed.label,
            labels_row=parsed.labels_row,
            goes_on=parsed.goes_on,
        )
    return content


def _rebuilt_drawing(like: Drawing, values: list[float]) -> tuple[Drawing, int]:
    bar = like.bar._replace(at=_counter(values[0]), total=_counter(values[1]), metrics="", around="")
    first = 2 + len(like.head)
    second = first + len(like.counters)
    last = second + len(like.metrics)
    counters = dict(zip(like.counters, values[first:second], strict=True))
    metrics = dict(zip(like.metrics, values[second:last], strict=True))
    head = tuple(values[2:first])
    return replace(like, bar=bar, head=head, counters=counters, metrics=metrics), last


def _counter(value: float) -> int:
    if value > HUGE:
        raise OverflowError
    return int(value)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")


def _joined(number: bytes) -> bytes:
    """Return a number without the signs between its groups of thousands."""
    return number.translate(None, b",_")
