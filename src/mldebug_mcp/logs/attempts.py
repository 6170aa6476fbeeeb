"""A log is split into attempts before anything else: each start of the program is a run of its own.

An attempt begins where every counter is back where the last attempt began; or where what the program printed before
its first record comes once more. A counter that falls back less goes on from a checkpoint, which is a resume inside
of one attempt.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct, median
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import counted, figure, shorten
from mldebug_mcp.logs.align import MOST_STEPS
from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, carried_forward, stretches_of
from mldebug_mcp.logs.endings import INTERRUPTED, Tail, ending_of
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, is_telling
from mldebug_mcp.logs.names.quantities import AMOUNTS, CLOCKS
from mldebug_mcp.logs.run import (
    MAX_RECORDS_AFTER_FATAL,
    MAX_SHOWN_OF_ENDING,
    SCHEDULED,
    Attempt,
    Ending,
    Message,
    ending_in_error,
    fatal,
)

# Where a program starts again in one log: what it printed before its first record comes once more.
#
# No list of launchers is needed: banners, argument dumps, library warnings and the program's own first words are
# whatever stands at the head of this log.

MAX_HEAD_LINES = 400
"""Different lines at the head of a log that are remembered."""
MIN_REPEATED_HEAD_LINES = 3
"""Lines of the head that must come again, in their order, before a record; of a shorter head all. Chosen by hand."""
MAX_LINES_APART = 60
"""Lines within which they come again."""
NO_PLACE = -1
"""The place of a line that the head has more than once."""
MIN_LINE_LETTERS = 6
"""Letters of a line that says something: rules and numbers stand anywhere."""
_RESUMED = regex(
    r"\bresum(?:ing|ed)\b.{0,60}\b(?:from|checkpoint|ckpt|training|at (?:step|epoch|iter))"
    r"|\b(?:loaded|restored)\b.{0,20}\b(?:checkpoint|ckpt)\b.{0,60}\b(?:step|epoch|iter(?:ation)?)\b"
    r"|\b(?:restored|re-?loaded|picked up|continu(?:ing|ed)|carrying on)\b(?!.{0,60}\bbest\b).{0,40}"
    r"[\s({,@](?:step|epoch|iter(?:ation)?|it|update|upd|t)(?:\s?[=:]\s?|\s)#?\d"
    r"|\brunning optimization with exaggeration=1\.0",
    re.IGNORECASE,
)
"""A line that reports a resume, or openTSNE's second phase; settings say `resume: path` and the like."""
_RESUMES = ("esum", "oaded", "oading", "estored", "estoring", "ontinu", "icked up", "arrying on", "xaggeration")
_RELOADED = regex(
    r"\b(?:re)?(?:loaded|loading|restored|restoring)\b.{0,60}(?:"
    r"\b(?:weights|checkpoint|ckpt|parameters|state(?:_?dict)?)\b.{0,20}\bfrom\b"
    r"|\b(?:optimi[sz]er|scheduler)\b.{0,40}\bfrom\b.{0,40}\b(?:checkpoint|ckpt|epoch|step|iteration)\b"
    r"|\b(?:model|optim\w*|all|lr)\b.{0,20} from (?:checkpoint|ckpt)(?![A-Za-z]))",
    re.IGNORECASE,
)
"""A line that names weights as read from a file: between records of training that is a resume."""
_FOLD = regex(
    r"[\W_]{0,40}(?:[a-z-]{1,20} ){0,3}(?:k-?)?fold[ _#:=№]{0,4}(\d{1,4})(?![\d.])(?: ?(?:/|of) ?\d{1,4})?",
    re.IGNORECASE,
)
"""The heading of a fold: "===== Fold 1/5 =====", "Training on fold 2 of 10"."""
_FOLD_COLUMN = regex(r"(?:[a-z]{1,20}_)?fold(?:_?(?:id|idx|index|no|num|number))?", re.IGNORECASE, needs="fold")
MAX_FOLD_LINE = 120
"""Characters of a line in which such a heading is looked for."""
EVENTS, RESUMES = ("event", "type", "status", "kind"), ("resum", "restor", "restart")
"""Keys of an event in a log of objects, and how what they say of a resume begins."""
KEPT_LINES = 400
"""Lines below a start that are kept: a program prints its settings there."""


@dataclass(slots=True)
class ProcessStart:
    """A program that starts again.

    Args:
        row: Index of the first record after it.
        line: Line number of the first line that came again.
        head: What it printed there, bounded; grows until the first record.
    """

    row: int
    line: int
    head: list[str] = field(default_factory=list)


def tells_resume(line: str, *, begun: bool = True) -> bool:
    """Say whether a line tells that training went on from a checkpoint.

    Weights that are read from a file before training has `begun` are those that it starts from.
    """
    if not any(part in line for part in _RESUMES):
        return False
    return bool(_RESUMED.search(line) or (begun and _RELOADED.search(line)))


