"""Lines of a layout of one's own, where no form that is known finds a metric in a text.

What is read is how numbers stand. Lines of one shape come again, and one number counts on. The words in front of a
number, or those of the heading above it, are its name. A shape counts where it comes often enough; a text counts where
one of its names is that of a phase or of a metric.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import fmean
from typing import NamedTuple, TypeAlias

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.line_prefixes import without_prefix
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.lexicon import GIB, OWN_SETS, SECONDS, STATISTICS, TESTS
from mldebug_mcp.logs.names.metrics import COUNTERS, LISTED, canonical, is_loss, is_telling, phase_alone
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.text.pairs import OF_SENTENCES

MIN_LINES_OF_SHAPE = 4
"""Lines of one shape whose numbers are read. Chosen: fewer show no course, and a text may have three of anything."""
MIN_STEPS = 5
"""Steps that a log of such lines has. Chosen: a list of files or of parameters counts on by chance over a few lines."""
MIN_EVEN_STRIDES = 0.8
"""Share of the steps that lie as far apart as most, where no name is one of training. Chosen: a log may end early."""
MIN_MEASURED_COLUMNS = 2
"""Columns of numbers with a decimal point that such a log has at least. Chosen: lists of layers or files count."""
MAX_ROUGHNESS = 0.8
"""Roughness of a curve. Chosen: of twelve rows in any order, a column in a hundred is less rough."""
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
_UNIT = regex(r"(?:[^\W\d_]{1,12}/[^\W\d_]{1,4}|[^\W\d_]{1,4}|\s{1,3}(?:secs?|seconds)(?=\s*;))(?![^\W\d_])")
"""A unit that is glued to a number, "114ms", "257img/s", or its name: "1.83ce"."""
_SIZE = regex(r"\s?(?P<unit>[KMGT]i?B)(?![\w/])")
"""A size of memory behind a number."""
_RANGES = ("-", "..", "–")
"""What stands between the first and the last step that a line is of."""
_ENDS_NAME = regex(r"\s{0,3}(?:\)\s{0,3})?[:=]\s{0,8}[-+]?(?:\d|\.\d|nan\b|inf\b)", re.IGNORECASE)
"""What stands behind a number that ends a name: "return last 50: 0.7"."""
_NAME_BEHIND = regex(r"\s{1,3}(?P<name>[^\W\d][\w ./-]{1,30})[)\]]")
"""The name of a number that opens a bracket: "loss 2.1 (+ 0.3 penalty)"."""
_SPREAD = regex(r"±|\+/?-\s*$")
"""What stands between a mean and its spread."""
_JOINS = frozenset({"of", "out of", "from"})
"""Words behind which stands the whole of a number, which is not of its name: "entropy 0.6 of 0.7"."""
MIN_LISTED = 3
"""Numbers behind one name that are a list of parts. Chosen: two may be a value and its share or its spread."""
_MEASURES_TOO = frozenset({"var", "sum"})
"""Statistics whose names are as often those of a measure: the variance of an energy, the sum of an invoice."""
_REMARK = regex(r"(?<=\w)\s{0,3}\((?:of|out of|per|in|over|at)?\s?[\w ,.-]{0,40}[,\d][\w ,.-]{0,40}\)$")
"""A remark in brackets behind a name, which does not belong to it: "facts (of 5)", "corr(judge, tokens)"."""
_MEASURED_IN = regex(r"(?<![\w./])(?P<name>[^\W\d]\w*)\[(?P<words>[^\W\d]\w*(?:[,; ]{1,2}\w+){0,3})\]$")
"""A measure and in brackets how it was measured: "loss[train,dropout]"."""
_OPENS_LIST = regex(r"(?P<name>[^\W\d][^\[\]:=]{0,40}?)(?:,[ ][\w ]{1,20}->[\w ]{1,20})?\s{0,3}[:=]\s{0,3}\[\s{0,3}$")
"""The name of a list in brackets, without the order that it says: "grad, in->out: [1e-9 ..."."""
_OPENS = regex(r"[(\[]\s{0,3}[-+~]?\s{0,3}$")
_WORD_OF_NAME = regex(r"[^\W\d][\w.'-]*(?:/[^\W\d]\w*)*(?:\([\w ,]{0,20}\))?|[|‖∇][^\W\d][\w|‖]*")
_END_OF_PART = regex(r"(?:^|\s)\|(?=\s|$)|[;,\[\](){}<>]|/(?![^\W\d_])|(?<![^\W\d_])/|\s-+\s")
"""What parts a name from what stands before it."""
_GROUP = regex(r"(?P<group>.*\S)(?::\s*|\s{2,})(?P<label>\S.*)")
"""A name that goes for all numbers behind it, and that of the first one: "grad      head 4.95   body 0.1"."""
_LEGEND = regex(r"(?:[\w ,:]{0,40})\[(?P<name>[^\W\d][\w ]{0,20})\]")
"""A line without numbers that says what stands in brackets: "[loss] then by quarter"."""
_HEADING = regex(r"\s*[-=*#>.]*\s*(?P<words>[^\W\d][\w-]*(?: [\w-]+){0,2})\s*[-=*#:.]*\s*")
_NUMBERED_HEADING = regex(r"(?P<words>[^\W\d_]{3,20}[-_ ]?\d{1,2})\s{0,3}:?")
"""An indented line of a set that has a number, "site2": it heads those below."""
_BETWEEN_CELLS = regex(r"\s*[,;\t|]\s*")
_BAR = regex(r"(?:^|\s)\|(?=\s|$)")
"""A bar that stands alone between cells; others belong to names: "| step | |g| | lr*|g| |"."""
MAX_SHARE_OF_NUMBERS_IN_HEADER = 0.5
"""Share of the cells between bars that may have a number where they are names: "changed in 200"."""
MIN_COLUMNS = 3
"""Names of a row of them. Chosen: a sentence has a comma."""
_EPOCHS = frozenset({"epoch", "ep", "pass", "round"})
_OF_SENTENCES = OF_SENTENCES | {"over", "took"}
"""Words that stand in front of numbers of a sentence."""
_ENDS_GROUP = regex(r"[|;]")
_ENDS_UNIT = regex(r"\s{0,3}(?:[^\s;][^;]{0,20})?;\s*")
"""A semicolon behind a number and its unit: "88 tok/s; 5 sec". Between others stand names: "1;loss;2.5"."""
_LEVEL_OF_DEBUGGING = "DEBUG"
"""Stands in lines that libraries print at that level: they hold no metrics."""
_SAMPLE_MARKS = (">", '| "', '"', "'", "`")
"""So begin lines of text that a model wrote."""


_BARE = "?"
"""A number alone behind the count, which is the loss where other lines tell of training."""
NUMBERED = "number "
"""How numbers without words are numbered where a line has several."""
_CLOCK = regex(r"(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:\d\d)?|\d{4}-\d\d-\d\d")


class _Spot(NamedTuple):
    """A number of a line, the text in front of it since the number before, its unit, and the name that follows it."""

    before: str
    text: str
    number: float
    unit: str = ""
    behind: str = ""


class _Line(NamedTuple):
    """A line with numbers: its shape, its numbers, the words that head it, the last row of names above it.

    Last comes what a legend says to stand in brackets.
    """

    shape: str
    spots: tuple[_Spot, ...]
    heading: str
    columns: tuple[str, ...]
    in_brackets: str = ""


_Record: TypeAlias = tuple[str, float, dict[str, float]]
"""What counts, how far, and the numbers by name."""


def read_own_layout(lines: Iterable[str], builder: RunBuilder) -> bool:
    """Read a text by the places of its numbers; return whether it is a log of training."""
    read = list(_lines_of(lines))
    often = {shape for shape, count in Counter(line.shape for line in read).items() if count >= MIN_LINES_OF_SHAPE}
    read = [line for line in read if line.shape in often]
    counting = _counting_shapes(read)
    if not counting:
        return False
    records = list(_records(_with_sets(read), counting))
    names = {name for _, _, values in records for name in values if name != _BARE and not name.startswith(NUMBERED)}
    is_known = any(map(_tells, names)) or (names and _counts_by_name(read, counting))
    if len(records) < MIN_STEPS or not (is_known or (_is_measured_evenly(records) and _has_course(records))):
        return False
    bare = f"{NUMBERED}1" if any(map(is_loss, names)) else "loss"
    for unit, step, values in records:
        builder.record({unit: step, **{bare if name == _BARE else name: value for name, value in values.items()}})
    builder.form_is_guessed = True
    builder.note("lines of no form that is known: numbers are named by the words in front of them (guessed)")
    return True


def _measured(records: Sequence[_Record]) -> list[list[float]]:
    """Return the numbers with decimals that have a name and move, by column."""
    columns: dict[str, list[float]] = {}
    for name, number in (named for _, _, values in records for named in values.items()):
        if not name.startswith(NUMBERED) and math.isfinite(number):
            columns.setdefault(name, []).append(number)
    return [
        numbers
        for numbers in columns.values()
        if len(numbers) >= MIN_STEPS and len(set(numbers)) > 1 and not all(map(float.is_integer, numbers))
    ]


def _is_measured_evenly(records: Sequence[_Record]) -> bool:
    """Say whether steps lie evenly and several named numbers with decimals move, in whatever words."""
    strides = Counter(later[1] - earlier[1] for earlier, later in pairwise(records))
    is_even = strides.most_common(1)[0][1] >= MIN_EVEN_STRIDES * (len(records) - 1)
    return is_even and len(_measured(records)) >= MIN_MEASURED_COLUMNS


def _has_course(records: Sequence[_Record]) -> bool:
    """Say whether a column goes somewhere from step to step, as a curve does; the rows of a list are in any order."""
    return any(_roughness(numbers) <= MAX_ROUGHNESS for numbers in _measured(records))


def _roughness(numbers: Sequence[float]) -> float:
    """Return the mean square of what numbers change by from one to the next, in their variance: 2 where chance rules.

    Source: J. von Neumann, Annals of Mathematical Statistics 12 (1941), 367.
    """
    mean = fmean(numbers)
    changes = fmean((later - earlier) ** 2 for earlier, later in pairwise(numbers))
    return changes / fmean((number - mean) ** 2 for number in numbers)


def _lines_of(lines: Iterable[str]) -> Iterator[_Line]:
    """Yield the lines with numbers; a line of words alone heads those below that are indented further."""
    headings: list[tuple[int, str]] = []
    columns: tuple[str, ...] = ()
    in_brackets = ""
    for _, whole in zip(range(MAX_LINES), lines, strict=False):
        line = _CLOCK.sub("", without_prefix(whole[:MAX_CHARACTERS]).message)
        indent = len(line) - len(line.lstrip())
        if not line.strip() or line.lstrip().startswith(_SAMPLE_MARKS) or _LEVEL_OF_DEBUGGING in whole[:MAX_CHARACTERS]:
            continue
        headings = [(at, words) for at, words in headings if at < indent]
        if indent and (heading := _NUMBERED_HEADING.fullmatch(line.strip())) and not _is_count(heading["words"]):
            headings.append((indent, heading["words"]))
            continue
        spots = () if _is_header(line) else _spots_in(line)
        if spots and len(spots) <= MAX_NUMBERS_IN_LINE:
            shape = " ".join(" # ".join([*(spot.before for spot in spots), ""]).lower().split())
            yield _Line(shape, spots, " ".join(words for _, words in headings), columns, in_brackets)
        elif (legend := _LEGEND.match(line)) is not None and is_telling(legend["name"]):
            in_brackets = legend["name"]
        elif names := _columns_in(line):
            columns = names
        elif (heading := _HEADING.fullmatch(line)) is not None:
            headings.append((indent, heading["words"]))


def _is_count(words: str) -> bool:
    return canonical(words.rstrip("0123456789").rstrip(" _-").lower()) in COUNTERS


def _columns_in(line: str) -> tuple[str, ...]:
    """Return the names that stand in a row, parted by commas, semicolons, tabs or bars; () for other text."""
    cells = _cells_between_bars(line) or tuple(_BETWEEN_CELLS.split(line.strip(" |")))
    return cells if len(cells) >= MIN_COLUMNS and all(map(_WORD_OF_NAME.search, cells)) else ()


def _cells_between_bars(line: str) -> tuple[str, ...]:
    cells = tuple(cell.strip() for cell in _BAR.split(line) if cell.strip())
    return cells if len(cells) >= MIN_COLUMNS else ()


def _is_header(line: str) -> bool:
    """Say whether a line between bars names its cells, though a name or two has a number."""
    numbered = [_NUMBER.search(cell) is not None for cell in _cells_between_bars(line)] if "|" in line else []
    return bool(numbered) and sum(numbered) < MAX_SHARE_OF_NUMBERS_IN_HEADER * len(numbered) and _columns_in(line) != ()


def _spots_in(line: str) -> tuple[_Spot, ...]:
    """Return the numbers of a line; digits glued to a word are part of it, but for a count that begins it: "u006"."""
    spots: list[_Spot] = []
    end = 0
    for found in _NUMBER.finditer(line):
        number, text, unit = parse_number(found[0]), found[0], ""
        is_glued = found.start() > 0 and (line[found.start() - 1].isalpha() or line[found.start() - 1] == "_")
        counts = (
            not spots and not line[: found.start()].strip()[MAX_LETTERS_OF_COUNT:] and line[found.end() :][:1] != ":"
        )
        if number is None or found.start() < end or (is_glued and "." not in text and not counts):
            continue
        words = line[end : found.start()]
        ends = _ENDS_NAME.match(line, found.end()) if text.isdecimal() else None
        if ends is not None and _is_in_name(words, is_sure=bool(spots) or ")" in ends[0]):
            continue
        if len(spots) == 1 and words.strip() in _RANGES and number.is_integer() and number > spots[0].number:
            spots[0], end = spots[0]._replace(number=number), found.end()  # "batches 31-60"
            continue
        start, end = end, found.end()
        if spots and (whole := _WHOLE.match(line, end)) and "." not in text and 0 < float(whole["whole"]) >= number:
            number, text, end = number / float(whole["whole"]), SHARE, whole.end()
        elif glued := _UNIT.match(line, end):
            unit, end = glued[0].strip(), glued.end()
        elif size := _SIZE.match(line, end):
            number, unit, end = number * GIB[size["unit"].lower()], "memory", size.end()
        elif text.endswith("%"):
            number /= 100
        behind = _NAME_BEHIND.match(line, end) if spots and _OPENS.search(words) else None
        spots.append(_Spot(line[start : found.start()], text, number, unit, behind["name"] if behind else ""))
        end = behind.end("name") if behind else end
    return tuple(spots)


def _is_in_name(words: str, *, is_sure: bool) -> bool:
    """Say whether words in front of a whole number can begin a name that it ends, and are none of a counter."""
    named = _WORD_OF_NAME.findall(words)
    return bool(named) and canonical(named[-1].lower()) not in COUNTERS and (is_sure or any(map(is_telling, named)))


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


def _with_sets(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines with a phase for headings of sets: below them stands what stands below that of an evaluation."""
    below: dict[str, set[str]] = {}
    for line in lines:
        below.setdefault(line.heading, set()).add(line.shape)
    evaluated = [shapes for heading, shapes in below.items() if _phase(heading) not in ("", "train")]
    if not evaluated or all(_phase(heading) != "train" for heading in below):
        return list(lines)
    measured = set.union(*evaluated)
    sets = {heading for heading, shapes in below.items() if heading and shapes <= measured}
    sets -= {heading for heading in sets if _phase(heading)}
    return [line._replace(heading=f"val {line.heading}") if line.heading in sets else line for line in lines]


