"""The shape of a line, learnt from one line and used to read the others many times as fast.

A line's numbers are replaced by probes, the line is read once more, and where the probes come out says which number is
which metric, with which factor. Numbers that belong to a name ("Acc@5") or tell who prints ("[3]:") show by what they
change: lines of the shape have the same there. Probes of other lengths prove it. So a shape says exactly what the slow
way says, or it is not made at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.lines.bars import Bar
from mldebug_mcp.logs.lines.counters import Counters
from mldebug_mcp.logs.lines.parsed import is_remark
from mldebug_mcp.logs.lines.said import Drawing, Said
from mldebug_mcp.logs.lines.skeletons import Span
from mldebug_mcp.logs.names import is_known
from mldebug_mcp.logs.numbers import HUGE

MAX_NUMBERS = 90
"""Numbers in a line of which a shape is learnt."""
SHORT = 3
"""Digits of a number where a longer one would make another line: "100%"."""
_FIRST_PROBE = 700_001
_FIRST_SHORT_PROBE = 101
_FIRST_PROOF = 11

Read = Callable[[str], Said]
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
        short: Places of whole numbers that say nothing and have no more than `SHORT` digits, such as a percentage.
        aside: Its lines have neither a counter nor a metric that only training prints.
        known: They name a metric that is known.
        words: What tells the shape from others, but for the places of its numbers.
    """

    like: Said
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
        return fixed and all(numbers[place] < 10**SHORT for place in self.short)

    def which_fit(self, rows: Floats) -> NDArray[np.bool_]:
        """Say which lines have this shape, shape (n,), by their numbers, shape (n, numbers)."""
        fit = np.ones(len(rows), dtype=np.bool_)
        for place, value in self.fixed:
            fit &= rows[:, place] == value
        for place in self.short:
            fit &= rows[:, place] < 10**SHORT
        return fit

    def said(self, numbers: Sequence[float]) -> Said | None:
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
    probes = [float(_FIRST_PROBE + place) for place in range(len(spans))]
    free, short = set(range(len(spans))), set[int]()
    if not _is_alike(here, _probed(line, spans, probes, free, read)):
        free = {place for place in free if _is_alike(here, _probed(line, spans, probes, {place}, read))}
        brief = [float(_FIRST_SHORT_PROBE + place) for place in range(len(spans))]
        others = [place for place, text in enumerate(texts) if place not in free and text.isdigit()]
        short = {place for place in others if _probed(line, spans, brief, {place}, read) == here}
        probes = [brief[place] if place in short else probe for place, probe in enumerate(probes)]
    again = _probed(line, spans, probes, free | short, read)
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


def _place_of(said: Said) -> tuple[bool, bool]:
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
    line: bytes, spans: list[Span], probes: Sequence[float], free: Iterable[int], read: Read
) -> _Outline | None:
    """Return what a line says with probes in place of the numbers that are free."""
    chosen = set(free)
    edges = [0, *(edge for span in spans for edge in span), len(line)]
    parts = [line[start:end] for start, end in pairwise(edges)]
    for place in chosen:
        parts[2 * place + 1] = f"{probes[place]:.10g}".encode()
    return _outline(read(_text(b"".join(parts))))


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


def _outline(said: Said) -> _Outline | None:
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


def _rebuilt(like: Said, values: list[float]) -> Said:
    """Return what a line says that has these numbers, in the order of `_outline`."""
    said, at = Said(), 0
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