def fold_in(line: str) -> int | None:
    """Return the number of the fold that a line heads, as cross-validation prints it; None for other lines."""
    found = _FOLD.match(line[:MAX_FOLD_LINE])
    return None if found is None else int(found[1])


def is_resume(record: Mapping[str, object]) -> bool:
    """Say whether an object is the event of a resume, not a record: `{"event": "resume", "step": 70}`."""
    events = (record[key] for key in EVENTS if key in record)
    return any(isinstance(event, str) and event.lower().startswith(RESUMES) for event in events)


MAX_STARTS = 200
"""Times that a line of the head comes again before it has no place there. Chosen: a log holds fewer starts."""


class ProcessStarts:
    """Watches the lines that are no records.

    `take` is asked for each line that is not a plain record, with its skeleton: the line without its digits, or
    an empty one for a line that says something of a record.
    """

    def __init__(self) -> None:
        self._head: dict[str, int] = {}
        self._times: Counter[str] = Counter()
        self._frozen = False
        self._found: list[tuple[int, int]] = []  # of the lines that came again: line number, place in the head
        self._since: list[str] = []
        self._row = 0
        self._reached = MAX_HEAD_LINES
        self._open: ProcessStart | None = None

    def watches(self, skeleton: str) -> bool:
        """Say whether lines of a skeleton count wherever they stand: those of the head, and all until it is known."""
        return not self._frozen or skeleton in self._head

    def is_busy(self, row: int) -> bool:
        """Say whether every line counts up to the next record, as the head may be coming again."""
        collects = self._open is not None and row <= self._open.row and len(self._open.head) < KEPT_LINES
        return collects or (bool(self._found) and self._row == row)

    def take(self, number: int, line: str, skeleton: str, row: int, *, failed: bool = False) -> ProcessStart | None:
        """Take a line; return the start that it completes.

        A line without a place in a head has no skeleton; a program that `failed` starts again without a record too.
        """
        if self._open is not None:
            if row <= self._open.row and len(self._open.head) < KEPT_LINES:
                self._open.head.append(line)
            else:
                self._open = None
        if not self._frozen:
            if not (row or failed):
                if len(self._head) < MAX_HEAD_LINES and sum(map(str.isalpha, skeleton)) >= MIN_LINE_LETTERS:
                    # What stands there more than once has no place.
                    self._head[skeleton] = NO_PLACE if skeleton in self._head else len(self._head)
                return None
            self._frozen = True
            self._head = {known_skeleton: place for known_skeleton, place in self._head.items() if place != NO_PLACE}
        return self._comes_again(number, line, skeleton, row)

    def _comes_again(self, number: int, line: str, skeleton: str, row: int) -> ProcessStart | None:
        if self._found and (row != self._row or number - self._found[0][0] > MAX_LINES_APART):
            self._found, self._since = [], []
        if self._found:
            self._since.append(line)
        place = self._head.get(skeleton)
        if place is None or (self._found and place <= self._found[-1][1]):
            return None
        if not self._found:
            if place > self._reached:  # the head of the program that has just started goes on
                self._reached = place
                return None
            self._since = [line]
        self._row = row
        self._times[skeleton] += 1
        if self._times[skeleton] > MAX_STARTS:
            del self._head[skeleton]
        self._found.append((number, place))
        if len(self._found) < min(MIN_REPEATED_HEAD_LINES, len(self._head)):
            return None
        self._open = ProcessStart(row, self._found[0][0], self._since)
        self._reached, self._found, self._since = place, [], []
        return self._open


# What was recorded of a log, or of one attempt in it, before names and steps are settled.


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """A line of words that is neither a record nor an error.

    Args:
        row: The row after it.
        line: Its line number, from 1.
        text: The line, cleaned and shortened.
        warns: Whether the program itself calls it a warning.
    """

    row: int
    line: int
    text: str
    warns: bool

    def between(self, first: int, last: int) -> bool:
        """Say whether it stands below a row first <= row < last, or above the first of all."""
        return first < self.row <= last or self.row == first == 0