def _ascends(spots: Sequence[_Spot]) -> bool:
    numbers = [spot.number for spot in spots]
    return numbers[-1] > numbers[0] and all(later >= earlier for earlier, later in pairwise(numbers))


_OF_CLOCKS = frozenset({"d", "h", "m", "s", "ms", "min", "sec"})


def _is_counter(spot: _Spot) -> bool:
    """Say whether a number that begins a line may count: nothing stands before it, or a mark, a letter, a counter."""
    words = [word for word in re.findall(r"[^\W\d]+", spot.before) if not _phase(word)]
    if any(word.lower() in LISTED for word in words):
        return False
    named = words and (
        canonical(words[-1].lower()) in COUNTERS or canonical(words[-1].lower().rstrip("es")) in COUNTERS
    )
    return (
        (len(words) <= 1 or bool(named))
        and spot.unit.lower() not in _OF_CLOCKS
        and not any(character in spot.text for character in ".%e")
        and not any(map(is_telling, words))
    )


@lru_cache(maxsize=4096)
def _phase(word: str) -> str:
    """Return the phase that a word stands for, "train", "val" or "test", as names are understood with it; else ""."""
    low = word.lower()
    known = phase_alone(low) or OWN_SETS.get(low, "")
    return known if known != "eval" else "test" if low in TESTS else "val"


