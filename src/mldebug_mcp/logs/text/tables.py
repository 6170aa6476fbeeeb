"""Records that are drawn over several lines.

They are tables with a line of names (fastai, the Trainer in notebooks, Ultralytics); boxes of `| name | value |` rows
(Stable-Baselines, Spinning Up, rsl_rl); what detectron2 prints to be copied; and blocks that a heading names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean
from mldebug_mcp.logs.json_yaml import RESULT_HEADING, printed_records
from mldebug_mcp.logs.line_prefixes import ROW_MARK, names_evaluation, without_prefix
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    canonical,
    counts_rows,
    factor_in,
    is_known,
    is_phase_alone,
    is_telling,
    may_hold_names,
)
from mldebug_mcp.logs.numbers import NUMBER, parse_number, parse_with_unit
from mldebug_mcp.logs.text.pairs import evaluation_name

# Tables in text: a line of names and lines of values under it (fastai, the Trainer in notebooks, Ultralytics).

_GAP = regex(r"\s*[\t|]\s*|\s{2,}")
_BAR = regex(r"(?<=[\s|])\|{1,2}g(?:rad)?\|{1,2}(?=[\s|])|\|", re.IGNORECASE)
"""The bar between two cells; those of a norm, `|g|`, are none."""
_CELL = regex(r"\S+(?: \S+)*")
_CELL_WORD = regex(r"\S+")
_OF_TOTAL = regex(r"(\d+)/(?P<total>\d+)")
_OF_PHASE = regex(r"(?P<phase>[A-Za-z]{2,10})[ :=]\s?(?P<value>\S+)")
"""A cell that names the phase of its row: mlx-lm's "val 3.947", under the name of the training loss."""
# Markdown: "**0.93**", and a mark behind the best value ("0.93 ← best").
_MARKED = regex(r"[*_`~]*([^*_`~\s]+)[*_`~]*(?:\s+(?:[^\x00-\x7f].*|[v^]))?")
_NOT_LOGGED = frozenset({"no log", "", "-", "--", "n/a"})
"""Cells of a row that has no value there; the first is the Trainer's."""
_AND_MORE = frozenset({"etc", "etc.", "..."})
"""Names of a last column that stands for several without names, in a table of numbers of fixed width (ElegantRL)."""
_FUSED = regex(r"(?<=e[-+]\d\d)(?=-\d)")
"""Where two of its numbers touch: "1.60e+03-1147.49"."""
_TOUCHING = regex(r"(?<=\.\d{6})(?=-?\d{1,3}\.\d{6}|(?:\d\d|\d:\d\d):\d\d\s{0,80}$)")
"""Where a number or the time of an epoch touches the number before it, in fastai's tables: "0.95000000:12"."""
MAX_SHIFT_OF_CELL = 2
"""Characters that a cell may be away from the beginning of its column's name, or from its end."""
MAX_COLUMN_NAME = 80
"""Characters of a column's name: those of reward functions are long."""
MAX_LINES_BETWEEN_ROWS = 100
"""Lines of other things that may stand between the rows of a table."""
MAX_COLUMNS = 500
"""Columns of a table; a line with more is not a header."""
MIN_NAMES_IN_TWO_LINES = 3
"""Columns of a table whose names stand in two lines."""
_COLUMN_NAME = regex(r"[A-Za-z]\S*(?: \S+)*")
_NAMES_NOTHING = regex(r"[\d:=|,;]")
"""What stands in no line of such names."""
_IN_BRACKETS = regex(r"\([^()]{1,20}\)")
"""The unit of a column, such as "(hh:mm:ss)"."""
_DRAWN = frozenset("-=+| :_\t")
"""Characters of a rule."""
_DRAWN_SIDES = str.maketrans("│┃║", "|||")
"""Sides of cells as rich and others draw them."""
_NORMS_IN_NAMES = regex(r"(?:(?:[^\s|]|\|{1,2}[^\s|]{1,20}\|{1,2})++(?: (?! )|\s{2,20}|\t|$))++")
"""Columns parted by blanks, with bars only around what they take the norm of: "i   |g|opt   |w|   lr"."""
_HOLDS_NUMBER = regex(r"(?<![\w@.-])(?!(?<=[(\[])1e-?\d+[)\]])[-+]?(?:\d|(?:nan|inf)\b)", re.IGNORECASE)
_FASTAI = regex(r"\s*\[\d+(?:, (?:[-\d.e]+|nan|inf|None)){1,20}, '\d+(?::\d\d)+'\]\s*", needs="[")
_ULTRALYTICS_ROW = regex(r"\s*(?:(?P<all>all)|\d+/\d+)\s")
_ULTRALYTICS = regex(r"\s*(?:Epoch\s+(?:GPU_mem|gpu_mem)|Class\s+Images)\s")


