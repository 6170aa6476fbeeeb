"""Checks of a tokenized batch, found by `checks.symptoms`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from mldebug_mcp.batch.batch import Batch, Problem
from mldebug_mcp.batch.endings import RoleLoss
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences
from mldebug_mcp.checks.check import Evidence, Rows, Spot
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.models.base import Severity

# The rows of a batch that a check is about: found, named in a sentence, and shown by examples.


NO_ROWS: Ints = np.empty(0, np.int64)
NO_SPOTS: tuple[Spot, ...] = ()
MAX_ROW_NUMBERS = 6
"""Row numbers that a sentence names. Chosen: a line holds as many."""
MAX_EXAMPLE_ROWS = 3
"""Examples that a check gives. Chosen: enough to look at."""


def batch_evidence(
    summary: str,
    rows: Ints = NO_ROWS,
    spots: tuple[Spot, ...] = (),
    values: Mapping[str, float] | None = None,
    severity: Severity | None = None,
) -> Evidence:
    """Return what a check saw in rows of a batch; no rows if it concerns none in particular."""
    return Evidence(summary, values=values or {}, rows=Rows(rows, spots), severity=severity)


_ROWS = regex(r"\{rows(?: (\w+)\|(\w+))?\}", needs="{rows")
"""Where a summary names the rows, with the verb for one of them and for several: `{rows}`, `{rows is|are}`."""


def in_rows(
    batch: Batch,
    rows: Ints,
    summary: str,
    spots: tuple[Spot, ...] = (),
    values: Mapping[str, float] | None = None,
    *,
    severity: Severity | None = None,
) -> Evidence | None:
    """Return what a check saw in some rows, which a summary names at `{rows}` or `{rows is|are}`; None without any."""
    if not len(rows):
        return None
    named = of_rows(rows, batch.rows)
    text = _ROWS.sub(lambda place: f"{named} {place[1 if len(rows) == 1 else 2]}" if place[1] else named, summary)
    return batch_evidence(text, rows.astype(np.int64), spots, values, severity)


def problems_of(batch: Batch, check: str) -> list[Problem]:
    """Return what reading found for a check."""
    return [problem for problem in batch.problems if problem.check == check]


def rows_of(problems: Iterable[Problem]) -> Ints:
    """Return the numbers of the rows that problems are about."""
    return np.unique([row for problem in problems for row in problem.rows]).astype(np.int64)


def problem_evidence(batch: Batch, check: str) -> Evidence | None:
    """Return what reading found for a check, with the rows of all its problems; None where it found nothing."""
    problems = problems_of(batch, check)
    rows = rows_of(problems)
    return batch_evidence(f"{problems[0].summary}, in {of_rows(rows, batch.rows)}", rows) if problems else None


def rows_where(sides: Iterable[Sequences], judge: Callable[[Sequences], Bools | Ints]) -> Ints:
    """Return the numbers of the rows, over all sides, for which `judge` (a truth value or index per row) holds."""
    found = [side.numbers[judge(side)] for side in sides]
    return np.unique(np.concatenate(found)) if found else NO_ROWS


def gather(places: Iterable[tuple[Sequences, Ints]], width: int = 1) -> tuple[int, Ints, tuple[Spot, ...]]:
    """Return the number of flat positions over all sides, the numbers of their rows, and examples of `width` tokens.

    The examples are of the first side that has a position.
    """
    count, rows, spots = 0, NO_ROWS, NO_SPOTS
    for side, positions in places:
        count += len(positions)
        rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(positions))])
        spots = spots or spots_at(side, positions, width)
    return count, rows, spots


def of_rows(rows: Ints, total: int) -> str:
    """Return the rows for a sentence: "all 8 rows", "row 3", "rows 1, 4 and 30 more (32 of 64)"."""
    if len(rows) >= total > 1:
        return f"all {total} rows"
    if len(rows) == 1:
        return f"row {int(rows[0])}" if total > 1 else "the only row"
    shown = ", ".join(str(int(row)) for row in rows[:MAX_ROW_NUMBERS])
    more = f" and {len(rows) - MAX_ROW_NUMBERS} more" if len(rows) > MAX_ROW_NUMBERS else ""
    return f"rows {shown}{more} ({len(rows)} of {total})"


def spots_at(side: Sequences, positions: Ints, width: int = 1) -> tuple[Spot, ...]:
    """Return examples from flat positions of a side, one for each row."""
    rows, first = np.unique(side.ids.row_of(positions), return_index=True)
    chosen = zip(rows[:MAX_EXAMPLE_ROWS].tolist(), positions[first[:MAX_EXAMPLE_ROWS]].tolist(), strict=True)
    return tuple(
        Spot(side, row, int(place - side.ids.offsets[row]), int(place - side.ids.offsets[row]) + width)
        for row, place in chosen
    )


def prompt_spot(row: RoleLoss) -> Spot:
    """Return the first turn of the prompt's roles on which the loss is computed."""
    turn = row.prompts_trained[0]
    return Spot(row.roles.side, row.roles.index, turn.start, turn.stop)
