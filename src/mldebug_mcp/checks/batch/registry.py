"""What a batch check is, and how one is judged.

A check is one small file: a function that takes a batch and returns evidence in rows and numbers, or None. It returns
None too where it cannot tell: an answer about a batch holds only what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mldebug_mcp.batch.batch import Batch, Purpose
from mldebug_mcp.batch.endings import RoleLoss
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences
from mldebug_mcp.checks.asking import note_on
from mldebug_mcp.checks.check import Documented, Registry
from mldebug_mcp.models.base import Severity

NO_ROWS: Ints = np.empty(0, np.int64)
LISTED = 6
"""Row numbers that a sentence names. Chosen: a line holds as many."""
SPOTS = 3
"""Examples that a check gives. Chosen: enough to look at."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A stretch of tokens in a row of a side, by its place in the side."""

    side: Sequences
    index: int
    start: int
    stop: int


NO_SPOTS: tuple[Spot, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchEvidence:
    """What a check saw.

    Args:
        summary: One sentence in numbers: an observation.
        rows: Numbers of the rows; empty if it concerns no row in particular.
        spots: Examples.
        values: The numbers behind the summary.
        severity: Where it differs from the check's own.
    """

    summary: str
    rows: Ints = field(default_factory=lambda: NO_ROWS)
    spots: tuple[Spot, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    severity: Severity | None = None


Detector = Callable[[Batch], BatchEvidence | None]


@dataclass(frozen=True, slots=True)
class BatchCheck(Documented):
    """A registered check; see `batch_check` for the fields."""

    id: str
    severity: Severity
    why: str
    fix: str
    fixes: Mapping[str, str]
    quotes: tuple[str, ...]
    purposes: tuple[Purpose, ...] | None
    whole: bool
    detect: Detector


CHECKS: Registry[BatchCheck] = Registry("mldebug_mcp.checks.batch")


def batch_check(
    *,
    severity: Severity,
    why: str,
    fix: str,
    fixes: Mapping[str, str] | None = None,
    quotes: tuple[str, ...] = (),
    purposes: tuple[Purpose, ...] | None = None,
    whole: bool = False,
) -> Callable[[Detector], Detector]:
    """Register a function as the check of its name.

    Args:
        severity: What it usually does to training: "error", "warning" or "info".
        why: What it does to training, in a sentence.
        fix: What to change, in Transformers or TRL.
        fixes: The same by framework.
        quotes: Ids of quotes about it.
        purposes: The purposes for which the question makes sense; None for all.
        whole: Judge it once all of the data has been read, not piece by piece.
    """

    def register(detect: Detector) -> Detector:
        CHECKS.add(BatchCheck(detect.__name__, severity, why, fix, fixes or {}, quotes, purposes, whole, detect))
        return detect

    return register


def judge_check(check: BatchCheck, batch: Batch) -> tuple[BatchEvidence | None, str | None]:
    """Judge a check on a batch. The second value is a note, if the check itself broke."""
    if check.purposes is not None and batch.purpose not in check.purposes:
        return None, None
    try:
        with np.errstate(all="ignore"):  # NaN and Inf are what is looked for here
            return check.detect(batch), None
    except Exception as error:  # noqa: BLE001 - a broken check is a note, never a failed inspection
        return None, note_on(check.id, error)


def rows_where(sides: Iterable[Sequences], judge: Callable[[Sequences], Bools | Ints]) -> Ints:
    """Return the numbers of the rows, over all sides, for which `judge` (a truth value or index per row) holds."""
    found = [side.numbers[judge(side)] for side in sides]
    return np.unique(np.concatenate(found)) if found else NO_ROWS


def of_rows(rows: Ints, total: int) -> str:
    """Return the rows for a sentence: "all 8 rows", "row 3", "rows 1, 4 and 30 more (32 of 64)"."""
    if len(rows) >= total > 1:
        return f"all {total} rows"
    if len(rows) == 1:
        return f"row {int(rows[0])}" if total > 1 else "the only row"
    shown = ", ".join(str(int(row)) for row in rows[:LISTED])
    more = f" and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
    return f"rows {shown}{more} ({len(rows)} of {total})"


def rows_that(rows: Ints, total: int, one: str, several: str) -> str:
    """Return the rows as the subject of a sentence, with its verb in the form for one row or for several."""
    return f"{of_rows(rows, total)} {one if len(rows) == 1 else several}"


def spots_at(side: Sequences, positions: Ints, width: int = 1) -> tuple[Spot, ...]:
    """Return examples from flat positions of a side, one for each row."""
    rows, first = np.unique(side.ids.row_of(positions), return_index=True)
    chosen = zip(rows[:SPOTS].tolist(), positions[first[:SPOTS]].tolist(), strict=True)
    return tuple(
        Spot(side, row, int(place - side.ids.offsets[row]), int(place - side.ids.offsets[row]) + width)
        for row, place in chosen
    )


def prompt_spot(row: RoleLoss) -> Spot:
    """Return the first turn of the prompt's roles on which the loss is computed."""
    turn = row.prompts_trained[0]
    return Spot(row.roles.side, row.roles.index, turn.start, turn.stop)