_OF_YOLOV5 = {"GIoU": "box_loss", "box": "box_loss", "obj": "obj_loss", "cls": "cls_loss", "total": "loss"}
"""What YOLOv5 calls the losses in its table, before version 7."""
_RESULTS = regex(r"\s*\d+/\d+\s+[\d.]+G(?:\s+\S+){13}\s*")
_RESULTS_NAMES = (
    "Epoch", "gpu_mem", "box", "obj", "cls", "total", "labels", "img_size", "eval_precision", "eval_recall",
    "eval_map50", "eval_map50-95", "eval_box_loss", "eval_obj_loss", "eval_cls_loss",
)  # fmt: skip
"""results.txt of YOLOv7 and of YOLOv5 up to version 4 has no header."""
_NAMES_OF_SETS = frozenset({"combined", "set", "split", "phase", "dataset", "data"})
"""Names of a column of sets; another one is of the output that the table is of."""
_COUNTERS_OF_TABLES = frozenset({"epoch", "batch", "iter", "step"})
_COUNTS = frozenset({"Images", "Instances", "Labels", "Targets"})


Layout = tuple[tuple[str, ...], tuple[int, ...], bool, bool, bool]
"""The names of a table, where they begin, and how its cells are separated."""


_SEVERAL_NAMES = regex(r"[A-Za-z#][\w./@#-]{0,79}(?: [A-Za-z#][\w./@#-]{0,79}){1,60}")
"""Names with single blanks between them: the first row parts them."""


