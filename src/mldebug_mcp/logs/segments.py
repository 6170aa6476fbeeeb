"""Where the step counter of an attempt falls back and goes on from there: a resume, which begins a segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mldebug_mcp.logs.columns import Column, Floats, ascends
from mldebug_mcp.logs.steps import telling

INTERLEAVED = 0.05
"""Share of records out of order above which a log has several writers at a time, not restarts; chosen: a run does not
restart every twenty records."""
MANY_RESTARTS = 20
"""Records out of order, up to which each is looked at for what it repeats; chosen: a run is not resumed more often."""

MOST = 100
"""Segments that are told apart, each of which is judged by itself: what was logged before the last of so many is one.
Chosen by hand: nobody resumes a run as often."""
MAX_JOINS = 8
"""Restarts of which the notes name the step."""


def segment_starts(
    step: Floats, breaks: Sequence[int], metrics: Mapping[str, Column], note: Callable[[str], None]
) -> list[int]:
    """Return the rows at which a segment starts: where the step counter falls back and goes on from there.

    Args:
        step: Step of every record, shape (records,).
        breaks: Rows at which the readers saw another part begin.
        metrics: The columns without those that count.
        note: Gets a note of what is out of order.
    """
    if not len(step):
        return [0]
    starts = {0, *(row for row in breaks if row < len(step) and step[row] <= step[row - 1])}
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    # A single record out of order is no restart: after a restart the counter stays below where it had been.
    if len(falls) and _count_apart(step, metrics):
        note("records of two kinds count their steps apart: sorted by step")
        return _last_of(starts, note)
    restarts = {row for row in falls.tolist() if _stays_below(step, row)}
    others = [row for row in falls.tolist() if row not in restarts]
    again = [row for row in others if _is_logged_again(step, row, metrics)] if len(others) <= MANY_RESTARTS else []
    if len(again) <= max(3, INTERLEAVED * len(step)):
        restarts.update(again)
    stray = len(falls) - len(starts.union(restarts)) + 1
    if stray > max(1, INTERLEAVED * len(step)):
        note(f"{len(falls)} record(s) out of order: several writers share this log; sorted by step")
        return _last_of(starts, note)
    starts.update(restarts)
    if stray:
        note(f"{stray} record(s) out of order: sorted by step")
    return _last_of(starts, note)


def _last_of(starts: set[int], note: Callable[[str], None]) -> list[int]:
    if len(starts) <= MOST:
        return sorted(starts)
    note(f"{len(starts) - 1:,} resumes: what was logged before the last {MOST - 1} is read as one, sorted by step")
    return [0, *sorted(starts)[1 - MOST :]]


def _count_apart(step: Floats, metrics: Mapping[str, Column]) -> bool:
    """Say whether two kinds of records take turns, each with a counter that only goes up: a learner and its actor."""
    columns = telling(metrics)
    if not columns:
        return False
    of_one = np.zeros(len(step), dtype=bool)
    of_one[columns[0].arrays()[0]] = True
    one, other = step[of_one], step[~of_one]
    return len(one) > 1 and len(other) > 1 and ascends(one) and ascends(other)


def _stays_below(step: Floats, row: int) -> bool:
    """Say whether the counter goes on from where it fell to, or fell to where the log began."""
    following = step[row : row + 3]
    return bool(step[row] <= step[0]) or (len(following) >= 2 and bool(np.all(following < step[row - 1])))


def _is_logged_again(step: Floats, row: int, metrics: Mapping[str, Column]) -> bool:
    """Say whether a record has a metric that was logged at its step before: what a resume repeats may be short."""
    earlier = np.flatnonzero(step[:row] == step[row]).tolist()
    return any(_holds(column, row) and any(_holds(column, one) for one in earlier) for column in metrics.values())


def _holds(column: Column, row: int) -> bool:
    return column.before(row + 1) > column.before(row)


def restart_note(joins: Sequence[float], step_name: str) -> str:
    """Return the note on a counter that restarts at some steps."""
    where = ", ".join(f"{step:g}" for step in joins[:MAX_JOINS]) + ", …" * (len(joins) > MAX_JOINS)
    return f"the {step_name} counter restarts {len(joins)} time(s) (at {where}): each stretch is judged by itself"
