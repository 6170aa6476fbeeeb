"""Rows of pairs, and of completions with separate prompts, as the checks take them."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Purpose
from mldebug_mcp.batch.purpose import is_preference
from mldebug_mcp.batch.ragged import Ints, Ragged
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.table import Table


def split_preference_halves(sides: list[Sequences], table: Table, purpose: Purpose | None) -> list[Sequences]:
    """Return chosen and rejected rows if a batch holds one after the other, as TRL's preference collator makes it."""
    if len(sides) != 1 or sides[0].name or not is_preference(sides[0], table, purpose):
        return sides
    side, half = sides[0], sides[0].rows // 2
    return [_part(side, "chosen", np.arange(half)), _part(side, "rejected", np.arange(half, 2 * half))]


def _part(side: Sequences, name: str, rows: Ints) -> Sequences:
    def take(column: Ragged | None) -> Ragged | None:
        return None if column is None else column.take(rows)

    return Sequences(
        name, side.ids.take(rows), side.numbers[: len(rows)], take(side.labels), take(side.attention),
        take(side.positions), take(side.loss_mask), pad=side.pad, pad_may_end=side.pad_may_end,
    )  # fmt: skip


def with_prompt_apart(sides: list[Sequences]) -> list[Sequences]:
    """Return the sides; completions whose prompts stand in a column of their own are trained on as a whole."""
    by_name = {side.name: side for side in sides}
    if "prompt" not in by_name or len(sides) == 1:
        return sides
    return [side if side.name == "prompt" or side.trained is not None else _trained_whole(side) for side in sides]


def _trained_whole(side: Sequences) -> Sequences:
    mask = side.attention if side.attention is not None else Ragged(side.content.astype(np.int8), side.ids.offsets)
    return Sequences(
        side.name, side.ids, side.numbers, side.labels, side.attention, side.positions, mask,
        pad=side.pad, pad_may_end=side.pad_may_end,
    )  # fmt: skip