class Table:
    """The table that is open. `take` a line; the answer is its record, empty for the header, None outside the table."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._spaced = False
        self._and_more = False
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._header = ""
        self._bars = 0
        self._above = ""
        self._commas = False
        self._since = 0
        self._of_ultralytics: dict[str, list[str]] = {}
        self.guessed = ""

    @property
    def open(self) -> bool:
        """Whether rows may follow."""
        return bool(self._names)

    @property
    def tells(self) -> bool:
        """Whether one of its columns is one that only training or evaluation prints: then its rows are records."""
        return any(map(is_telling, self._names)) or _measures_phases(self._names) > 0

    @property
    def expects_row(self) -> bool:
        """Whether nothing else stands between the names or the row above and the next line."""
        return self.open and not self._since

    @property
    def layout(self) -> Layout:
        """What its rows are read by."""
        return (tuple(self._names), tuple(self._starts), self._spaced, self._commas, self._and_more)

    def is_in_order(self, line: str) -> bool:
        """Say whether the cells of a row are identified by their order, not by how far from the left they stand."""
        cells = self._cells(line.translate(_DRAWN_SIDES))
        return (
            not self._and_more
            and not self._is_indexed(cells)
            and not self._are_split_by(line.split(), cells)
            and (not self._starts or len(cells) >= len(self._names))
        )

    def row_of_set(self, line: str) -> str:
        """Return a row that begins with its set (Ludwig) as a line of text, "train: loss: 0.5"; "" for other rows."""
        cells = self._cells(line.translate(_DRAWN_SIDES)) if self.open and self.tells else []
        if not cells or len(cells) != len(self._names) or not is_phase_alone(cells[0]) or is_telling(self._names[0]):
            return ""
        of = "" if self._names[0].lower() in _NAMES_OF_SETS else f"{self._names[0]}_"
        values = zip(self._names[1:], cells[1:], strict=True)
        phase = "val" if cells[0].lower() == "vali" else cells[0]
        return f"{phase}: " + ", ".join(f"{of}{name}: {cell}" for name, cell in values if _cell(cell) is not None)

    def take(self, line: str) -> dict[str, float] | None:
        """Take a line if it is the header or a row of a table."""
        line = line.translate(_DRAWN_SIDES)
        if not self._names and _FASTAI.fullmatch(line):
            self._names = _fastai_names(len(self._cells(line)))
            self.guessed = "fastai prints them (guessed): epoch, train_loss, valid_loss, metrics"
        if not self._names and _RESULTS.fullmatch(line):
            self._begin(_RESULTS_NAMES, spaced=True)
            self.guessed = (
                "YOLOv7 writes them (guessed): epoch, memory, losses, labels, size, P, R, mAP, losses of validation"
            )
        if self._names:
            row = self._row(line)
            if row is not None and (not self._since or self._is_whole(line)):
                self._since = 0
                return row
            if not _is_rule(line) and not is_rule(line):
                self._since += 1
        above, self._above = self._above, line
        if self._open(line, above) or self._open_two(above, line):
            return {}
        if self._since > MAX_LINES_BETWEEN_ROWS:
            self._names = []
        return self._out_of_turn(line)

    def _open(self, line: str, above: str) -> bool:
        spaced = _ULTRALYTICS.match(line) is not None
        # Asked first: most lines of text are no headings.
        if (not spaced and (":" in line or "=" in line)) or _HOLDS_NUMBER.search(line):
            return False
        if not spaced and not may_hold_names(line):
            return False
        names = _split(line, spaced=spaced)
        commas = "," in line and all(name.endswith(",") for name in names[:-1])
        names = [name.strip() for name in line.split(",")] if commas else names
        long = (name for name in names if len(name) > MAX_COLUMN_NAME)
        if not 2 <= len(names) <= MAX_COLUMNS or not all(_SEVERAL_NAMES.fullmatch(name) for name in long):
            return False
        names = [*_counters_apart(names[0]), *names[1:]]
        names = [name.strip(" ↓↑*`") for name in names]
        known = sum(map(_names_column, names)) + _heads_glued(names) + _measures_phases(names)
        if not spaced and known < 2:
            return False
        names = [re.sub(r"^Box\(P$", "precision", name).strip(":") for name in names]
        names = [name if name.count("(") == name.count(")") else name.strip("():") for name in names]
        if {"training loss", "validation loss"} <= {name.lower() for name in names}:
            names = [_of_evaluation(name) for name in names]
        placed = list(_CELL.finditer(line))
        aligned = len(placed) == len(names) and "\t" not in line
        if aligned and ("|" not in line or [cell[0] for cell in placed] == names):
            names = _with_first_words(above, names, placed)
        else:
            placed = []
        self._begin(names, spaced=spaced, commas=commas, line=line, placed=placed)
        return True

    def _open_two(self, above: str, line: str) -> bool:
        """Open a table whose names stand in two lines, as Vowpal Wabbit and MATLAB print them."""
        if _is_rule(line):
            return False
        if above.count("|") == line.count("|") > MIN_NAMES_IN_TWO_LINES:
            return self._open_cells_in_two(above, line)
        if not may_hold_names(line) or above == line or any(map(_NAMES_NOTHING.search, (above, line))):
            return False
        upper, lower = list(_CELL_WORD.finditer(above)), list(_CELL_WORD.finditer(line))
        if not MIN_NAMES_IN_TWO_LINES <= len(upper) == len(lower) <= MAX_COLUMNS:
            return False
        pairs = list(zip(upper, lower, strict=True))
        names = [f"{match[0]} {other[0]}" for match, other in pairs]
        below = all(match.start() == other.start() or match.end() == other.end() for match, other in pairs)
        are_names = all(parse_number(match[0]) is None for match in (*upper, *lower))
        if not (below and are_names and any(map(is_telling, names))):
            return False
        self._begin(names, spaced=True)
        return True

    def _open_cells_in_two(self, above: str, line: str) -> bool:
        """Open a table whose names stand in cells of two lines: "Mini-batch" above "Loss"."""
        upper, lower = (_IN_BRACKETS.sub("", text).strip().strip("|").split("|") for text in (above, line))
        if len(upper) != len(lower):
            return False
        names = [" ".join(f"{first} {second}".split()) for first, second in zip(upper, lower, strict=True)]
        names = [name.removeprefix("Mini-batch ") for name in names]  # MATLAB's means of training
        if any(map(_NAMES_NOTHING.search, names)) or not all(names) or not any(map(is_telling, names)):
            return False
        self._begin(names)
        return True

    def _part_names(self, row: str) -> None:
        """Part names that touch, as they fill their columns or go beyond, by the widths of the first row's columns."""
        words = list(_CELL_WORD.finditer(row))
        are_cells = all(
            _cell(word[0]) is not None or word[0].lower() in _NOT_LOGGED or ":" in word[0] for word in words
        )
        if not words or not are_cells:
            return
        ends = [word.end() for word in words]
        widths = [end - start for start, end in pairwise([0, *ends])]
        starts = sorted(word.start() for word in (*words, *_TOUCHING.finditer(row)))
        at_left = ends[0] <= self._starts[0] or starts[0] == self._starts[0]
        names = _names_by_start(self._header, starts) if at_left else _names_by_width(self._header, widths)
        if not names and _SEVERAL_NAMES.fullmatch(self._header.strip()) and len(words) == len(self._header.split()):
            names, at_left = self._header.split(), False
        if len(names) > len(self._names):
            self._names, self._ends = names, ends
            self._starts = starts if at_left else [end - 1 for end in ends]
        self._header = ""

    def _begin(
        self,
        names: Sequence[str],
        *,
        spaced: bool = False,
        commas: bool = False,
        line: str = "",
        placed: Sequence[re.Match[str]] = (),
    ) -> None:
        """Open a table of these names; below names that are `placed` in their line, cells are found by their places."""
        self._spaced, self._commas, self._since, self._bars = spaced, commas, 0, line.count("|")
        self._starts, self._ends = [name.start() for name in placed], [name.end() for name in placed]
        self._header = line if placed else ""
        self._and_more = names[-1].lower() in _AND_MORE
        self._names = list(names[:-1] if self._and_more else names)
        if spaced:
            self._names = [_OF_YOLOV5.get(name, name) for name in names]
            self._of_ultralytics[names[0]] = self._names

    def _out_of_turn(self, line: str) -> dict[str, float] | None:
        """Read a row of one of Ultralytics' two tables below the header of the other, as buffering mixes them."""
        row = _ULTRALYTICS_ROW.match(line)
        names = self._of_ultralytics.get("Class" if row and row["all"] else "Epoch") if row else None
        if names is None:
            return None
        self._names, self._spaced = names, True
        return self._row(line)

    def _is_whole(self, line: str) -> bool:
        """Say whether a line below others that are no rows is a row: a number in each of its cells that has any."""
        cells = self._placed(line)
        cells = cells[1:] if self._is_indexed(cells) else cells
        return len(cells) == len(self._names) and all(
            _cell(cell) is not None or cell.lower() in _NOT_LOGGED for cell in cells
        )

    def _cells(self, line: str) -> list[str]:
        if self._bars and line.count("|") == self._bars:  # cells at its end may be empty
            parted = [cell.strip() for cell in line.split("|")]
            cells = parted[1:-1] if self._bars > len(self._names) else parted
            if len(cells) == len(self._names):
                return cells
        return [cell.strip() for cell in line.split(",")] if self._commas else _split(line, spaced=self._spaced)

    def _is_indexed(self, cells: Sequence[str]) -> bool:
        """Say whether the number of a row stands before it, under no name, as pandas prints it."""
        return bool(self._starts) and self._starts[0] > 0 and len(cells) == len(self._names) + 1 and cells[0].isdigit()

    def _placed(self, line: str) -> list[str]:
        """Return the cells of a row, an empty one where a column has no value."""
        cells = _FUSED.sub(" ", line).replace("|", " ").split() if self._and_more else self._cells(line)
        words = line.split()  # one blank may stand between numbers that are as wide as their columns
        if not self._starts or (len(cells) >= len(self._names) and not self._are_split_by(words, cells)):
            return cells
        if len(words) == len(self._names) or self._is_indexed(words):
            return words
        return _cells_by_end(self._ends, line) or _cells_by_start(self._starts, line)

    def _are_split_by(self, words: Sequence[str], cells: Sequence[str]) -> bool:
        """Say whether a row with its number before it is one of numbers by its words, where its cells hold several."""
        are_cells = all(_cell(word) is not None or word.lower() in _NOT_LOGGED for word in words)
        return len(words) > len(cells) and self._is_indexed(words) and are_cells

    def _row_of_evaluation(self, line: str) -> dict[str, float]:
        """Return a row with a cell that marks evaluation, up to that cell; empty if none does."""
        cells = _with_phases(self._cells(line))[: len(self._names)]
        at = next((at for at, cell in enumerate(cells) if at and _evaluated(cell) is not None), None)
        if at is None:
            return {}
        before = zip(self._names, cells[:at], strict=False)
        values = {name: number for name, cell in before if (number := _value(name, cell)) is not None}
        number = _evaluated(cells[at])
        return values if number is None else {**values, evaluation_name(self._names[at]): number}

    def _row(self, line: str) -> dict[str, float] | None:
        if self._header:
            self._part_names(line)
        line = _TOUCHING.sub("  ", line)
        if of_evaluation := self._row_of_evaluation(line):
            return of_evaluation
        cells = self._placed(line)
        cells = cells[1:] if self._is_indexed(cells) else cells
        surplus = len(cells) - len(self._names)
        if len(cells) < len(self._names) or (surplus > 0 and not (self._spaced or self._and_more)):
            return None
        values = {name: _value(name, cell) for name, cell in zip(self._names, cells, strict=False)}
        numbers = {name: value for name, value in values.items() if value is not None}
        if surplus == 1 and cells[-1] == "h" and self._names[0] == "average loss":  # Vowpal Wabbit, on held-out rows
            losses = {evaluation_name(name): numbers.pop(name) for name in self._names[:2] if name in numbers}
            numbers = {**losses, **numbers}
        if self._names[0] == "Class":
            if _OF_TOTAL.fullmatch(cells[0]):  # an epoch
                return None
            if cells[0] != "all":
                return {} if len(numbers) * 2 >= len(values) else None
            return {f"eval_{name}": value for name, value in numbers.items() if name not in _COUNTS}
        filled = sum(cell.lower() not in _NOT_LOGGED for cell in cells[: len(values)])
        values_of_names = (self._names[0], cells[0]) == ("Name", "Value")  # DI-engine
        first = cells[0].lower() in _NOT_LOGGED or _cell(cells[0]) is not None or values_of_names
        return numbers if numbers and len(numbers) * 2 >= filled and first else None