def _unit_of(before: str) -> str:
    words = re.findall(r"[^\W\d]+", before.lower())
    return "epoch" if words and (words[0] in _EPOCHS or canonical(words[0]) == "epoch") else "step"


def _records(lines: Sequence[_Line], counting: dict[str, str]) -> Iterator[_Record]:
    """Yield what each step has: the numbers of its line and of those below it that do not count."""
    unit, step, values = next(iter(counting.values())), None, dict[str, float]()
    shared = _names_of_several_shapes(lines)
    for line in lines:
        spots, columns = line.spots, _columns_of(line)
        if line.shape in counting:
            if step is not None and spots[0].number != step:
                yield unit, step, values
                values = {}
            step, spots, columns = spots[0].number, spots[1:], columns[1:]
        if step is not None:
            row = {
                _whole_name("", name, 0, spot.text): spot.number
                for name, spot in zip(columns, spots, strict=False)
                if name
            }
            named = row if columns else _named(line.heading, spots, line.in_brackets)
            if not columns and line.shape not in counting:
                named = _in_set(line, named, shared)
            values |= {
                f"{NUMBERED}1" if name == _BARE and line.shape not in counting else name: number
                for name, number in named.items()
            }
    if step is not None and values:
        yield unit, step, values


def _names_of_several_shapes(lines: Sequence[_Line]) -> frozenset[str]:
    """Return the names that lines of several shapes have: sets that measure the same."""
    by_shape = {line.shape: line for line in lines}
    names = Counter(name for line in by_shape.values() for name in {_label(spot.before)[1] for spot in line.spots})
    return frozenset(name for name, count in names.items() if name and count > 1)


