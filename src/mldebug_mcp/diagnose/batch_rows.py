"""Rows as the model sees them, in marked text: what is trained on, what is masked, what is padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mldebug_mcp.batch import Batch, Sequences
from mldebug_mcp.batch.words import Encoder
from mldebug_mcp.models.batch import BatchFinding, Place, RowView, TokenView
from mldebug_mcp.symptoms.batch.registry import Spot

SHOWN_ROWS = 4
HALF = 200
"""Tokens at each end of a row that are decoded to show; what lies between is left out."""
MAX_PLACE_TOKENS = 24


def row_views(batch: Batch, findings: Sequence[BatchFinding]) -> list[RowView]:
    """Return some rows, those with severe findings first."""
    wanted = [row for finding in findings for row in finding.rows[:2]]
    numbers = list(dict.fromkeys([*wanted, *batch.numbers[:SHOWN_ROWS].tolist()]))
    views = []
    for number in numbers:
        for side in batch.sides:
            places = (side.numbers == number).nonzero()[0]
            if len(places):
                views.append(view(batch, side, int(places[0])))
        if len(views) >= SHOWN_ROWS:
            break
    return views[: 2 * SHOWN_ROWS]


def view(batch: Batch, side: Sequences, index: int) -> RowView:
    """Return a row as the model sees it."""
    length = int(side.lengths[index])
    return RowView(
        row=int(side.numbers[index]),
        side=side.name,
        tokens=length,
        trained=None if side.trained is None else int(side.trained_per_row[index]),
        padding=int(side.ids.lengths[index]) - length,
        text=_marked(side, index, batch.texts),
        pieces=_token_views(batch, side, index),
    )


def _token_views(batch: Batch, side: Sequences, index: int) -> list[TokenView]:
    """Return the tokens of a row, each with its kind and role; the middle of a long row is left out."""
    offset, width = int(side.ids.offsets[index]), int(side.ids.lengths[index])
    roles = _roles(batch, side, index, width)
    special = batch.tokenizer.special_ids if batch.tokenizer is not None else frozenset()
    start, stop = (int(bound[index]) - offset for bound in side.bounds)
    views: list[TokenView] = []
    for place in (*range(min(width, HALF)), *range(max(HALF, width - HALF), width)):
        number = int(side.ids.flat[offset + place])
        text = batch.texts.pieces([number])[0] if batch.texts is not None else f"{number} "
        trained = side.trained is not None and bool(side.trained[offset + place])
        kind = "trained" if trained else "masked" if start <= place < stop else "padding"
        if number in special and kind != "padding":
            kind = f"special {kind}"
        views.append(TokenView(id=number, text=text, kind=cast("Any", kind), role=roles[place]))
    if width > 2 * HALF:
        views.insert(HALF, TokenView(id=-1, text=f" ‹{width - 2 * HALF} tokens left out› ", kind="left out"))
    return views


def _roles(batch: Batch, side: Sequences, index: int, width: int) -> list[str]:
    """Return the role to which each token of a row belongs, markers included; empty where none is known."""
    roles = [""] * width
    for row in batch.roles:
        if row.side is side and row.index == index:
            for turn in row.turns:
                roles[turn.header : turn.end] = [turn.role] * (turn.end - turn.header)
    return roles


def _marked(side: Sequences, index: int, texts: Encoder | None) -> str:
    """Return a row as text: ⟦trained⟧, plain text masked, ‹pad×N› padding; ids where no texts are known."""
    first, last = int(side.ids.offsets[index]), int(side.ids.offsets[index + 1])
    start, stop = (int(bound[index]) for bound in side.bounds)
    stop = max(start, stop)
    pieces = [_padding(start - first)]
    if stop - start > 2 * HALF:
        pieces += [_span(side, start, start + HALF, texts), f" ‹{stop - start - 2 * HALF} tokens left out› "]
        pieces.append(_span(side, stop - HALF, stop, texts))
    else:
        pieces.append(_span(side, start, stop, texts))
    pieces.append(_padding(last - stop))
    return "".join(pieces)


def _padding(count: int) -> str:
    return f"‹pad×{count}›" if count else ""


def _span(side: Sequences, start: int, stop: int, texts: Encoder | None) -> str:
    ids = side.ids.flat[start:stop].tolist()
    pieces = texts.pieces(ids) if texts is not None else [f"{number} " for number in ids]
    trained = None if side.trained is None else side.trained[start:stop].tolist()
    if trained is None:
        return "".join(pieces)
    text, inside = [], False
    for piece, use in zip(pieces, trained, strict=True):
        if use != inside:
            text.append("⟦" if use else "⟧")
            inside = use
        text.append(piece)
    return "".join(text) + ("⟧" if inside else "")


def spot_place(spot: Spot, texts: Encoder | None = None) -> Place:
    """Return a spot as answers carry it."""
    side = spot.side
    first = int(side.ids.offsets[spot.index])
    stop = min(spot.stop, spot.start + MAX_PLACE_TOKENS, int(side.ids.lengths[spot.index]))
    ids = side.ids.flat[first + spot.start : first + stop].tolist()
    text = "".join(texts.pieces(ids)) if texts is not None else " ".join(map(str, ids))
    return Place(row=int(side.numbers[spot.index]), side=side.name, start=spot.start, stop=spot.stop, text=text)