def _counters_apart(name: str) -> list[str]:
    """Return the names in a first cell of counters alone, which one blank parts: "# Epoch batch" (NequIP)."""
    words = name.strip("# ").split()
    return words if len(words) > 1 and all(word.lower() in _COUNTERS_OF_TABLES for word in words) else [name]


def _with_first_words(above: str, names: list[str], placed: Sequence[re.Match[str]]) -> list[str]:
    """Return names with the words that stand right above them: "train" above "loss"; as they are below another text."""
    upper = list(_CELL.finditer(above))
    if not 2 <= len(upper) <= len(names) or _NAMES_NOTHING.search(above):
        return names
    joined = list(names)
    for cell in upper:
        at = [at for at, name in enumerate(placed) if cell.start() == name.start() or cell.end() == name.end()]
        if len(at) != 1:
            return names
        if cell[0] == names[at[0]]:
            return names  # the same header again
        joined[at[0]] = f"{cell[0]} {names[at[0]]}"
    return joined if sum(map(_names_column, joined)) >= sum(map(_names_column, names)) else names


def _cells_by_end(ends: Sequence[int], line: str) -> list[str]:
    """Return the cells of a row that end below the names, as skorch leaves out some values.

    Two numbers touch where the second fills its column, and are parted there. Empty, if a cell ends elsewhere.
    """
    cells, before = dict.fromkeys(ends, ""), dict(zip(ends, [0, *ends], strict=False))
    for match in _CELL_WORD.finditer(line):
        end = min(cells, key=lambda name: abs(name - match.end()))
        cut = before[end] - match.start()
        left, right = (match[0][:cut], match[0][cut:]) if cut > 0 else ("", match[0])
        if left:
            touches = match.end() == end and not cells[before[end]] and match.start() >= before[before[end]]
            if not touches or _cell(left) is None or _cell(right) is None:
                return []
            cells[before[end]] = left
        if abs(end - match.end()) > MAX_SHIFT_OF_CELL or cells[end]:
            return []
        cells[end] = right
    return list(cells.values())