def _in_set(line: _Line, named: dict[str, float], shared: frozenset[str]) -> dict[str, float]:
    """Return the numbers of a line; what several lines call alike is of the set that the first name begins with.

    So "check bce 0.6, auc 0.7" is apart from "march bce 0.7, auc 0.6".
    """
    first = next((label for spot in line.spots if (label := _label(spot.before)[1])), "")
    lead = first.rpartition(" ")[0]
    if not lead or line.heading or role_of(lead) is not None:
        return named
    of_set = " ".join(_phase(word) or word for word in lead.lower().split())
    return {f"{of_set} {name}" if name in shared else name: number for name, number in named.items()}


def _columns_of(line: _Line) -> tuple[str, ...]:
    """Return the name above each number of a row of cells; () where numbers have words of their own.

    Further numbers of a cell are numbered, and the whole behind an "of" has no name.
    """
    if not line.columns or any(
        word not in _JOINS for spot in line.spots for word in _WORD_OF_NAME.findall(spot.before)
    ):
        return ()
    if len(line.columns) == len(line.spots):
        return line.columns
    starts = -1 if line.spots[0].before.lstrip().startswith("|") else 0
    cells = list(accumulate((len(_BAR.findall(spot.before)) for spot in line.spots), initial=starts))[1:]
    if cells[-1] != len(line.columns) - 1:
        return ()
    counts = Counter(cells[place] for place, spot in enumerate(line.spots) if spot.before.strip() not in _JOINS)
    names, numbers = [], Counter[int]()
    for cell, spot in zip(cells, line.spots, strict=True):
        is_whole = spot.before.strip() in _JOINS
        numbers[cell] += not is_whole
        numbered = f"{line.columns[cell]} {numbers[cell]}" if counts[cell] > 1 else line.columns[cell]
        names.append("" if is_whole else numbered)
    return tuple(names)


