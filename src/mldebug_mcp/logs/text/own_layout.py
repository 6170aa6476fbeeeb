"""Lines of a layout of one's own, where no form that is known finds a metric in a text.

What is read is how numbers stand. Lines of one shape come again, and one number counts on. The words in front of a
number, or those of the heading above it, are its name. A shape counts where it comes often enough; a text counts where
one of its names is that of a phase or of a metric.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.line_prefixes import without_prefix
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, is_loss, is_telling
from mldebug_mcp.logs.numbers import parse_number

MIN_LINES_OF_SHAPE = 4
"""Lines of one shape whose numbers are read. Chosen: fewer show no course, and a text may have three of anything."""
MIN_STEPS = 5
"""Steps that a log of such lines has. Chosen: a list of files or of parameters counts on by chance over a few lines."""
MAX_LINES = 200_000
"""Lines of a text that are looked at."""
MAX_NUMBERS_IN_LINE = 60
"""Numbers of a line that are read: more are a dump."""
MAX_CHARACTERS = 2000
"""Characters of a line that are read."""
MAX_LETTERS_OF_COUNT = 4
"""Letters in front of a count that is glued to them: "it12"."""
SHARE = "0."
"""How a share is written whose whole stands behind it."""
MAX_WORDS_OF_SET = 1
"""Words next to a phase that name its set: "dev python". Chosen: more are a sentence."""
MAX_WORDS_OF_NAME = 3
"""Words in front of a number that are its name: the last ones of a longer text."""

_NUMBER = regex(
    r"(?<![\d.,])(?:(?<!\w)[-+](?=[\d.]))?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?%?"
    r"|(?<![\w.])[-+]?(?:nan|inf)(?![\w.])",
    re.IGNORECASE,
)
_WHOLE = regex(r"/(?P<whole>\d+)(?![\d/]|[.,]\d)")
"""What a number is a share of: "532/600"."""
_UNIT = regex(r"[^\W\d_]{1,4}(?:/[^\W\d_]{1,4})?(?![^\W\d_])")
"""A unit that is glued to a number: "114ms", "257img/s"."""
_WORD_OF_NAME = regex(r"[^\W\d][\w.'-]*(?:\([\w ,]{0,20}\))?|[|‖∇][^\W\d][\w|‖]*")
_END_OF_PART = regex(r"[|;,/\[\](){}<>]|\s-+\s")
"""What parts a name from what stands before it."""
_GROUP = regex(r"(?P<group>.*\S)(?::\s*|\s{2,})(?P<label>\S.*)")
"""A name that goes for all numbers behind it, and that of the first one: "grad      head 4.95   body 0.1"."""
_HEADING = regex(r"\s*[-=*#>.]*\s*(?P<words>[^\W\d][\w-]*(?: [\w-]+){0,2})\s*[-=*#:.]*\s*")
_BETWEEN_CELLS = regex(r"\s*[,;\t|]\s*")
MIN_COLUMNS = 3
"""Names of a row of them. Chosen: a sentence has a comma."""
_TRAINED = frozenset({"tr", "trn", "train", "training", "fit", "seen"})
_EVALUATED = {
    "te": "test", "tst": "test", "test": "test", "va": "val", "val": "val", "valid": "val", "validation": "val",
    "dev": "val", "held": "val", "heldout": "val", "held-out": "val", "kept-out": "val", "ho": "val", "check": "val",
    "tune": "val", "eval": "val", "unseen": "val", "hidden": "val",
}  # fmt: skip
"""Words of a phase that stand alone, each with the one that names are understood with."""
_EPOCHS = frozenset({"epoch", "ep", "pass", "round"})
_ENDS_GROUP = regex(r"[|;]")
_SAMPLE_MARKS = (">", '| "', '"', "'", "`")
"""So begin lines of text that a model wrote."""


_BARE = "?"
"""A number alone behind the count, which is the loss where other lines tell of training."""
_UNNAMED = "value "
"""How numbers without words are numbered where a line has several."""
_CLOCK = regex(r"(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:\d\d)?|\d{4}-\d\d-\d\d")


class _Spot(NamedTuple):
    """A number of a line, and the text in front of it since the number before."""

    before: str
    text: str
    number: float


class _Line(NamedTuple):
    """A line with numbers: its shape, its numbers, the words that head it, and the last row of names above it."""

    shape: str
    spots: tuple[_Spot, ...]
    heading: str
    columns: tuple[str, ...]


def read_own_layout(lines: Iterable[str], builder: RunBuilder) -> bool:
    """Read a text by the places of its numbers; return whether it is a log of training."""
    read = list(_lines_of(lines))
    often = {shape for shape, count in Counter(line.shape for line in read).items() if count >= MIN_LINES_OF_SHAPE}
    read = [line for line in read if line.shape in often]
    counting = _counting_shapes(read)
    if not counting:
        return False
    records = list(_records(read, counting))
    names = {name for _, _, values in records for name in values if name != _BARE and not name.startswith(_UNNAMED)}
    if len(records) < MIN_STEPS or not (any(map(_tells, names)) or (names and _counts_by_name(read, counting))):
        return False
    for unit, step, values in records:
        builder.record({unit: step, **{"loss" if name == _BARE else name: value for name, value in values.items()}})
    builder.note("lines of no form that is known: numbers are named by the words in front of them (guessed)")
    return True


def _lines_of(lines: Iterable[str]) -> Iterator[_Line]:
    """Yield the lines with numbers; a line of words alone heads those below that are indented further."""
    headings: list[tuple[int, str]] = []
    columns: tuple[str, ...] = ()
    for _, whole in zip(range(MAX_LINES), lines, strict=False):
        line = _CLOCK.sub("", without_prefix(whole[:MAX_CHARACTERS]).message)
        indent = len(line) - len(line.lstrip())
        if not line.strip() or line.lstrip().startswith(_SAMPLE_MARKS):
            continue
        headings = [(at, words) for at, words in headings if at < indent]
        spots = _spots_in(line)
        if spots and len(spots) <= MAX_NUMBERS_IN_LINE:
            shape = " ".join("#".join([*(spot.before for spot in spots), ""]).lower().split())
            yield _Line(shape, spots, " ".join(words for _, words in headings), columns)
        elif names := _columns_in(line):
            columns = names
        elif (heading := _HEADING.fullmatch(line)) is not None:
            headings.append((indent, heading["words"]))


def _columns_in(line: str) -> tuple[str, ...]:
    """Return the names that stand in a row, parted by commas, semicolons, tabs or bars; () for other text."""
    cells = tuple(_BETWEEN_CELLS.split(line.strip(" |")))
    return cells if len(cells) >= MIN_COLUMNS and all(map(_WORD_OF_NAME.search, cells)) else ()


def _spots_in(line: str) -> tuple[_Spot, ...]:
    """Return the numbers of a line; digits glued to a word are part of it, but for a count that begins it: "u006"."""
    spots: list[_Spot] = []
    end = 0
    for found in _NUMBER.finditer(line):
        number, text = parse_number(found[0]), found[0]
        is_glued = found.start() > 0 and (line[found.start() - 1].isalpha() or line[found.start() - 1] == "_")
        counts = (
            not spots and not line[: found.start()].strip()[MAX_LETTERS_OF_COUNT:] and line[found.end() :][:1] != ":"
        )
        if number is None or found.start() < end or (is_glued and "." not in text and not counts):
            continue
        start, end = end, found.end()
        if spots and (whole := _WHOLE.match(line, end)) and number.is_integer() and 0 < float(whole["whole"]) >= number:
            number, text, end = number / float(whole["whole"]), SHARE, whole.end()
        elif unit := _UNIT.match(line, end):
            end = unit.end()
        elif text.endswith("%"):
            number /= 100
        spots.append(_Spot(line[start : found.start()], text, number))
    return tuple(spots)


def _counting_shapes(lines: Sequence[_Line]) -> dict[str, str]:
    """Return the shapes whose first number counts on, each with what it counts.

    Shapes that count the same as the one of most lines go with it; an epoch that heads finer steps does not.
    """
    first: dict[str, list[_Spot]] = {}
    for line in lines:
        first.setdefault(line.shape, []).append(line.spots[0])
    ascending = {
        shape: spots
        for shape, spots in first.items()
        if _is_counter(spots[0]) and all(spot.number.is_integer() for spot in spots) and _ascends(spots)
    }
    units = {shape: _unit_of(spots[0].before) for shape, spots in ascending.items()}
    steps: Counter[str] = Counter()
    for shape, unit in units.items():
        steps[unit] += len(ascending[shape])
    if not steps:
        return {}
    finest = "step" if steps["step"] >= MIN_STEPS else steps.most_common(1)[0][0]
    return {shape: unit for shape, unit in units.items() if unit == finest}


def _ascends(spots: Sequence[_Spot]) -> bool:
    numbers = [spot.number for spot in spots]
    return numbers[-1] > numbers[0] and all(later >= earlier for earlier, later in pairwise(numbers))


def _is_counter(spot: _Spot) -> bool:
    """Say whether a number that begins a line may count: nothing stands before it, or a mark, a letter, a counter."""
    words = re.findall(r"[^\W\d]+", spot.before)
    return (
        len(words) <= 1 and not any(character in spot.text for character in ".%e") and not any(map(is_telling, words))
    )


def _unit_of(before: str) -> str:
    words = re.findall(r"[^\W\d]+", before.lower())
    return "epoch" if words and (words[0] in _EPOCHS or canonical(words[0]) == "epoch") else "step"


def _records(lines: Sequence[_Line], counting: dict[str, str]) -> Iterator[tuple[str, float, dict[str, float]]]:
    """Yield what each step has: the numbers of its line and of those below it that do not count."""
    unit, step, values = next(iter(counting.values())), None, dict[str, float]()
    for line in lines:
        spots, columns = line.spots, line.columns
        is_row = len(columns) == len(spots) and not any(map(_WORD_OF_NAME.search, (spot.before for spot in spots)))
        if line.shape in counting:
            if step is not None and spots[0].number != step:
                yield unit, step, values
                values = {}
            step, spots, columns = spots[0].number, spots[1:], columns[1:]
        if step is not None:
            row = {_whole_name("", name, 0, spot.text): spot.number for name, spot in zip(columns, spots, strict=False)}
            values |= row if is_row else _named(line.heading, spots)
    if step is not None and values:
        yield unit, step, values


def _named(heading: str, spots: Sequence[_Spot]) -> dict[str, float]:
    """Return the numbers of a line by name; one that has no words of its own is the next one of the name before."""
    found: dict[str, list[_Spot]] = {}
    group = label = ""
    for spot in spots:
        new_group, new_label = _label(spot.before)
        group = new_group or (group if not _ENDS_GROUP.search(spot.before) else "")
        label = f"{group} {new_label}".strip() if new_label else label
        found.setdefault(label, []).append(spot)
    values: dict[str, float] = {}
    unnamed = found.pop("", []) if not heading else []
    has_loss = any(map(is_loss, found))
    for name, those in found.items():
        for place, spot in enumerate(those):
            is_score = has_loss and not heading and name.lower() in _EVALUATED and not spot.text.endswith("%")
            whole = name.lower() if is_score else _whole_name(heading, name, place, spot.text)
            values.setdefault(whole, spot.number)
    is_alone = len(unnamed) == 1 and "." in unnamed[0].text and not any(map(is_loss, values))
    for place, spot in enumerate(unnamed, start=1):
        values[_BARE if is_alone else f"{_UNNAMED}{place}"] = spot.number
    return values


def _label(before: str) -> tuple[str, str]:
    """Return the group that begins in front of a number, and the words that name it: the last of their part."""
    text = before.strip(" \t:=([{<~>")
    part = [text for text in _END_OF_PART.split(text) if _WORD_OF_NAME.search(text)]
    grouped = _GROUP.fullmatch(part[-1].strip()) if part else None
    words = _WORD_OF_NAME.findall(grouped["label"] if grouped else part[-1] if part else "")
    group = _WORD_OF_NAME.findall(grouped["group"]) if grouped else []
    return " ".join(group[-MAX_WORDS_OF_NAME:]), " ".join(words[-MAX_WORDS_OF_NAME:])


def _whole_name(heading: str, label: str, place: int, text: str) -> str:
    """Return the name of a number; a phase alone is its loss, and the share behind it its accuracy."""
    words = f"{heading} {label}".split()
    phase = next((word for word in words if word.lower() in _TRAINED or word.lower() in _EVALUATED), "")
    measured = " ".join(word for word in words if word is not phase)
    known = "train" if phase.lower() in _TRAINED else _EVALUATED.get(phase.lower(), "")
    if phase and not (measured and (role_of(measured) is not None or is_telling(measured))):
        is_share = text.endswith("%") or (place > 0 and text.startswith(("0.", "1.0")))
        is_loss_of_phase = place == 0 and len(measured.split()) <= MAX_WORDS_OF_SET
        measured += " accuracy" if is_share else " loss" if is_loss_of_phase else f" value {place + 1}"
    elif place:
        measured += f" {place + 1}"
    return f"{known} {measured.strip()}".strip()


def _counts_by_name(lines: Sequence[_Line], counting: dict[str, str]) -> bool:
    """Say whether the count has the name of a step or an epoch, in its line or at the head of its column."""
    counts = [line for line in lines if line.shape in counting]
    heads = {line.columns[0] for line in counts if line.columns} | {
        line.spots[0].before.strip(" :=[(#") for line in counts
    }
    return any(canonical(head.lower()) in COUNTERS for head in heads if head)


def _tells(name: str) -> bool:
    """Say whether a name is one that only training or evaluation has."""
    return canonical(name) not in COUNTERS and (is_telling(name) or name.startswith(("train ", "val ", "test ")))