def _cells_by_start(starts: Sequence[int], line: str) -> list[str]:
    """Return the cells of a row that begin below the names, as Chainer leaves out what it did not log.

    Empty, if one of them begins elsewhere.
    """
    cells = dict.fromkeys(starts, "")
    for match in _CELL.finditer(line):
        start = min(cells, key=lambda name: abs(name - match.start()))
        if abs(start - match.start()) > MAX_SHIFT_OF_CELL or cells[start]:
            return []
        cells[start] = match[0]
    return list(cells.values())


def _is_rule(line: str) -> bool:
    """Say whether a line is empty or only drawn: the rule under the names of a table, "-- | --" in Markdown."""
    return set(line) <= _DRAWN


def _with_phases(cells: list[str]) -> list[str]:
    """Return the cells of a row, one that is but the name of an evaluation joined with the number behind it."""
    joined: list[str] = []
    for cell in cells:
        if joined and names_evaluation(joined[-1]) and parse_number(cell) is not None:
            joined[-1] = f"{joined[-1]} {cell}"
        else:
            joined.append(cell)
    return joined


def _evaluated(cell: str) -> float | None:
    """Return the number of a cell that says it is of evaluation, None if it is another."""
    found = _OF_PHASE.fullmatch(cell)
    return parse_number(found["value"]) if found is not None and names_evaluation(found["phase"]) else None


def may_be_row(line: str) -> bool:
    """Say whether a line may be a row of a table whose header stands anywhere above it."""
    return _ULTRALYTICS_ROW.match(line) is not None


def _value(name: str, cell: str) -> float | None:
    """Return the number of a cell, in the unit that its metric is read in: "37.1%" of an accuracy is 0.371."""
    measured = _measured(cell)
    if measured is None:
        return None
    number, unit = measured
    of_total = _OF_TOTAL.fullmatch(cell)
    if of_total and canonical(name) not in COUNTERS and float(of_total["total"]):
        number /= float(of_total["total"])
    return number * (factor_in(name, unit) if unit else 1.0)


def _cell(text: str) -> float | None:
    measured = _measured(text)
    return None if measured is None else measured[0]


def _measured(text: str) -> tuple[float, str] | None:
    """Return the number of a cell and its unit, "" where it has none; None for words."""
    marked = _MARKED.fullmatch(text)
    text = marked[1] if marked else text
    if text[:1] == "[" and text[-1:] == "]":  # DeepXDE: the parts of a loss, which is their sum
        parts = [parse_number(part) for part in text[1:-1].split(",")]
        return None if None in parts else (sum(part for part in parts if part is not None), "")
    fraction = _OF_TOTAL.fullmatch(text)
    return parse_with_unit(fraction[1] if fraction else text.rstrip(":"))


