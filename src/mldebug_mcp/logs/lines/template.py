"""The shape of a record line, learnt from one line and used to read the others several times as fast.

A line's numbers are replaced by probes, the line is parsed once more, and where the probes come out says which number
is which metric, with which factor. So a template says exactly what the slow way says, or it is not made at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mldebug_mcp.logs.lines.counters import Counters
from mldebug_mcp.logs.lines.parsed import Parsed, parse_line
from mldebug_mcp.logs.numbers import NUMBER, parse_number

# Only digits: the word "nan" may be part of a name ("number of nan iterations").
_NUMBER = re.compile(rf"(?<![\w.])(?=[-+]?\.?\d){NUMBER}", re.IGNORECASE)
_ANY_NUMBER = (
    r"(?>[-+]?\d++(?:(?<!\d{4})(?:,\d{3})+)?+(?:\.\d*+)?+(?:[eE][-+]?\d+|f[-+]?\d{1,2})?+"
    r"|[-+]?(?:\.\d++(?:[eE][-+]?\d+)?+|(?i:nan(?:\.0)?|inf(?:inity|\.0)?)))"
)
"""As `NUMBER`, but taken whole or not at all.

Else a line that nearly fits, such as one with a longer list in it, would be tried with every way to share its digits,
commas and dashes among the numbers.
"""
_FIRST_PROBE = 700_001.0


@dataclass(slots=True)
class Template:
    """A line's pattern, and what the numbers in it are."""

    pattern: re.Pattern[str]
    counters: tuple[tuple[int, str, float], ...]
    metrics: tuple[tuple[int, str, float], ...]
    like: Parsed

    def read(self, line: str) -> Parsed | None:
        """Read a line of this shape; None if it has another one."""
        match = self.pattern.fullmatch(line)
        return None if match is None else self.parsed(match.groups())

    def parsed(self, texts: tuple[str, ...]) -> Parsed:
        """Return what a line of this shape says, from the texts of its numbers."""
        numbers = to_floats(texts)
        counted = {name: numbers[at] * factor for at, name, factor in self.counters}
        batch = (counted.pop("batch", math.nan), counted.pop("batches", math.nan))
        whole = (int(batch[0]), int(batch[1])) if all(map(math.isfinite, batch)) else None
        counters = Counters(counted, batch=whole)
        metrics = {name: numbers[at] * factor for at, name, factor in self.metrics}
        return Parsed(counters, metrics, self.like.rank, telling=True, evaluation=self.like.evaluation)


def to_floats(texts: Iterable[str]) -> list[float]:
    """Return the numbers that were printed; what turns out to be none is NaN."""
    texts = list(texts)
    try:
        return list(map(float, texts))
    except ValueError:  # thousands separators, nan.0
        numbers = [parse_number(text) for text in texts]
        return [math.nan if number is None else number for number in numbers]


def learn(line: str, parsed: Parsed) -> Template | None:
    """Make the template of a line that was parsed, or None if its numbers cannot be told apart."""
    spans = [match.span() for match in _NUMBER.finditer(line)]
    if not all(map(math.isfinite, parsed.metrics.values())):
        return None  # a NaN is a word: the next line of this shape will show its place
    of_evaluation = parsed.evaluation and parsed.counters.batch is not None  # only its last line counts
    if of_evaluation or parsed.counters.rounded or not 1 < len(spans) <= 90:
        return None
    probes = [_FIRST_PROBE + index for index in range(len(spans))]
    parts = [
        line[end:start] for end, start in zip([0, *(end for _, end in spans)], [s for s, _ in spans], strict=False)
    ]
    tail = line[spans[-1][1] :]
    probed = "".join(f"{part}{probe:.0f}" for part, probe in zip(parts, probes, strict=True)) + tail
    again = parse_line(probed)
    if (again.rank, again.telling, list(again.metrics)) != (parsed.rank, True, list(parsed.metrics)):
        return None
    counters, metrics = _places(_counted(again.counters), probes), _places(again.metrics, probes)
    if counters is None or metrics is None:
        return None
    used = sorted({place for place, _, _ in (*counters, *metrics)})
    pattern = "".join(
        _literal(part) + (f"({_ANY_NUMBER})" if index in used else _unused(line[slice(*spans[index])]))
        for index, part in enumerate(parts)
    )
    order = {place: group for group, place in enumerate(used)}
    template = Template(
        re.compile(pattern + _literal(tail)),
        tuple((order[place], name, factor) for place, name, factor in counters),
        tuple((order[place], name, factor) for place, name, factor in metrics),
        parsed,
    )
    read = template.read(line)
    return template if read is not None and _same(read, parsed) else None


def _counted(counters: Counters) -> dict[str, float]:
    batch = {} if counters.batch is None else {"batch": counters.batch[0], "batches": counters.batch[1]}
    return {**counters.values, **batch}


def _places(values: dict[str, float], probes: list[float]) -> list[tuple[int, str, float]] | None:
    """Return (index of the number, name, factor) of every value; None if one is not one probe times a unit."""
    places = []
    for name, value in values.items():
        # Units scale by powers of ten, far more than probes differ.
        ratio = value / _FIRST_PROBE
        if not math.isfinite(value):
            return None
        factor = 10.0 ** round(math.log10(ratio)) if ratio > 0 else 1.0
        place = round(value / factor - _FIRST_PROBE)
        if not 0 <= place < len(probes) or not math.isclose(probes[place] * factor, value):
            return None
        places.append((place, name, factor))
    return places


def _literal(text: str) -> str:
    return re.sub(r"(?:\\?\s)+", r"\\s*", re.escape(text))


def _unused(number: str) -> str:
    """Return the pattern of a number that says nothing, mostly a part of a time."""
    return r"\d++" if number.isdigit() else _ANY_NUMBER


def _same(one: Parsed, other: Parsed) -> bool:
    def values(parsed: Parsed) -> list[tuple[str, str]]:
        return [
            (name, f"{value:.12g}") for name, value in (*_counted(parsed.counters).items(), *parsed.metrics.items())
        ]

    return values(one) == values(other)
