"""Rows as the model sees them, in marked text: what is trained on, what is masked, what is padding."""

from __future__ import annotations

from collections.abc import Sequence

from mldebug_mcp.batch import Batch, Sequences
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.models.batch import BatchFinding, Place, RowView
from mldebug_mcp.symptoms.batch_registry import Spot

SHOWN_ROWS = 4
MAX_TOKENS = 400
"""Tokens of a row that are decoded to show; the middle of a longer one is left out."""
MAX_PLACE_TOKENS = 24


def row_views(batch: Batch, findings: Sequence[BatchFinding], shown: int = SHOWN_ROWS) -> list[RowView]:
    """Return some rows, those with grave findings first."""
    wanted = [row for finding in findings for row in finding.rows[:2]]
    numbers = list(dict.fromkeys([*wanted, *range(shown)]))
    views = []
    for number in numbers:
        for side in batch.sides:
            places = (side.numbers == number).nonzero()[0]
            if len(places):
                views.append(_view(batch, side, int(places[0])))
        if len(views) >= shown:
            break
    return views[: 2 * shown]


def _view(batch: Batch, side: Sequences, index: int) -> RowView:
    length = int(side.lengths[index])
    return RowView(
        row=int(side.numbers[index]),
        side=side.name,
        tokens=length,
        trained=None if side.trained is None else int(side.trained_per_row[index]),
        padding=int(side.ids.lengths[index]) - length,
        text=marked(side, index, batch.tokenizer),
    )


def marked(side: Sequences, index: int, tokenizer: Tokenizer | None, limit: int = MAX_TOKENS) -> str:
    """Return a row as text: ⟦trained⟧, plain text masked, ‹pad×N› padding; ids where there is no tokenizer."""
    first, last = int(side.ids.offsets[index]), int(side.ids.offsets[index + 1])
    start, stop = (int(bound[index]) for bound in side.bounds)
    stop = max(start, stop)
    pieces = [_padding(start - first)]
    half = limit // 2
    if stop - start > limit:
        pieces += [_span(side, start, start + half, tokenizer), f" ‹{stop - start - 2 * half} tokens left out› "]
        pieces.append(_span(side, stop - half, stop, tokenizer))
    else:
        pieces.append(_span(side, start, stop, tokenizer))
    pieces.append(_padding(last - stop))
    return "".join(pieces)


def _padding(count: int) -> str:
    return f"‹pad×{count}›" if count else ""


def _span(side: Sequences, start: int, stop: int, tokenizer: Tokenizer | None) -> str:
    ids = side.ids.flat[start:stop].tolist()
    pieces = tokenizer.pieces(ids) if tokenizer is not None else [f"{number} " for number in ids]
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


def spot_place(spot: Spot, tokenizer: Tokenizer | None = None) -> Place:
    """Return a spot as answers carry it."""
    side = spot.side
    first = int(side.ids.offsets[spot.index])
    stop = min(spot.stop, spot.start + MAX_PLACE_TOKENS, int(side.ids.lengths[spot.index]))
    ids = side.ids.flat[first + spot.start : first + stop].tolist()
    text = "".join(tokenizer.pieces(ids)) if tokenizer is not None else " ".join(map(str, ids))
    return Place(row=int(side.numbers[spot.index]), side=side.name, start=spot.start, stop=spot.stop, text=text)