def _split(line: str, *, spaced: bool) -> list[str]:
    listed = line.strip()
    if listed[:1] == "[" and listed[-1:] == "]":  # fastai without bars prints Python lists
        return [cell.strip(" '\"") for cell in listed[1:-1].split(",")]
    if len(listed) > 1 and listed[0] == listed[-1] == "|":  # Markdown: cells may be empty, and a name be `|g|`
        ends = [0, *(bar.end() for bar in _BAR.finditer(listed) if bar[0] == "|"), len(listed)]
        return [listed[start : end - 1].strip() for start, end in pairwise(ends[1:-1])]
    if "|" in listed and _NORMS_IN_NAMES.fullmatch(listed):
        return re.split(r"\s{2,}|\t", listed)
    cells = line.split() if spaced else _GAP.split(line.strip(" |\t\r\n"))
    return _single_spaced(cells[0]) if len(cells) == 1 else cells


def _names_by_width(header: str, widths: Sequence[int]) -> list[str]:
    """Return the names of columns that are so wide and aligned at the right; none if the header is written otherwise.

    A name that is wider than its column moves what follows.
    """
    names: list[str] = []
    at = 0
    for number, width in enumerate(widths):
        name = header[at : at + width]
        touching = _CELL_WORD.match(header, at)
        if touching and len(widths) - number == len(header[at:].split()):
            name = touching[0]
        if not name.strip() or name[-1].isspace():
            return []
        names.append(name.strip())
        at += len(name)
    return [] if header[at:].strip() else names


def _names_by_start(header: str, starts: Sequence[int]) -> list[str]:
    """Return the names of columns that begin there and may touch; none if the header is written otherwise.

    One name may be wider than its column, and moves what follows: the next name ends where its column does.
    """
    words = list(_CELL_WORD.finditer(header))
    edges = [*starts, len(header)]
    names = [header[start:end].strip() for start, end in pairwise(edges)]
    if all(_COLUMN_NAME.fullmatch(name) for name in names) and not header[: starts[0]].strip():
        return names
    for at, (word, after) in enumerate(pairwise(words)):
        if len(words) == len(starts) - 1 and len(word[0]) > edges[at + 1] - edges[at]:
            cut = after.start() - (edges[at + 2] - edges[at + 1]) - word.start()
            parts = (word[0][:cut], word[0][cut:]) if 0 < cut < len(word[0]) else ()
            return [*(other[0] for other in words[:at]), *parts, *(other[0] for other in words[at + 1 :])]
    return []


def _heads_glued(names: Sequence[str]) -> bool:
    """Say whether names behind that of a counter touch, as fastai writes them: "epoch   train_lossvalid_losstime"."""
    return canonical(names[0]) in COUNTERS and any(name.lower().count("loss") > 1 for name in names)


def _measures_phases(names: Sequence[str]) -> int:
    """Return how many columns behind that of a counter are called by their phase alone: "step  train  dev"."""
    return sum(map(is_phase_alone, names)) if canonical(names[0]) in COUNTERS else 0


def _single_spaced(line: str) -> list[str]:
    """Return the words of a line as cells, where those that name one metric together are one cell."""
    cells: list[str] = []
    for word in line.split():
        if cells and is_known(f"{cells[-1]} {word}") and not (is_known(cells[-1]) and is_known(word)):
            cells[-1] = f"{cells[-1]} {word}"
        else:
            cells.append(word)
    return cells


def _of_evaluation(name: str) -> str:
    """Return what the Trainer's table in a notebook or a model card means: scores that name no phase are of evaluation.

    So are names that nobody knows; a learning rate, a norm and a time are not.
    """
    role = role_of(name)
    is_score = role is None or (role.quantity.is_result and not role.phase)
    return f"eval_{name}" if is_score and canonical(name) not in COUNTERS else name


def _fastai_names(count: int) -> list[str]:
    """Return what fastai prints in the lists of a fit without progress bars, which have no header."""
    losses = ["epoch", "train_loss", "valid_loss"][: count - 1]
    return [*losses, *(f"metric_{number}" for number in range(1, count - len(losses))), "time"]


# Boxes of `| name | value |` rows, one box per record: Stable-Baselines, OpenAI baselines, Spinning Up, rsl_rl.
#
# The rows of a box are written in one line before any line is read, so that it is read as a printed dict is.

