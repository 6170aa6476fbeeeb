"""Where one document ends and the next begins inside a row."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.sequences import Sequences

NOWHERE: Ints = np.empty(0, np.int64)


def holds_documents(batch: Batch, side: Sequences) -> bool:
    """Whether rows hold several documents, kept apart or not: then a row may begin and end inside one."""
    return side.packed or bool(len(document_starts(batch, side)))


def document_starts(batch: Batch, side: Sequences) -> Ints:
    """Return the flat positions at which a further document begins inside a row.

    A first token inside a row begins one. Without such tokens an end token ends one, unless it ends the turns of a
    conversation; then a second system turn begins one, or a single masked token after an end (collators that join rows
    mask the first token of each), or what follows an end of text that the template never writes between turns.
    """
    bos = batch.bos
    if bos is not None and bos not in batch.ends and not _begins_turns(batch):
        starts = np.flatnonzero(side.ids.flat == bos)
        if len(starts):
            return _inside(side, starts, bos)
    if _ends_are_turns(batch):
        found = np.union1d(_second_systems(batch, side), _separated(batch, side))
        return np.union1d(found, _after_end_of_text(batch, side))
    ends = np.flatnonzero(np.isin(side.ids.flat, np.fromiter(batch.ends, np.int64))) if batch.ends else NOWHERE
    return _inside(side, ends + 1, None)


def _begins_turns(batch: Batch) -> bool:
    """Whether the chat template writes the first token before each exchange, as Llama 2's does."""
    tokenizer = batch.tokenizer
    return (
        tokenizer is not None
        and tokenizer.template is not None
        and tokenizer.template.example.count(str(tokenizer.hf.bos_token)) > 1
    )


def _inside(side: Sequences, starts: Ints, bos: int | None) -> Ints:
    start, stop = side.bounds
    starts = starts[starts < len(side.ids.flat)]
    row = side.ids.row_of(starts)
    inside: Ints = starts[(starts > start[row]) & (starts < stop[row])]
    if bos is None or not len(inside):
        return inside
    first: Ints = inside[side.ids.flat[inside - 1] != bos]
    return first


def _ends_are_turns(batch: Batch) -> bool:
    if batch.purpose == "pretraining" and not any(row.turns for row in batch.roles):
        return False
    return batch.tokenizer is None or batch.tokenizer.template is not None or any(row.turns for row in batch.roles)


def _separated(batch: Batch, side: Sequences) -> Ints:
    if side.trained is None or not batch.ends or len(side.trained) < 3:
        return NOWHERE
    trained = side.trained
    alone = np.flatnonzero(~trained[1:-1] & trained[:-2] & trained[2:]) + 1
    # What follows has to be content: behind the last token padding may be trained on by mistake.
    alone = alone[alone + 1 < side.bounds[1][side.ids.row_of(alone)]]
    return _inside(side, alone[np.isin(side.ids.flat[alone - 1], np.fromiter(batch.ends, np.int64))], None)


def _after_end_of_text(batch: Batch, side: Sequences) -> Ints:
    """Return what follows the end token where it ends no turn: Phi-3's template writes it after the last one alone."""
    tokenizer = batch.tokenizer
    if tokenizer is None or tokenizer.eos is None or tokenizer.template is None:
        return NOWHERE
    end, example = str(tokenizer.hf.eos_token), tokenizer.template.example.rstrip()
    if example.removesuffix(end).count(end):
        return NOWHERE
    return _inside(side, np.flatnonzero(side.ids.flat == tokenizer.eos) + 1, None)


def _second_systems(batch: Batch, side: Sequences) -> Ints:
    found = [
        int(side.ids.offsets[row.index]) + turn.header
        for row in batch.roles
        if row.side is side
        for number, turn in enumerate(row.turns)
        if turn.role == "system" and number
    ]
    return np.array(found, np.int64)
