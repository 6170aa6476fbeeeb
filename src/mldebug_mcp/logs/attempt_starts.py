"""Where the attempts of a log start: where every counter is back where it began.

Where neither the log's head comes again nor a file begins nor an error stands between, a loss that goes on says that
only a counter within the pass over the data began anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, carried_forward
from mldebug_mcp.logs.names import COUNTERS, canonical, is_telling
from mldebug_mcp.logs.recorded import Recorded
from mldebug_mcp.logs.roles import Quantity, role_of
from mldebug_mcp.logs.steps import MOST_STEPS

DENSE = 1 / 6
"""Starts for each record, without another sign of a start, above which a log has several writers. Chosen by hand."""
FEW = 3
"""Starts that are believed in the shortest log."""
CLEAR, NEAR = 4.0, 0.25
"""A loss goes on if what it fell by is clear of its noise, by so many standard deviations, and it stays within this
share of that fall. Chosen by hand."""
AROUND = 5
"""Losses that stand for the level at a place."""
MOST = 2000
"""Attempts that are told apart, the last ones; what was logged before them is not judged. Chosen by hand."""
MOST_FALLS = 5000
"""Falls of the counters that are looked at, the last ones; a log with more has no attempts by its counters."""
MOST_INTERVALS = 10_000
"""Records of an attempt that tell its interval."""
_SEEN = (Quantity.TOKENS_SEEN, Quantity.SAMPLES_SEEN)
CLOSING = ("summary/train_runtime", "summary/total_flos")
"""Names of what is logged once, when training has finished."""


class Start(NamedTuple):
    """Where an attempt starts: its first row, and the line of its first words, 0 where none is known."""

    row: int
    line: int


def starts_in(recorded: Recorded) -> tuple[list[Start], list[int]]:
    """Return where attempts start, the first at row 0, and the rows where a counter within a pass begins anew."""
    lead = _leading(recorded.columns)
    found: list[Start] = []
    passes: list[int] = []
    if lead is not None and recorded.rows and _may_start_again(recorded):
        rows, loss = lead.arrays()
        found, passes = _among_records(recorded, rows, loss)
    starts = [*_died_before_records(recorded, 0), *found]
    with_stubs: list[Start] = [Start(0, 0)]
    for start in starts:
        if start.row and start in found:
            with_stubs += _died_before_records(recorded, start.row)
        with_stubs.append(start)
    with_stubs += _died_at_the_end(recorded)
    return with_stubs, passes


def _among_records(recorded: Recorded, rows: Rows, loss: Floats) -> tuple[list[Start], list[int]]:
    everywhere = _counters(recorded)
    counters = [counter[rows] for counter in everywhere]
    candidates = _candidates(recorded, rows, counters)
    begun, unsupported = 0, 0
    found: list[tuple[int, int]] = []
    passes: list[int] = []
    resumes = sorted(recorded.resumes)
    told_at_first = bool(resumes) and resumes[0] <= rows[0]
    signs_at = _signs_at(recorded)
    for at in candidates[-MOST_FALLS:]:
        before, after = int(rows[at - 1]), int(rows[at])
        if not all(_is_back(counter, begun, at) for counter in counters):
            continue
        told = _any_between(resumes, before, after) and not told_at_first
        signs = _signs(recorded, signs_at, before, after)
        goes_on = _goes_on(loss, begun, at)
        if told or (goes_on and not signs):
            passes += [after] * goes_on
            continue
        begun, unsupported = at, unsupported + (not signs)
        found.append((before, after))
        if unsupported > max(FEW, DENSE * len(rows)):
            return [], []
    return [_boundary(recorded, everywhere, *one) for one in found[-MOST:]], passes


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
    errors = [one.records for one in recorded.messages if one.severity == "error"]
    signs = [*recorded.breaks, *(start.row for start in recorded.starts), *errors]
    still = np.unique(np.searchsorted(rows, np.array(signs, dtype=np.int64)))
    falls[still[(still > 0) & (still < len(rows))]] = True
    candidates: list[int] = np.flatnonzero(falls & ~rises).tolist()
    return candidates


def _is_back(counter: Floats, begun: int, at: int) -> bool:
    """Say whether a counter is back where the attempt began, or within one interval of there."""
    part = counter[begun : min(at, begun + MOST_INTERVALS)]
    rises = np.diff(part)
    interval = float(np.median(rises[rises > 0])) if bool(np.any(rises > 0)) else 0.0
    return bool(counter[at] <= part[0] + interval)


def _signs_at(recorded: Recorded) -> tuple[list[int], list[int]]:
    """Return the rows of heads and files, and the numbers of records before errors, each in order."""
    rows = sorted([*recorded.breaks, *(start.row for start in recorded.starts)])
    return rows, sorted(one.records for one in recorded.messages if one.severity == "error")


def _any_between(rows: Sequence[int], before: int, after: int) -> bool:
    """Say whether one of some rows, which are in order, is above the first and up to the second."""
    place = bisect_right(rows, before)
    return place < len(rows) and rows[place] <= after


def _signs(recorded: Recorded, signs_at: tuple[list[int], list[int]], before: int, after: int) -> bool:
    """Say whether more than counters tells of a start between two records: a head, a file, an error, a closing."""
    rows, errors = signs_at
    if _any_between(rows, before, after):
        return True
    if _any_between(errors, recorded.records_before(before + 1) - 1, recorded.records_before(after)):
        return True
    closing = (column for name, column in recorded.columns.items() if name.startswith(CLOSING))
    return any(column.before(after) > column.before(before) for column in closing)


def _goes_on(loss: Floats, begun: int, at: int) -> bool:
    """Say whether the loss goes on where it was, and not where it began."""
    before, after = loss[begun:at], loss[at : at + AROUND]
    first, last = (part[np.isfinite(part)] for part in (before[:AROUND], before[-2 * AROUND :]))
    after = after[np.isfinite(after)]
    if len(before) < 2 * AROUND or not len(first) or not len(last) or not len(after):
        return False
    fall = float(np.median(last)) - float(first[0])
    noise = float(np.median(np.abs(np.diff(last)))) if len(last) > 1 else 0.0
    moved = float(np.median(after)) - float(np.median(last[-AROUND:]))
    return abs(fall) > CLEAR * noise and abs(moved) <= max(NEAR * abs(fall), noise) and fall != 0


def _boundary(recorded: Recorded, counters: Sequence[Floats], before: int, after: int) -> Start:
    """Return where an attempt starts between two records of the leading metric: at its first words, else its record."""
    start = next((one for one in reversed(recorded.starts) if before < one.row <= after), None)
    if start is not None:
        return Start(start.row, start.line)
    row = next((row for row in recorded.breaks if before < row <= after), 0)
    fell = (one for one in range(before + 1, after) if any(counter[one] < counter[one - 1] for counter in counters))
    return Start(row or next(fell, after), 0)


def _died_before_records(recorded: Recorded, row: int) -> list[Start]:
    """Return the starts between two records that an error came before, but for the last: those died at once.

    Before the first record, they are where each went on again.
    """
    here = [start.line for start in recorded.starts if start.row == row]
    edges = [*here, np.inf] if row else [0, *here]
    lines = here[:-1] if row else here
    return [
        Start(row, line)
        for line, low, high in list(zip(lines, edges, edges[1:], strict=False))[-MOST:]
        if any(low <= one.line < high and one.severity == "error" for one in recorded.messages)
    ]


def _died_at_the_end(recorded: Recorded) -> list[Start]:
    """Return starts behind the last record that came to an error at once."""
    here = [start for start in recorded.starts if start.row == recorded.rows and recorded.rows]
    edges = [*(start.line for start in here), np.inf][1:]
    return [
        Start(start.row, start.line)
        for start, end in list(zip(here, edges, strict=False))[-MOST:]
        if any(start.line <= one.line < end and one.severity == "error" for one in recorded.messages)
    ]


def _leading(columns: Columns) -> Column | None:
    """Return the fullest column of a metric that only training or evaluation has."""
    known = [column for name, column in columns.items() if is_telling(name) and not name.startswith(CLOSING)]
    others = [column for name, column in columns.items() if canonical(name) not in COUNTERS]
    return max(known or others, key=len, default=None)


def _may_start_again(recorded: Recorded) -> bool:
    """Say whether a counter ever falls, or anything else tells of a start: in most logs nothing does."""
    if any(_signs_at(recorded)):
        return True
    return any(bool(np.any(value[1:] < value[:-1])) for value in map(Column.values, _counting(recorded.columns)))


def _counting(columns: Columns) -> list[Column]:
    """Return the columns that count the progress of a run."""
    return [
        column
        for raw, column in columns.items()
        if canonical(raw) in COUNTERS or ((role := role_of(raw)) is not None and role.quantity in _SEEN)
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