def _spots_by_name(spots: Sequence[_Spot], in_brackets: str) -> dict[str, list[_Spot]]:
    """Return the numbers of a line by the words that name them; "" for those without.

    One that has no words of its own is the next one of the name before.
    """
    found: dict[str, list[_Spot]] = {}
    group = label = last = ""
    in_brackets_of_several = Counter(_label(spot.before)[1] for spot in spots if "(" in spot.before)
    for spot in spots:
        new_group, new_label = _label(spot.before)
        if listed := _OPENS_LIST.search(spot.before):
            group, new_label = "", listed["name"]
        elif in_brackets and not new_label and spot.before.strip() == "[":
            new_label = in_brackets
        group = new_group or (group if not _ENDS_GROUP.search(spot.before) else "")
        if name := _name_behind(spot, new_label):
            found.setdefault(name, []).append(spot)
            continue
        if new_label and last and "(" in spot.before and in_brackets_of_several[new_label] > 1:
            found.setdefault(f"{last} {new_label}", []).append(spot)  # "ann 0.9 (gap 2.0)  bob 0.8 (gap 1.8)"
            continue
        statistic = "std" if _SPREAD.search(spot.before) else _statistic_of(last, new_label, spot.before)
        label = "" if spot.before.strip() == "]" or _ENDS_UNIT.fullmatch(spot.before) else label
        label = f"{statistic} {last}" if statistic and last else f"{group} {new_label}".strip() if new_label else label
        last = last if statistic and last else label
        in_seconds = spot._replace(number=spot.number * SECONDS.get(spot.unit.lower(), 1.0))
        found.setdefault(_with_unit(label, spot.unit), []).append(in_seconds)
    return found


