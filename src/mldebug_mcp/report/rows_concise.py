"""The short form of the rows of a step: the odd ones whole, of the others the first."""

from __future__ import annotations

from mldebug_mcp.models.rows import FedBatch, FedRow, RowsAt
from mldebug_mcp.text import counted

MOST_ROWS, MOST_IDS, MOST_BATCHES = 12, 64, 16
LONGEST_TEXT = 600


def concise_rows(answer: RowsAt) -> RowsAt:
    """Return the first micro-batches and rows; the notes say how many there are."""
    batches = [_few(one) for one in answer.batches[:MOST_BATCHES]]
    rows = [_short(one) for one in answer.rows[:MOST_ROWS]]
    shown = sum(len(one.rows) for one in batches)
    notes = list(answer.notes)
    if len(rows) < len(answer.rows):
        notes.insert(0, f"{counted(len(answer.rows) - len(rows), 'row')} more, not told one by one")
    if shown < answer.row_count:
        notes.insert(0, f"{shown} of {answer.row_count:,} rows fed are listed here")
    return answer.model_copy(update={"batches": batches, "rows": rows, "notes": notes})


def _few(batch: FedBatch) -> FedBatch:
    return batch.model_copy(update={"rows": batch.rows[:MOST_IDS]})


def _short(row: FedRow) -> FedRow:
    """Return a row with the beginning of its text."""
    text = row.text if len(row.text) <= LONGEST_TEXT else f"{row.text[: LONGEST_TEXT - 1]}…"
    return row.model_copy(update={"text": text})
