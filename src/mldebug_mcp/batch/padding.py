"""Which token pads the rows: as the tokenizer or the model's configuration says, else as the rows themselves show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.batch.ragged import Bools, Ints, Ragged

if TYPE_CHECKING:
    from mldebug_mcp.batch.build import Context

LEAST_RUN = 3
"""Equal tokens at the edge of a row that look like padding if nothing else tells. Chosen by hand: text sometimes
repeats a token twice, but not three times at the very end of several rows."""


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
        if len(tokens) == 1 and not bool(same.all()) and _unlabelled(edge[same], labels):
            return int(tokens[0])
    return None


def _unlabelled(edge: Ints, labels: Ragged | None) -> Bools | bool:
    """Padding is masked in the labels, or it is labelled with itself everywhere; text is labelled in some rows."""
    return labels is None or len(np.unique(labels.flat[edge])) == 1