def _statistic_of(last: str, label: str, before: str) -> str:
    """Return the statistic of the name before that a label is, "mean"; "" for a measure of its own.

    In "best 9.1  mean 7.3" and in "tax 0.5  sum 3.2" both stand for themselves, in brackets for the name before.
    """
    statistic = STATISTICS.get(label.lower(), "")
    stands_alone = last.lower() in STATISTICS or statistic in _MEASURES_TOO
    return "" if stands_alone and not _OPENS.search(before.removesuffix(label)) else statistic


def _name_behind(spot: _Spot, label: str) -> str:
    """Return the name that stands behind a number: in brackets, or glued to it; so is an "of" before a whole."""
    is_name = bool(spot.unit) and ("/" in spot.unit or is_telling(spot.unit) or is_loss(spot.unit))
    return spot.behind or (spot.unit if is_name else label if label in _JOINS else "")


def _with_unit(label: str, unit: str) -> str:
    """Return a name with the unit that its number has: times are in seconds, as in known forms."""
    if label and unit == "memory" and label.rsplit(maxsplit=1)[-1] not in ("mem", "memory", "rss"):
        return f"{label} memory"
    return f"{label}_s" if label and unit.lower() in SECONDS else "s" if unit.lower() in SECONDS else label


def _named(heading: str, spots: Sequence[_Spot], in_brackets: str) -> dict[str, float]:
    """Return the numbers of a line by name; several of one name are numbered."""
    found = _spots_by_name(spots, in_brackets)
    values: dict[str, float] = {}
    unnamed = found.pop("", []) if not heading else []
    has_loss = any(map(is_loss, found))
    for name, those in found.items():
        if name.rpartition(" ")[2].lower() in _OF_SENTENCES and len(those) < MIN_LISTED:
            continue
        for place, spot in enumerate(those):
            is_score = has_loss and not heading and _phase(name) in ("val", "test") and not spot.text.endswith("%")
            whole = name.lower() if is_score else _whole_name(heading, name, place, spot.text)
            if place == 0 and len(those) >= MIN_LISTED and not whole.endswith(" loss"):
                whole = f"{whole} 1"
            is_guessed = whole == "val loss" and len(those) == 1 and not is_loss(name)
            values.setdefault("val" if is_guessed else whole, spot.number)
    is_alone = len(unnamed) == 1 and "." in unnamed[0].text and not any(map(is_loss, values))
    for place, spot in enumerate(unnamed, start=1):
        values[_BARE if is_alone else f"{NUMBERED}{place}"] = spot.number
    return values


