"""A log is split into attempts before anything else: each start of the program is a run of its own.

An attempt begins where every counter is back where the last attempt began. A counter that falls back less goes on from
a checkpoint, which is a resume inside of one attempt, and so is one of which the log tells in words. `attempt_starts`
finds where they begin; here it is said what each was, and which one is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.attempt import SURVIVED, Attempt, Ending, fatal
from mldebug_mcp.logs.attempt_starts import CLOSING, MOST, Start, starts_in
from mldebug_mcp.logs.columns import Columns
from mldebug_mcp.logs.endings import INTERRUPTED, ending_of
from mldebug_mcp.logs.names import COUNTERS, canonical
from mldebug_mcp.logs.recorded import Recorded
from mldebug_mcp.logs.steps import MOST_STEPS
from mldebug_mcp.text import counted, figure, shorten

SUBSTANCE = 20
"""Records with which an attempt is one to be judged, however long the others are ..."""
SHARE, LEAST = 0.2, 2
"""... or this share of the longest one, and at least two. Chosen by hand."""
TOLD = 4
"""Attempts of which the notes tell, the last ones."""


@dataclass(frozen=True, slots=True)
class Split:
    """A log in its attempts.

    Args:
        attempts: What is said of each.
        judged: What was recorded of the one that is judged.
        head: The first lines of it, where its program started again.
        passes: Rows of it at which a counter within the pass over the data begins anew.
        asked_for: It was asked for by its number.
    """

    attempts: tuple[Attempt, ...]
    judged: Recorded
    head: tuple[str, ...]
    passes: tuple[int, ...]
    asked_for: bool = False

    def note(self, step_name: str) -> str:
        """Return the note on the attempts; empty where there is but one."""
        if len(self.attempts) < 2:
            return ""
        at = next(number for number, one in enumerate(self.attempts, 1) if one.judged)
        others = [(number, one) for number, one in enumerate(self.attempts, 1) if not one.judged]
        more = "…; " if len(others) > TOLD else ""
        told = "; ".join(f"{number}: {_told(one, step_name)}" for number, one in others[-TOLD:])
        which = "the last" if at == len(self.attempts) else f"number {at}, the last that got anywhere,"
        which = f"attempt {at}, as asked for," if self.asked_for else which
        return (
            f"the log holds {len(self.attempts)} attempts, each from its start; {which} is judged; "
            f"run='attempt N' (--run 'attempt N') judges another. {more}{told}"
        )


def split(recorded: Recorded, path: str, wanted: int = 0) -> Split:
    """Split a log into its attempts and choose the one to judge.

    Args:
        recorded: The log.
        path: Where it stands, for messages.
        wanted: Number of the attempt to judge, from 1; by default the last one with substance.

    Raises:
        InputError: there is no such attempt.
    """
    starts, passes = starts_in(recorded)
    crowded = len(starts) > MOST  # then the first of them stands for many
    edges = [*starts, Start(recorded.rows, 0)]
    counts = [recorded.records_before(end.row) - recorded.records_before(start.row) for start, end in pairwise(edges)]
    longest = max(counts[crowded:])
    least = min(SUBSTANCE, longest, max(LEAST, SHARE * longest))
    if wanted > len(counts):
        there = f"attempt 1 to attempt {len(counts)}" if len(counts) > 1 else "attempt 1 alone"
        raise InputError(
            f"{shorten(path, 200)}: no attempt {wanted}; the log holds {there}; name one of these, or none"
        )
    chosen = wanted - 1 if wanted else max(number for number, count in enumerate(counts) if count >= least)
    counting = {name: one for name, one in recorded.columns.items() if _counts(name)}
    parts = [
        _part(recorded, recorded.columns if number == chosen else counting, edges[number], edges[number + 1])
        for number in range(len(starts))
    ]
    steps = [_first_and_last(part.columns) for part in parts]
    attempts = [
        Attempt(*steps[number], counts[number], _ending(part, counts[number]), judged=number == chosen)
        for number, part in enumerate(parts)
    ]
    head = next((start.head for start in recorded.starts if start.line and start.line == starts[chosen].line), [])
    first, last = edges[chosen].row, edges[chosen + 1].row
    own_passes = tuple(row - first for row in passes if first < row < last)
    return Split(tuple(attempts), parts[chosen], tuple(head), own_passes, wanted > 0)


def _counts(name: str) -> bool:
    """Say whether a column tells where an attempt was or that it closed: all that is looked at of those not judged."""
    return name.startswith(CLOSING) or canonical(name) in COUNTERS


def _part(recorded: Recorded, columns: Columns, start: Start, end: Start) -> Recorded:
    """Return one attempt with some columns and its messages."""
    if start == (0, 0) and end == (recorded.rows, 0):
        return recorded
    low, high = recorded.records_before(start.row), recorded.records_before(end.row)
    own = [
        replace(one, records=one.records - low)
        for one in recorded.messages
        if (one.line >= start.line if start.line else not start.row or one.records > low)
        and (one.line < end.line if end.line else one.records <= high or end.row == recorded.rows)
    ]
    return recorded.between(columns, start.row, end.row, own)


def _ending(part: Recorded, records: int) -> Ending:
    """Return how an attempt of so many records ends."""
    closing = next((name for name in part.columns if name.startswith(CLOSING)), "")
    if closing:
        return Ending("finished", f"the closing record of a finished run ({closing.rpartition('/')[2]})")
    said = ending_of(part.tail)
    if said.how in ("finished", "interrupted"):
        return said
    ended = fatal(part.messages, records, finished=False)
    stopped = [one for one in part.messages if records - one.records <= SURVIVED and INTERRUPTED.search(one.text)]
    if stopped:
        return Ending("interrupted", shorten(stopped[0].text, 160), stopped[0].line)
    if ended:
        last = next((one for one in reversed(ended) if not one.text.startswith("Traceback")), ended[-1])
        return Ending("error", shorten(last.text, 160), last.line)
    return said


def _first_and_last(columns: Columns) -> tuple[float | None, float | None]:
    for name in COUNTERS:
        column = next((column for raw, column in columns.items() if canonical(raw) == name and len(column)), None)
        if column is not None:
            counted = column.values()[np.abs(column.values()) < MOST_STEPS]
            return (float(counted.min()), float(counted.max())) if len(counted) else (None, None)
    return None, None


def _told(attempt: Attempt, step_name: str) -> str:
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
