"""How completions end: with an end token that is trained on, with one that is masked, cut off, or with none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.batch.agreement import shift_of
from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.documents import holds_documents
from mldebug_mcp.batch.other_templates import rows_of_another_template
from mldebug_mcp.batch.ragged import Bools, Ints, Runs
from mldebug_mcp.batch.role_losses import role_losses
from mldebug_mcp.batch.sequences import Sequences

LOOK_BACK = 3
"""Trained tokens at the end of a turn among which the end token is looked for: some templates end in a line break."""
ROUND = 128
"""Rows whose length is a multiple of this look cut at a chosen maximum: `max_length` is nearly always such a number."""


@dataclass(frozen=True, slots=True)
class Endings:
    """For each row of a side, how its completion ends. A row without one is in none of these.

    Args:
        ended: The last turn ends with an end token that is trained on.
        masked: An end token follows, but no end token of the row is trained on.
        cut: No end token, and the row is as long as rows can be.
        open: No end token, and there would have been room for one.
        last: The flat position of the completion's last token.
    """

    ended: Bools
    masked: Bools
    cut: Bools
    open: Bools
    last: Ints


def endings(batch: Batch, side: Sequences) -> Endings | None:
    """Return how the completions of a side end, or None if that cannot be told.

    Nothing is said of rows in which only the user's turns are trained on, or whose markers are another template's.
    """
    if not batch.ends:
        return None
    turns = side.trained_runs
    if turns is None:
        if batch.purpose not in ("dpo", "sft") or batch.targets is not None:
            return None
        start, stop = side.bounds
        some = stop > start
        turns = Runs(start[some], stop[some], np.flatnonzero(some))
    # Labels that are the next tokens train on the tokens behind them.
    shift = shift_of(side)
    turns = _without_padding(side, Runs(turns.start + shift, turns.stop + shift, turns.row))
    rows = side.rows
    turns = _of_rows(turns, ~_without_answers(batch, side))
    has = np.zeros(rows, np.bool_)
    has[turns.row] = True
    ends = np.fromiter(batch.ends, np.int64)
    closed = _closed(side, turns, ends)
    masked_after = ~closed & _end_follows(side, turns, ends)
    last_run = np.full(rows, -1, np.int64)
    last_run[turns.row] = np.arange(len(turns))
    ended = np.zeros(rows, np.bool_)
    ended[has] = closed[last_run[has]]
    any_closed = np.bincount(turns.row, weights=closed, minlength=rows) > 0
    joined = holds_documents(batch, side)
    if joined:
        ended = ended | any_closed
    masked = (np.bincount(turns.row, weights=masked_after, minlength=rows) > 0) & ~any_closed & has
    last = np.full(rows, -1, np.int64)
    last[has] = turns.stop[last_run[has]] - 1
    masked_last = np.zeros(rows, np.bool_)
    masked_last[has] = masked_after[last_run[has]]
    loose = has & ~ended & ~masked & ~masked_last
    cut = loose & _at_limit(batch, side, last, loose, ended) & (not joined)
    return Endings(ended, masked, cut, loose & ~cut, last)


def _without_padding(side: Sequences, turns: Runs) -> Runs:
    """Return the turns as far as they are content: padding that carries labels is no part of a completion."""
    first, last = side.bounds
    start, stop = np.maximum(turns.start, first[turns.row]), np.minimum(turns.stop, last[turns.row])
    some = stop > start
    return Runs(start[some], stop[some], turns.row[some])


def _of_rows(turns: Runs, rows: Bools) -> Runs:
    some = rows[turns.row]
    return Runs(turns.start[some], turns.stop[some], turns.row[some])


def _without_answers(batch: Batch, side: Sequences) -> Bools:
    """Return the rows whose turns are no answers of this model: the user's alone, or in another template's markers."""
    silent = np.zeros(side.rows, np.bool_)
    prompts = (row.roles for row in role_losses(batch) if row.prompts_trained and row.only_prompts)
    for row in (*prompts, *rows_of_another_template(batch)):
        if row.side is side:
            silent[row.index] = True
    return silent


def _closed(side: Sequences, turns: Runs, ends: Ints) -> Bools:
    found = np.zeros(len(turns), np.bool_)
    for back in range(1, LOOK_BACK + 1):
        place = turns.stop - back
        found |= (place >= turns.start) & np.isin(side.ids.flat[np.maximum(place, 0)], ends)
    return found


def _end_follows(side: Sequences, turns: Runs, ends: Ints) -> Bools:
    """Whether an end token stands right after a turn, inside the row's content."""
    _, stop = side.bounds
    inside = turns.stop < stop[turns.row]
    place = np.minimum(turns.stop, len(side.ids.flat) - 1)
    return inside & np.isin(side.ids.flat[place], ends)


def _at_limit(batch: Batch, side: Sequences, last: Ints, loose: Bools, ended: Bools) -> Bools:
    """Whether a row's completion runs up to the greatest length of the batch, and that looks like a limit."""
    if not side.rows:
        return np.zeros(0, np.bool_)
    longest = int(side.lengths.max())
    _, stop = side.bounds
    full = (side.lengths == longest) & ((last == stop - 1) | (last < 0)) & (stop == side.ids.offsets[1:])
    limits = (batch.model.max_positions, batch.tokenizer.hf.model_max_length if batch.tokenizer is not None else None)
    known = (longest % ROUND == 0 and longest > 0) or longest in limits
    # Where shorter rows lack their ends too, the ends are missing, not cut off.
    several = int((full & ~ended).sum()) >= 2 and not bool((loose & ~full).any())
    return full if known or several or bool(ended.any()) else np.zeros(side.rows, np.bool_)


def all_endings(batch: Batch) -> Iterable[tuple[Sequences, Endings]]:
    """Yield the sides whose completions' ends can be told."""
    # Transcripts for CTC have no end token: targets are judged where a decoder writes them.
    decoded = batch.targets if batch.sides or batch.model.encoder_decoder else None
    for side in (*batch.sides, decoded):
        if side is None or side.name == "prompt":
            continue
        found = endings(batch, side)
        if found is not None:
            yield side, found