@lru_cache(maxsize=4096)
def _label(before: str) -> tuple[str, str]:
    """Return the group that begins in front of a number, and the words that name it: the last of their part."""
    own = "" if _ENDS_UNIT.fullmatch(before) else before
    text = _MEASURED_IN.sub(_of_phase, own.rstrip(" \t:="))
    text = _REMARK.sub("", text).strip(" \t:=([{<~>")
    part = [text for text in _END_OF_PART.split(text) if _WORD_OF_NAME.search(text)]
    grouped = _GROUP.fullmatch(part[-1].strip()) if part else None
    words = _WORD_OF_NAME.findall(grouped["label"] if grouped else part[-1] if part else "")
    group = _WORD_OF_NAME.findall(grouped["group"]) if grouped else []
    return " ".join(group[-MAX_WORDS_OF_NAME:]), " ".join(words[-MAX_WORDS_OF_NAME:])


def _of_phase(measured: re.Match[str]) -> str:
    """Return the phase that stands behind a measure in brackets and the measure, without what else stands there."""
    phase = next(filter(_phase, re.split(r"\W+", measured["words"])), "")
    return f"{phase} {measured['name']}" if phase else measured[0]


def _whole_name(heading: str, label: str, place: int, text: str) -> str:
    """Return the name of a number; a phase alone is its loss, and the share behind it its accuracy."""
    words = f"{heading} {label}".split()
    phase = next(filter(_phase, words), "")
    measured = " ".join(word for word in words if word is not phase)
    known = _phase(phase)
    if phase and not (measured and (role_of(measured) is not None or is_telling(measured))):
        is_share = text.endswith("%") or (place > 0 and text.startswith(("0.", "1.0")))
        is_loss_of_phase = place == 0 and len(measured.split()) <= MAX_WORDS_OF_SET
        measured += " accuracy" if is_share else " loss" if is_loss_of_phase else f" {NUMBERED}{place + 1}"
    elif place:
        measured += f" {place + 1}"
    return f"{known} {measured.strip()}".strip()


def _counts_by_name(lines: Sequence[_Line], counting: dict[str, str]) -> bool:
    """Say whether the count has the name of a step or an epoch, in its line or at the head of its column."""
    counts = [line for line in lines if line.shape in counting]
    heads = {line.columns[0] for line in counts if line.columns} | {
        re.split(r"\W", line.spots[0].before.strip(" :=[(#"))[-1] for line in counts
    }
    return any(canonical(head.lower()) in COUNTERS or head.lower() in _EPOCHS for head in heads if head)


def _tells(name: str) -> bool:
    """Say whether a name is one that only training or evaluation has."""
    return canonical(name) not in COUNTERS and (
        is_telling(name) or is_loss(name) or name.partition(" ")[0] in ("train", "val", "test")
    )