_SIDES = "|│┃║"
_ROW = regex(
    rf"\s*+[{_SIDES}]\s*+(?P<name>[^{_SIDES}\s][^{_SIDES}]{{0,79}}?)\s*[{_SIDES}]\s*+(?P<value>[^{_SIDES}]{{0,40}}?)\s*"
    rf"[{_SIDES}]\s*$"
)
_RULE = regex(rf"\s*[-=+{_SIDES}─━═┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋┡┩╇╭╮╰╯╔╗╚╝╠╣╦╩╬╒╤╕╞╪╡╘╧╛]{{6,}}\s*$")
SIDES_OF_ROW = 3
_MAY_END_ROW = regex(rb"\|[ \t]*+[\n\x1b^#]")
"""The side at the end of a line; colours may follow, or a carriage return as `cat -v` and collectors show it."""
_MAY_BEGIN_ROW = regex(rb"(?:[ \t]|\x1b\[[\d;]*m)*+[|\xe2]|[^|]*[:\])>]")
"""What stands before the first side: nothing, or the end of what a logger puts there."""
_PLAIN_ROW = regex(
    rb"^[ \t]*+\|[ \t]*+([A-Za-z][^\n|\x1b\xe2]{0,78})"
    rb"\|[ \t]*+(?:[-+]?\.?\d[\d.e+-]{0,30}|nan|[-+]?inf)?[ \t]*+\|[ \t]*+$",
    re.MULTILINE,
)
"""A row of a name and a number, or of no value: most boxes have no others."""
_BEHIND_ROW = regex(r"(?:\^M|#015)\s*$")
MAX_BOX_ROWS = 200
"""Rows of a box whose end is waited for."""


def open_box_from(block: bytes) -> int:
    """Return where the box begins in which a block of lines ends, as it may go on in the next one."""
    at = begin = len(block)
    for _ in range(MAX_BOX_ROWS):
        start = block.rfind(b"\n", 0, max(0, at - 1)) + 1
        line = block[start:at]
        is_row = _with_bars(line).count(b"|") == SIDES_OF_ROW and _row(_message(line)) is not None
        if not line or (line.strip() and not is_row):
            return begin
        at, begin = start, start if is_row else begin
    return len(block)


def boxes_joined(block: bytes) -> bytes:
    """Return a block with the rows of each box in one line, below empty lines that keep the numbers of lines."""
    plain = _with_bars(block)
    if b"|" not in plain or not _MAY_END_ROW.search(plain):
        return block
    written: list[bytes] = []
    may_be_rows = (line.count(b"|") == SIDES_OF_ROW or not line.strip() for line in plain[:-1].split(b"\n"))
    for may_be_box, those in groupby(zip(block[:-1].split(b"\n"), may_be_rows, strict=True), itemgetter(1)):
        several = [line for line, _ in those]
        written += _joined(several) if may_be_box else several
    return b"\n".join([*written, b""])


def _with_bars(text: bytes) -> bytes:
    """Return lines with bars for other sides."""
    for side in _SIDES[1:] if b"\xe2" in text else "":
        text = text.replace(side.encode(), b"|")
    return text


def _message(line: bytes) -> str:
    return _BEHIND_ROW.sub("", without_prefix(clean(line.decode("utf-8", errors="replace"))).message)


def _joined(lines: list[bytes]) -> list[bytes]:
    """Return lines of three sides each, and empty ones, with the rows of boxes among them in one line.

    A name that comes again begins the next box where the row above counts, or is empty.
    """
    with_text = [line for line in lines if line.strip()]
    if not any(_row(_message(line)) is not None for line in (*with_text[:1], *with_text[-1:])):
        return lines
    names = [name.rstrip() for name in _PLAIN_ROW.findall(b"\n".join(lines))]
    if len({*names}) == sum(map(bool, map(bytes.strip, lines))):
        return _in_one_line(lines) if names else lines
    written, rows, names = list[bytes](), list[bytes](), list[str]()
    for line in lines:
        text = _message(line) if _MAY_BEGIN_ROW.match(line) else ""
        row = _row(text)
        if row is None:
            goes_on = not line.strip()
        else:
            goes_on = row["name"] not in names or (canonical(names[-1]) not in COUNTERS and rows[-1] != b"")
        if rows and not goes_on:
            written += _in_one_line(rows)
            rows, names = [], []
        if row is not None and (not row["value"] or parse_number(row["value"]) is not None):
            names.append(row["name"])
        if row is not None or (rows and goes_on):
            rows.append(text.encode())
        else:
            written.append(line)
    return [*written, *_in_one_line(rows)] if rows else written


def _in_one_line(rows: Sequence[bytes]) -> list[bytes]:
    mark = ROW_MARK.encode() + b" "
    return [*[b""] * (len(rows) - 1), b" ".join((mark + (b" " + mark).join(rows)).split())]


def record_in_box(line: str) -> dict[str, float]:
    """Return the record of a box whose rows stand in one line, empty if it is none."""
    record: dict[str, float] = {}
    section = ""
    for row in filter(None, map(_row, line.split(ROW_MARK))):
        name, value = row.groups()
        if name.endswith("/") and not value:
            section = name
        elif (number := parse_number(value)) is not None:
            # Only names cut to fit the box or indented under a section belong to it.
            record[name if "/" in name else f"{section}{name}"] = number
    return record if len(record) > 1 else {}


def _row(line: str) -> re.Match[str] | None:
    """Return a row of a box; a table of two columns has rows of two numbers under a row of two names."""
    row = _ROW.match(line) if any(side in line for side in _SIDES) else None
    if row is None or parse_number(row["name"]) is not None:
        return None
    if row["value"] and parse_number(row["value"]) is None and all(map(_names_column, row.groups())):
        return None
    return row