@dataclass(slots=True)
class Recorded:
    """Columns by the names that they were logged with, and what stood between the records.

    Args:
        columns: Values with the row, the index of the record, of each.
        rows: Records and events.
        events: Rows of events, ascending: they do not count as records.
        breaks: Rows at which the readers saw another file or table begin.
        resumes: Rows before which the log reports a resume, in words.
        starts: Programs that started again.
        folds: Rows before which a fold of a cross-validation is headed, with its number.
        messages: Lines that read like errors.
        text_lines: Other lines of words, each kind once.
        tail: The end of the text, for how it ends.
    """

    columns: Columns = field(default_factory=dict)
    rows: int = 0
    events: list[int] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    starts: list[ProcessStart] = field(default_factory=list)
    folds: list[tuple[int, float]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    text_lines: list[RecordedLine] = field(default_factory=list)
    tail: Tail = field(default_factory=Tail)

    @property
    def records(self) -> int:
        """Rows that are no events; of a log of nothing but events, those."""
        return self.rows - len(self.events) or self.rows

    def records_before(self, row: int) -> int:
        """Return how many records stand before a row."""
        return row - bisect_left(self.events, row) if self.rows > len(self.events) else row

    def end_lines(self) -> None:
        """Put words and errors below drawings that became no record below the last one."""
        self.text_lines = [replace(line, row=min(line.row, self.rows)) for line in self.text_lines]
        self.messages[:] = [replace(message, records=min(message.records, self.records)) for message in self.messages]

    def copy(self) -> Recorded:
        """Return a copy that can be settled or added to."""
        return Recorded(
            {name: column.copy() for name, column in self.columns.items()},
            self.rows, list(self.events), list(self.breaks), list(self.resumes), list(self.starts),
            list(self.folds), list(self.messages), list(self.text_lines), self.tail,
        )  # fmt: skip

    def between(self, columns: Columns, first: int, last: int, messages: list[Message]) -> Recorded:
        """Return some columns of the rows first <= row < last, counted from 0 again, with the messages of those."""

        def inside(rows: list[int]) -> list[int]:
            return [row - first for row in rows if first <= row < last]

        cut = {name: _between(column, first, last) for name, column in columns.items()}
        kept = {name: column for name, column in cut.items() if len(column)}
        return Recorded(
            kept, last - first, inside(self.events), inside(self.breaks), inside(self.resumes), [], [], messages,
            [replace(line, row=line.row - first) for line in self.text_lines if line.between(first, last)],
            self.tail if last == self.rows else Tail(),
        )  # fmt: skip

    def where(self, kept: NDArray[np.bool_]) -> Recorded:
        """Return some rows, counted from 0 again, with all that stood between them.

        Args:
            kept: Which, shape (rows,).
        """
        place = np.append(0, np.cumsum(kept))  # by row: how many are kept before it
        mixed = int(np.count_nonzero(np.diff(kept))) > 2  # rows that take turns with others: words are of all
        columns = {name: _kept_column(column, kept, place) for name, column in self.columns.items()}
        rows = int(place[-1])
        return Recorded(
            {name: column for name, column in columns.items() if len(column)}, rows,
            [int(place[row]) for row in self.events if kept[row]],
            sorted({int(place[row]) for row in self.breaks} - {0, rows}), [int(place[row]) for row in self.resumes],
            [replace(start, row=int(place[start.row])) for start in self.starts],
            [(int(place[row]), number) for row, number in self.folds],
            [replace(message, records=int(place[min(message.records, self.rows)])) for message in self.messages],
            [
                replace(line, row=int(place[line.row]))
                for line in self.text_lines
                if mixed or kept[max(line.row - 1, 0)]
            ], self.tail,
        )  # fmt: skip


def _kept_column(column: Column, kept: NDArray[np.bool_], place: Rows) -> Column:
    rows, values = column.arrays()
    own = kept[rows]
    part = Column()
    if own.any():
        part.extend(stretches_of(place[rows[own]]), values[own])
    part.logged_as = column.logged_as
    return part


def _between(column: Column, first: int, last: int) -> Column:
    rows, values = column.arrays()
    low, high = column.before(first), column.before(last)
    part = Column()
    if high > low:
        part.extend(stretches_of(rows[low:high] - first), values[low:high])
    return part


# Records that are not listed in the order in which they were written, as exports and queries give them.

LEAST_COUNTED_DOWN = 3
"""Different steps that show that records count down; chosen: two may be a restart."""
LEAST_UNORDERED = 1 / 20
"""Falls for each record of a counter whose values are all different, from which records stand in no order. Chosen:
steps that are sorted as text fall once in eleven, and a resume comes back to steps that were logged."""


def put_in_order(recorded: Recorded) -> str:
    """Put records into the order of their steps where they are exported in another; return a note of it, else "".

    A log with an error, a heading or words between its records was written in the order of its lines.
    """
    others = (
        *(recorded.breaks, recorded.starts, recorded.folds, recorded.resumes),
        *(recorded.events, recorded.text_lines),
    )
    if recorded.messages or any(others):
        return ""
    if _stand_newest_first(recorded):
        _reorder(recorded, np.arange(recorded.rows)[::-1])
        return "records stand newest first: they are read in the order of their steps"
    counter = _unordered_counter(recorded)
    if counter is None:
        return ""
    _reorder(recorded, np.argsort(np.argsort(counter)))
    return "records stand in no order, each step once: they are read in the order of their steps"


def _stand_newest_first(recorded: Recorded) -> bool:
    """Say whether each counter and clock only falls from one record to the next."""
    counters = [column.values() for name, column in recorded.columns.items() if canonical(name) in COUNTERS]
    others_too = [column.values() for column in (*_counting(recorded.columns), *_clocks(recorded.columns))]
    count_down = any(len(distinct(values)) >= LEAST_COUNTED_DOWN for values in counters)
    return count_down and all(bool(np.all(values[1:] <= values[:-1])) for values in others_too)


def _unordered_counter(recorded: Recorded) -> Floats | None:
    """Return a counter with another value in each record that falls again and again, where no clock goes on."""
    if any(bool(np.all(np.diff(column.values()) >= 0)) for column in _clocks(recorded.columns)):
        return None
    for name, column in recorded.columns.items():
        values = column.values()
        if canonical(name) not in COUNTERS or len(values) < recorded.rows:
            continue
        falls = int(np.count_nonzero(values[1:] < values[:-1]))
        is_unordered = falls >= max(LEAST_COUNTED_DOWN, LEAST_UNORDERED * len(values))
        if is_unordered and len(distinct(values)) == len(values):
            return values
    return None


def _reorder(recorded: Recorded, place: Rows) -> None:
    """Move each record to its place, shape (rows,)."""
    for name, column in recorded.columns.items():
        at, values = column.arrays()
        order = np.argsort(place[at])
        moved = recorded.columns[name] = Column()
        moved.extend(stretches_of(place[at][order]), values[order])
        moved.logged_as = column.logged_as


def _clocks(columns: Columns) -> list[Column]:
    roles = ((column, role_of(name)) for name, column in columns.items())
    return [column for column, role in roles if role is not None and role.quantity in CLOCKS]


# Where the attempts of a log start: where every counter is back where it began.
#
# Where neither the log's head comes again nor a file begins nor an error stands between, a loss that goes on says that
# only a counter within the pass over the data began anew.

MAX_STARTS_PER_RECORD = 1 / 6
"""Starts for each record, without another sign of a start, above which a log has several writers. Chosen by hand."""
MIN_BELIEVED_STARTS = 3
"""Starts that are believed in the shortest log."""
MIN_FALL_IN_DEVIATIONS, MAX_SHARE_OF_FALL = 4.0, 0.25
"""A loss goes on if what it fell by is clear of its noise, by so many standard deviations; it also stays within this
share of that fall. Chosen by hand."""
LOSSES_FOR_LEVEL = 5
"""Losses that stand for the level at a place."""
MIN_SHARE_OF_EQUAL_BLOCKS = 0.8
"""Share of blocks of records of the same length, give or take one, from which a counter begins anew with each block:
a logger wrote them out, or an epoch ended. Chosen by hand."""
MIN_SEAMS_OF_BLOCKS, MIN_RECORDS_IN_BLOCKS = 4, 40
"""Seams at which the loss goes on, and records, that such a log has. Chosen: in a sweep of few attempts, each may begin
where the last one ended, where the learning rate rises tenfold from one to the next."""
MIN_BLOCK_FALL_IN_DEVIATIONS = 8.0
"""Standard deviations of a level by which the end of a block is clear of the start of the log. Chosen: there, a block
that goes on looks like a start once in many thousands."""
MAX_SHARE_OF_UNDECIDED_BLOCKS = 0.1
"""Share of the clear blocks that may begin neither where the last one ended nor where the log began."""
MAX_ATTEMPTS = 2000
"""Attempts that are kept, the last ones; what was logged before them is not judged. Chosen by hand."""
MAX_FALLS = 5000
"""Falls of the counters that are looked at, the last ones; a log with more has no attempts by its counters."""
MOST_INTERVALS = 10_000
"""Records of an attempt that tell its interval."""
CLOSING_NAMES = ("summary/train_runtime", "summary/total_flos")
"""Names of what is logged once, when training has finished."""


class AttemptStart(NamedTuple):
    """Where an attempt starts: its first row, and the line of its first words, 0 where none is known."""

    row: int
    line: int


def starts_in(recorded: Recorded) -> tuple[list[AttemptStart], list[int]]:
    """Return where attempts start, the first at row 0, and the rows where a counter within a pass begins anew."""
    lead = _leading(recorded.columns)
    found: list[AttemptStart] = []
    passes: list[int] = []
    if lead is not None and recorded.rows and _may_start_again(recorded):
        rows, loss = lead.arrays()
        found, passes = _among_records(recorded, rows, loss)
    starts = [*_died_before_records(recorded, 0), *found]
    with_stubs: list[AttemptStart] = [AttemptStart(0, 0)]
    for start in starts:
        if start.row and start in found:
            with_stubs += _died_before_records(recorded, start.row)
        with_stubs.append(start)
    behind = [start.line for start in recorded.starts if start.row == recorded.rows and recorded.rows]
    with_stubs += _starts_with_errors(recorded, recorded.rows, behind, behind)
    return with_stubs, passes


def _among_records(recorded: Recorded, rows: Rows, loss: Floats) -> tuple[list[AttemptStart], list[int]]:
    everywhere = _counters(recorded)
    counters = [counter[rows] for counter in everywhere]
    candidates = _candidates(recorded, rows, counters)
    signs_at = _signs_at(recorded)
    if not (any(signs_at) or recorded.resumes):
        seams = _back_at_the_start(counters, candidates)
        anew = _anew_among_blocks(loss, seams)
        if anew is not None:
            starts = [_boundary(recorded, everywhere, int(rows[at - 1]), int(rows[at])) for at in anew]
            return starts, [int(rows[at]) for at in seams if at not in anew]
    begun, unsupported = 0, 0
    found: list[tuple[int, int]] = []
    passes: list[int] = []
    resumes = sorted(recorded.resumes)
    begins_resumed = bool(resumes) and resumes[0] <= rows[0]
    for at in candidates[-MAX_FALLS:]:
        before, after = int(rows[at - 1]), int(rows[at])
        if not all(_is_back(counter, begun, at) for counter in counters):
            continue
        is_announced = _any_between(resumes, before, after) and not begins_resumed
        signs = _signs(recorded, signs_at, before, after)
        goes_on = _goes_on(loss, begun, at) or _heads_first_epoch(recorded, before, after)
        if is_announced or (goes_on and not signs):
            passes += [after] * goes_on
            continue
        begun, unsupported = at, unsupported + (not signs)
        found.append((before, after))
        if unsupported > max(MIN_BELIEVED_STARTS, MAX_STARTS_PER_RECORD * len(rows)):
            return [], []
    return [_boundary(recorded, everywhere, *gap) for gap in found[-MAX_ATTEMPTS:]], passes


def _candidates(recorded: Recorded, rows: Rows, counters: Sequence[Floats]) -> list[int]:
    """Return where no counter rises from one record of the leading metric to the next, and one falls.

    Where the program's head comes again, or an error stands between, they may stand still: it died after one record.
    """
    if len(rows) < 2:
        return []
    falls, rises = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    for counter in counters:
        falls[1:] |= counter[1:] < counter[:-1]
        rises[1:] |= counter[1:] > counter[:-1]
    errors = [message.records for message in recorded.messages if message.severity == "error"]
    signs = [*recorded.breaks, *(start.row for start in recorded.starts), *errors]
    still = distinct(np.searchsorted(rows, np.array(signs, dtype=np.int64)))
    falls[still[(still > 0) & (still < len(rows))]] = True
    candidates: list[int] = np.flatnonzero(falls & ~rises).tolist()
    return candidates


def _back_at_the_start(counters: Sequence[Floats], candidates: Sequence[int]) -> list[int]:
    """Return the candidates at which every counter is back where the log began, or within one interval of there."""
    first = [counter[: candidates[0]] for counter in counters] if candidates else []
    limits = [part[0] + median(np.diff(part)) if len(part) > 1 else part[0] for part in first]
    return [
        at for at in candidates if all(counter[at] <= limit for counter, limit in zip(counters, limits, strict=True))
    ]


def _anew_among_blocks(loss: Floats, seams: Sequence[int]) -> list[int] | None:
    """Return at which seams of blocks of equal length the loss is back where the log began; it goes on at the others.

    Lightning's CSV logger counts anew whenever it writes its records out. None where the loss does not mostly go on.
    """
    if len(seams) < MIN_SEAMS_OF_BLOCKS or len(loss) < MIN_RECORDS_IN_BLOCKS:
        return None
    edges = np.array([0, *seams])
    lengths = np.diff(edges)
    usual = median(lengths)
    if np.mean(np.abs(lengths - usual) <= 1) < MIN_SHARE_OF_EQUAL_BLOCKS:
        return None
    few = min(LOSSES_FOR_LEVEL, max(1, int(usual) // 2))
    begins = np.array([_level(loss[edge : edge + few]) for edge in edges])
    fallen = np.array([_level(loss[max(0, edge - few) : edge]) for edge in seams]) - begins[0]
    own_fall = np.abs(fallen + begins[0] - begins[:-1]) * few / max(1.0, usual - few)
    moved = np.sign(fallen) * (begins[1:] - begins[0] - fallen)  # below 0: back to where the log began
    noise = _level(np.abs(np.diff(loss))) / math.sqrt(few)
    clear = np.abs(fallen) > MIN_BLOCK_FALL_IN_DEVIATIONS * noise
    near = MAX_SHARE_OF_FALL * np.abs(fallen)
    goes_on = clear & (moved >= -near) & (moved <= near + 2 * own_fall)
    is_anew = clear & (np.abs(moved + np.abs(fallen)) <= near)
    first = loss[edges[1:]]
    first_is_back = np.abs(first - loss[0]) < np.abs(first - begins[0] - fallen)
    if clear.any() and np.mean((first_is_back & ~is_anew)[clear]) > MAX_SHARE_OF_FALL:
        return None  # each comes down within its first records
    undecided = int((clear & ~goes_on & ~is_anew).sum())
    if undecided > MAX_SHARE_OF_UNDECIDED_BLOCKS * int(clear.sum()):
        return None
    if int(goes_on.sum()) < max(MIN_SEAMS_OF_BLOCKS, len(seams) / 2):
        return None
    return [seam for seam, back in zip(seams, is_anew.tolist(), strict=True) if back]


def _level(losses: Floats) -> float:
    """Return the median of those that are finite; NaN where none is."""
    return median(losses[np.isfinite(losses)])


def _is_back(counter: Floats, begun: int, at: int) -> bool:
    """Say whether a counter is back where the attempt began, or within one interval of there."""
    part = counter[begun : min(at, begun + MOST_INTERVALS)]
    rises = np.diff(part)
    interval = median(rises[rises > 0]) if bool(np.any(rises > 0)) else 0.0
    return bool(counter[at] <= part[0] + interval)


def _signs_at(recorded: Recorded) -> tuple[list[int], list[int]]:
    """Return the rows of heads, files and folds, and the numbers of records before errors, each in order."""
    folds = (row for row, _ in _folds(recorded))
    rows = sorted([*recorded.breaks, *(start.row for start in recorded.starts), *folds])
    return rows, sorted(message.records for message in recorded.messages if message.severity == "error")


def _folds(recorded: Recorded) -> list[tuple[int, float]]:
    """Return the rows at which folds begin, each with its number, as headings or a column of the records tell it."""
    column = next((column for name, column in recorded.columns.items() if _FOLD_COLUMN.fullmatch(name)), None)
    if column is None or not len(column):
        return recorded.folds
    at, value = column.arrays()
    begins = np.append(0, np.flatnonzero(value[1:] != value[:-1]) + 1)
    return list(zip(at[begins].tolist(), value[begins].tolist(), strict=True))


def _are_folds(recorded: Recorded, starts: Sequence[AttemptStart]) -> bool:
    """Say whether each of several attempts is a fold of its own: none of them repeats one, as a restart does."""
    folds = _folds(recorded)
    numbers = [next((number for row, number in reversed(folds) if row <= start.row), None) for start in starts]
    return len(numbers) > 1 and None not in numbers and len(set(numbers)) == len(numbers)


def _any_between(rows: Sequence[int], before: int, after: int) -> bool:
    """Say whether one of some rows, which are in order, is above the first and up to the second."""
    place = bisect_right(rows, before)
    return place < len(rows) and rows[place] <= after


def _signs(recorded: Recorded, signs_at: tuple[list[int], list[int]], before: int, after: int) -> bool:
    """Say whether more than counters shows a start between two records: a head, a file, an error, a closing."""
    rows, errors = signs_at
    if _any_between(rows, before, after):
        return True
    if _any_between(errors, recorded.records_before(before + 1) - 1, recorded.records_before(after)):
        return True
    closing = (column for name, column in recorded.columns.items() if name.startswith(CLOSING_NAMES))
    return any(column.before(after) > column.before(before) for column in closing)


def _heads_first_epoch(recorded: Recorded, before: int, after: int) -> bool:
    """Say whether the first epoch that is named stands between two records and is a later one: the log begins in it."""
    named = (column for name, column in recorded.columns.items() if canonical(name) == "epoch" and len(column))
    at, epoch = next(named, Column()).arrays()
    return bool(len(at) > 0 and before < at[0] <= after and epoch[0] > 1)


def _goes_on(loss: Floats, begun: int, at: int) -> bool:
    """Say whether the loss goes on where it was, and not where it began."""
    before, after = loss[begun:at], loss[at : at + LOSSES_FOR_LEVEL]
    first, last = (part[np.isfinite(part)] for part in (before[:LOSSES_FOR_LEVEL], before[-2 * LOSSES_FOR_LEVEL :]))
    after = after[np.isfinite(after)]
    if len(before) < 2 * LOSSES_FOR_LEVEL or not len(first) or not len(last) or not len(after):
        return False
    fall = median(last) - float(first[0])
    noise = median(np.abs(np.diff(last))) if len(last) > 1 else 0.0
    moved = median(after) - median(last[-LOSSES_FOR_LEVEL:])
    is_back = abs(float(after[0]) - float(first[0])) <= MAX_SHARE_OF_FALL * abs(fall)  # and comes down soon
    return (
        not is_back
        and abs(fall) > MIN_FALL_IN_DEVIATIONS * noise
        and abs(moved) <= max(MAX_SHARE_OF_FALL * abs(fall), noise)
        and fall != 0
    )


def _boundary(recorded: Recorded, counters: Sequence[Floats], before: int, after: int) -> AttemptStart:
    """Return where an attempt starts between two records of the leading metric: at its first words, else its record."""
    start = next(
        (process_start for process_start in reversed(recorded.starts) if before < process_start.row <= after), None
    )
    if start is not None:
        return AttemptStart(start.row, start.line)
    row = next((row for row in recorded.breaks if before < row <= after), 0)
    fell = (
        number
        for number in range(before + 1, after)
        if any(counter[number] < counter[number - 1] for counter in counters)
    )
    return AttemptStart(row or next(fell, after), 0)


def _died_before_records(recorded: Recorded, row: int) -> list[AttemptStart]:
    """Return the starts between two records that an error came before, but for the last: those died at once.

    Before the first record, they are where each went on again.
    """
    here = [start.line for start in recorded.starts if start.row == row]
    edges = here if row else [0, *here]
    return _starts_with_errors(recorded, row, here[:-1] if row else here, edges)


def _starts_with_errors(
    recorded: Recorded, row: int, lines: Sequence[int], edges: Sequence[float]
) -> list[AttemptStart]:
    """Return the starts at some lines of one row with an error from the edge of each up to the next one."""
    errors = [message.line for message in recorded.messages if message.severity == "error"]
    stretches = list(zip(lines, pairwise([*edges, np.inf]), strict=False))[-MAX_ATTEMPTS:]
    return [AttemptStart(row, line) for line, (low, high) in stretches if any(low <= at < high for at in errors)]


def _leading(columns: Columns) -> Column | None:
    """Return the fullest column of a metric that only training or evaluation has."""
    known = [column for name, column in columns.items() if is_telling(name) and not name.startswith(CLOSING_NAMES)]
    others = [column for name, column in columns.items() if canonical(name) not in COUNTERS]
    return max(known or others, key=len, default=None)


def _may_start_again(recorded: Recorded) -> bool:
    """Say whether a counter ever falls, or anything else shows a start: in most logs nothing does."""
    if any(_signs_at(recorded)):
        return True
    return any(bool(np.any(value[1:] < value[:-1])) for value in map(Column.values, _counting(recorded.columns)))


def _counting(columns: Columns) -> list[Column]:
    """Return the columns that count the progress of a run."""
    return [
        column
        for raw, column in columns.items()
        if canonical(raw) in COUNTERS or ((role := role_of(raw)) is not None and role.quantity in AMOUNTS)
    ]


def _counters(recorded: Recorded) -> list[Floats]:
    """Return what counts the progress of a run at every row, each of shape (rows,)."""
    found = []
    for column in _counting(recorded.columns):
        if len(column) < 2:
            continue
        at, value = column.arrays()
        counts = np.abs(value) < MOST_STEPS
        if 2 * int(counts.sum()) > len(value):
            at, value = (at, value) if counts.all() else (at[counts], value[counts])  # what is left out is copied
            found.append(carried_forward(at, value, recorded.rows))
    return found


# A log is split into attempts before anything else: each start of the program is a run of its own.

MIN_RECORDS_TO_JUDGE = 20
"""Records with which an attempt is one to be judged, however long the others are ..."""
MIN_SHARE_OF_LONGEST, MIN_RECORDS = 0.2, 2
"""... or this share of the longest one, and at least two. Chosen by hand."""
NAMED_ATTEMPTS = 4
"""Attempts that the notes mention, the last ones."""


@dataclass(frozen=True, slots=True)
class Split:
    """A log in its attempts.

    Args:
        attempts: The words on each.
        judged: What was recorded of the one that is judged.
        head: The first lines of it, where its program started again.
        passes: Rows of it at which a counter within the pass over the data begins anew.
        asked_for: It was asked for by its number.
        are_folds: They are the folds of a cross-validation.
    """

    attempts: tuple[Attempt, ...]
    judged: Recorded
    head: tuple[str, ...]
    passes: tuple[int, ...]
    asked_for: bool = False
    are_folds: bool = False

    def note(self, step_name: str) -> str:
        """Return the note on the attempts; empty where there is but one."""
        if len(self.attempts) < 2:
            return ""
        at = next(number for number, attempt in enumerate(self.attempts, 1) if attempt.judged)
        others = [(number, attempt) for number, attempt in enumerate(self.attempts, 1) if not attempt.judged]
        left_out = len(others) - NAMED_ATTEMPTS
        more = f"{left_out} before these; " if left_out > 0 else ""
        places = "; ".join(
            f"{number}: {_description(attempt, step_name)}" for number, attempt in others[-NAMED_ATTEMPTS:]
        )
        which = "the last" if at == len(self.attempts) else f"number {at}, the last that got anywhere,"
        word = "fold" if self.are_folds else "attempt"
        which = f"{word} {at}, as asked for," if self.asked_for else which
        return (
            f"the log holds {len(self.attempts)} {word}s, each from its start; {which} is judged; "
            f"run='{word} N' (--run '{word} N') judges another, `mldebug-mcp runs FILE` each. {more}{places}"
        )


def least_to_judge(longest: int) -> float:
    """Return the records that make an attempt or a log worth judging where the longest has so many."""
    return min(MIN_RECORDS_TO_JUDGE, longest, max(MIN_RECORDS, MIN_SHARE_OF_LONGEST * longest))


def split(recorded: Recorded, path: str, wanted: int = 0, planned: Mapping[str, float] | None = None) -> Split:
    """Split a log into its attempts and choose the one to judge.

    Args:
        recorded: The log.
        path: Where it stands, for messages.
        wanted: Number of the attempt to judge, from 1; by default the last one with substance.
        planned: How far each is to go, by counter: one that is not judged and came there has finished.

    Raises:
        InputError: no such attempt exists.
    """
    starts, passes = starts_in(recorded)
    crowded = len(starts) > MAX_ATTEMPTS  # then the first of them stands for many
    edges = [*starts, AttemptStart(recorded.rows, 0)]
    counts = [recorded.records_before(end.row) - recorded.records_before(start.row) for start, end in pairwise(edges)]
    least = least_to_judge(max(counts[crowded:]))
    are_folds = not crowded and _are_folds(recorded, starts)
    if wanted > len(counts):
        there = f"attempt 1 to attempt {len(counts)}" if len(counts) > 1 else "attempt 1 alone"
        raise InputError(
            f"{shorten(path, 200)}: no attempt {wanted}; the log holds {there}; name one of these, or none"
        )
    chosen = wanted - 1 if wanted else max(number for number, count in enumerate(counts) if count >= least)
    counting = {name: column for name, column in recorded.columns.items() if _counts(name)}
    parts = [
        _part(recorded, recorded.columns if number == chosen else counting, edges[number], edges[number + 1])
        for number in range(len(starts))
    ]
    attempts = [
        _attempt(part, counts[number], planned or {}, judged=number == chosen, is_fold=are_folds)
        for number, part in enumerate(parts)
    ]
    head = next((start.head for start in recorded.starts if start.line and start.line == starts[chosen].line), [])
    first, last = edges[chosen].row, edges[chosen + 1].row
    own_passes = tuple(row - first for row in passes if first < row < last)
    return Split(tuple(attempts), parts[chosen], tuple(head), own_passes, wanted > 0, are_folds)


def _attempt(part: Recorded, records: int, planned: Mapping[str, float], *, judged: bool, is_fold: bool) -> Attempt:
    counter, first, last = _first_and_last(part.columns)
    ending, plan = _ending(part, records), planned.get(counter)
    # "Epoch 0/20" to "Epoch 19/20" are twenty; how the judged one ends, its settings tell too.
    done = plan is not None and last is not None and last + (first == 0) >= plan
    if done and ending.how == "open" and not judged:
        ending = Ending("finished", f"{counter} {figure(last or 0.0)} of {figure(plan or 0.0)}")
    return Attempt(first, last, records, ending, judged, is_fold)


def _counts(name: str) -> bool:
    """Say whether a column tells where an attempt was or that it closed: all that is looked at of those not judged."""
    return name.startswith(CLOSING_NAMES) or canonical(name) in COUNTERS


def _part(recorded: Recorded, columns: Columns, start: AttemptStart, end: AttemptStart) -> Recorded:
    """Return one attempt with some columns and its messages."""
    if start == (0, 0) and end == (recorded.rows, 0):
        return recorded
    low, high = recorded.records_before(start.row), recorded.records_before(end.row)
    own = [
        replace(message, records=message.records - low)
        for message in recorded.messages
        if (message.line >= start.line if start.line else not start.row or message.records > low)
        and (message.line < end.line if end.line else message.records <= high or end.row == recorded.rows)
    ]
    return recorded.between(columns, start.row, end.row, own)


def _ending(part: Recorded, records: int) -> Ending:
    """Return how an attempt of so many records ends."""
    closing = next((name for name in part.columns if name.startswith(CLOSING_NAMES)), "")
    if closing:
        return Ending("finished", f"the closing record of a finished run ({closing.rpartition('/')[2]})")
    ending = ending_of(part.tail)
    if ending.how in ("finished", "interrupted"):
        return ending
    ended = fatal(part.messages, records, finished=False)
    stopped = [
        message
        for message in part.messages
        if records - message.records <= MAX_RECORDS_AFTER_FATAL and INTERRUPTED.search(message.text)
    ]
    if stopped and ending.how == "silence" and SCHEDULED.search(stopped[0].text):
        return ending
    if stopped:
        return Ending("interrupted", shorten(stopped[0].text, MAX_SHOWN_OF_ENDING), stopped[0].line)
    if ended:
        return ending_in_error(ended)
    return ending


def _first_and_last(columns: Columns) -> tuple[str, float | None, float | None]:
    """Return the finest counter of an attempt, and its least and largest value."""
    for name in COUNTERS:
        column = next((column for raw, column in columns.items() if canonical(raw) == name and len(column)), None)
        if column is not None:
            counted = column.values()[np.abs(column.values()) < MOST_STEPS]
            return (name, float(counted.min()), float(counted.max())) if len(counted) else (name, None, None)
    return "", None, None


def _description(attempt: Attempt, step_name: str) -> str:
    ending = attempt.ending
    where = f", line {ending.line}" if ending.line else ""
    how = {
        "finished": "finished",
        "error": f'ended in an error ("{shorten(ending.text, 80)}"{where})',
        "interrupted": f'was interrupted ("{shorten(ending.text, 80)}"{where})',
    }.get(ending.how, "just ends")
    if not attempt.records:
        return f"no record, {how}"
    steps = "" if attempt.first_step is None else (
        f"{step_name} {figure(attempt.first_step)} to {figure(attempt.last_step or 0.0)}, "
    )  # fmt: skip
    return f"{steps}{counted(attempt.records, 'record')}, {how}"
