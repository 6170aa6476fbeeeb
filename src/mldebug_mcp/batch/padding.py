"""Which token pads the rows: as the tokenizer or the model's configuration says, else as the rows themselves show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.batch.ragged import Ints, Ragged
from mldebug_mcp.batch.sequences import IGNORE

if TYPE_CHECKING:
    from mldebug_mcp.batch.context import Context

LEAST_RUN = 3
"""Equal tokens at the edge of a row that look like padding if nothing else tells. Chosen by hand: text sometimes
repeats a token twice, but not three times at the very end of several rows."""
LEAST_ROWS = 2
"""Rows that have to end so where no label tells and the token stands inside rows too."""


def padding_token(
    ids: Ragged, attention: Ragged | None, labels: Ragged | None, context: Context
) -> tuple[int | None, bool]:
    """Return the padding token, and whether the same token may also be the real end or beginning of a text."""
    tokenizer, model = context.tokenizer, context.model
    told = tokenizer.pad if tokenizer is not None else None
    pad = told if told is not None else model.pad
    if pad is None or not bool(np.any(ids.flat == pad)):
        inferred = _inferred(ids, attention, labels)
        pad = pad if inferred is None else inferred
    if pad is None:
        return None, False
    ends = (tokenizer.ends | {tokenizer.bos}) if tokenizer is not None else {*model.eos, model.bos}
    unknown = tokenizer is None and not model.eos and attention is not None
    content = unknown and bool(np.any((attention.flat != 0) & (ids.flat == pad)))  # type: ignore[union-attr]
    return pad, pad in ends or content


def _inferred(ids: Ragged, attention: Ragged | None, labels: Ragged | None) -> int | None:
    if not len(ids.flat):
        return None
    if attention is not None:
        seen = attention.flat != 0
        for part in (ids.flat[~seen], ids.flat[seen]):  # the second is for a mask that is the wrong way round
            if len(part) and bool(np.all(part == part[0])) and len(part) < len(ids.flat):
                return int(part[0])
        if bool((~seen).any()):
            return None
    return _from_edges(ids, labels)


def _from_edges(ids: Ragged, labels: Ragged | None) -> int | None:
    """Return the token that fills the ends, or else the beginnings, of some rows but not of all."""
    full = np.flatnonzero(ids.lengths >= LEAST_RUN)
    if len(full) < 2 or bool(np.any(ids.lengths != ids.lengths[0])):
        return None
    for at_end in (True, False):
        edge = (ids.offsets[1:] - 1 if at_end else ids.offsets[:-1])[full]
        step = -1 if at_end else 1
        same = np.logical_and.reduce([ids.flat[edge] == ids.flat[edge + step * away] for away in range(1, LEAST_RUN)])
        tokens = np.unique(ids.flat[edge[same]])
        if len(tokens) != 1 or bool(same.all()) or tokens[0] < 0:
            continue
        token = int(tokens[0])
        if _is_masked(edge[same], labels) or _only_at_edge(ids, token, at_end=at_end):
            return token
        if labels is None and int(same.sum()) >= LEAST_ROWS:
            return token
    return None


def _is_masked(edge: Ints, labels: Ragged | None) -> bool:
    """Whether no label there is trained on."""
    return labels is not None and bool(np.all(labels.flat[edge] == IGNORE))


def _only_at_edge(ids: Ragged, token: int, *, at_end: bool) -> bool:
    """Whether a token stands nowhere but in one run at that edge of its rows: text repeats what it also uses inside."""
    starts, stops = ids.offsets[:-1], ids.offsets[1:]
    places = np.flatnonzero(ids.flat == token)
    rows = ids.row_of(places)
    found = np.bincount(rows, minlength=ids.rows)
    # Of n in a row, all lie at its end if the first is n from the end.
    order = np.searchsorted(rows, np.arange(ids.rows), side="left")
    some = np.flatnonzero(found)
    first, last = places[order[some]], places[order[some] + found[some] - 1]
    at_edge = stops[some] - first == found[some] if at_end else last - starts[some] + 1 == found[some]
    return bool(np.all(at_edge))