def _names_column(name: str) -> bool:
    return is_known(name) or is_telling(name) or counts_rows(name)


def is_rule(line: str) -> bool:
    """Say whether a line is a rule, above or below a box."""
    return _RULE.match(line) is not None


# What detectron2 prints to be copied: the task, the names and the values of an evaluation, in a line each.
#
# Of a task that is a set of data alone: the scores of boxes and masks stand in a table of their own above.

_MARK, _TASK = "copypaste: ", "Task: "
_NAME_AND_NUMBER = regex(rf"([^\W\d][\w/.@-]{{0,60}})=({NUMBER})(?=,|\s|$)")
"""What it prints of a task with one number, "copypaste: acc=0.91", and other evaluators of several."""


class CopyPaste:
    """Open lines. `take` one; the answer is its record, empty before the values, None outside the table."""

    def __init__(self) -> None:
        self.open = False
        self._names: list[str] = []

    def take(self, line: str) -> dict[str, float] | None:
        """Take a line if it is one of them."""
        _, mark, text = line.partition(_MARK)
        if mark and not self.open and (pairs := _NAME_AND_NUMBER.findall(text)):
            return {
                canonical(f"eval_{name}"): number
                for name, digits in pairs
                if (number := parse_number(digits)) is not None
            }
        if not mark or not (self.open or text.startswith(_TASK)):
            self.open = False
            return None
        if text.startswith(_TASK):
            self.open, self._names = names_evaluation(text.removeprefix(_TASK).strip()), []
            return {} if self.open else None
        cells = [cell.strip() for cell in text.split(",")]
        if not self._names:
            self._names, self.open = cells, any(map(is_telling, cells))
            return {}
        self.open = False
        numbers = zip(self._names, map(parse_number, cells), strict=False)
        return {canonical(f"eval_{name}"): number for name, number in numbers if number is not None}


# Blocks that a heading names: results that Tune prints as YAML, and the closing figures of the Trainer's scripts.

_FIGURES = regex(r"(?:\[.{1,80}>> )?\*{5} (?P<phase>\w{1,20}) metrics \*{5}\s{0,4}")
"""Above what `Trainer.log_metrics` prints: "***** train metrics *****"."""
_FIGURE = regex(r"(?:\[.{1,80}>>)?\s{1,8}(?P<name>\w{1,100}) {1,100}= {1,40}(?P<value>[^\s=][^=]{0,40}?)\s{0,4}")
_CLOCK = regex(r"(?:(?P<days>\d{1,4}) days?, )?(?P<hours>\d{1,4}):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d{1,9})?)")
MAX_LINES_OF_RESULT = 5000
"""Lines of one result that are kept. Chosen: those of RLlib with all their histograms have a thousand."""


class HeadedBlock:
    """Open lines below a heading. `take` a line; when the block has ended, `done` holds its phase and its record.

    A result has no phase. Of several trials the first is read; `others` counts the results of the others.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._phase = self._first = self._trial = ""
        self.open = False
        self.others = 0
        self.done: tuple[str, dict[str, object]] | None = None

    def take(self, line: str) -> bool:
        """Take a line if it is a heading or stands below one."""
        result, figures = RESULT_HEADING.fullmatch(line), _FIGURES.fullmatch(line)
        if result or figures:
            self.end()
            self._trial = result["trial"] if result else ""
            self._phase = figures["phase"] if figures else ""
            self._first = self._first or self._trial
            self.open = True
            return True
        row = self.open and bool(_FIGURE.fullmatch(line) if self._phase else line[:1] == " " and line.strip())
        if row and len(self._lines) < MAX_LINES_OF_RESULT:
            self._lines.append(line)
        elif not row:
            self.end()
        return row

    def end(self) -> None:
        """End the block that is open, if one is."""
        lines, self._lines, self.open = self._lines, [], False
        if not lines:
            return
        if self._phase:
            self.done = self._phase, _figures(lines, self._phase)
        elif self._trial == self._first:
            self.done = "", next((record for record in printed_records(lines) if record), {})
        else:
            self.others += 1


def _figures(lines: list[str], phase: str) -> dict[str, object]:
    """Return the figures of a phase; those of training are means over the run, as in the Trainer's last record."""
    found = [row for line in lines if (row := _FIGURE.fullmatch(line))]
    values = {row["name"]: _figure_value(row["value"]) for row in found}
    if phase != "train":
        return values
    return {f"summary/{name}": value for name, value in values.items() if name != "epoch"}


def _figure_value(text: str) -> object:
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return parse_number(text)
    hours = 24 * int(clock["days"] or 0) + int(clock["hours"])
    return 60.0 * (60 * hours + int(clock["minutes"])) + float(clock["seconds"])
