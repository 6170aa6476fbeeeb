"""The pretrainer's answer: what a tokenized corpus holds."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch import Batch
from mldebug_mcp.batch.batch import Overlap
from mldebug_mcp.batch.corpus import CorpusCounts, IdCounts
from mldebug_mcp.checks.batch.corpus import MIN_PASSAGES, is_by_source, order_by_length
from mldebug_mcp.models.batch import BoundaryToken, Corpus, CorpusShard

SHOWN_BOUNDARIES = 3
MAX_SHARDS = 100
BANDS = 64


def corpus_view(batch: Batch, corpus: CorpusCounts, overlap: Overlap) -> Corpus:
    """Return what a corpus holds.

    Args:
        batch: Its first piece, for tokenizer and configuration.
        corpus: The counts of all of it.
        overlap: What its rows share.
    """
    size, stream = batch.vocabulary, corpus.is_stream
    limit = size or len(corpus.counts.counts)
    lost, padding = (0.0, 0.0) if stream else corpus.lost_if_cut()
    copies = dict(corpus.copies())
    return Corpus(
        rows_are="windows" if stream else "documents",
        documents=_documents(batch, corpus),
        tokens=corpus.tokens,
        stored=corpus.stored,
        last=[] if stream else _boundaries(batch, corpus.last),
        first=[] if stream else _boundaries(batch, corpus.first),
        expected_ends=[_boundary(batch, end, _ended(corpus, end)) for end in sorted(batch.ends)],
        ids_never_used=None if size is None else size - int(np.count_nonzero(corpus.counts.counts[:size])),
        ids_outside=corpus.negative + (corpus.huge if size is None else corpus.occurs_from(size)),
        id_bands=_bands(corpus, limit),
        id_limit=limit,
        window=corpus.window,
        crossing_documents=0 if stream else corpus.crossed,
        lost_if_truncated=lost,
        padding_if_alone=padding,
        left_over_tokens=corpus.tokens % corpus.window,
        cut_documents=corpus.cut_documents,
        length_order=order_by_length(corpus),
        source_order=is_by_source(corpus),
        repeated_share=overlap.repeated / overlap.passages if overlap.passages >= MIN_PASSAGES else None,
        shards=[
            CorpusShard(name=name, documents=shard.documents, tokens=shard.tokens, copy_of=copies.get(name, ""))
            for name, shard in list(corpus.shards.items())[:MAX_SHARDS]
        ],
        shard_count=len(corpus.shards),
    )


def _documents(batch: Batch, corpus: CorpusCounts) -> int | None:
    """Return how many documents there are, by the end tokens in a stream; None if nothing tells."""
    if not corpus.is_stream:
        return corpus.documents
    return sum(corpus.occurs(end) for end in batch.ends) or None


def _ended(corpus: CorpusCounts, end: int) -> int:
    return corpus.occurs(end) if corpus.is_stream else corpus.last[end]


def _boundaries(batch: Batch, counts: IdCounts) -> list[BoundaryToken]:
    return [_boundary(batch, number, count) for number, count in counts.most_common(SHOWN_BOUNDARIES)]


def _boundary(batch: Batch, number: int, count: int) -> BoundaryToken:
    text = batch.texts.pieces([number])[0] if batch.texts is not None and number >= 0 else ""
    return BoundaryToken(id=number, text=text, documents=count)


def _bands(corpus: CorpusCounts, limit: int) -> list[int]:
    """Return the tokens in each of `BANDS` equal bands of ids below `limit`."""
    if limit < BANDS:
        return []
    edges = np.linspace(0, limit, BANDS + 1).astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(corpus.counts.counts)])
    places = sums[np.minimum(edges, len(corpus.counts.counts))]
    return [int(count) for count in np.diff(places)]


def overlap_notes(overlap: Overlap) -> list[str]:
    """Return what a comparison with another corpus could not look for."""
    if not overlap.against:
        return []
    notes = [
        "documents that say the same in other words, or were tokenized by another tokenizer, cannot be found by their "
        "tokens"
    ]
    if overlap.against_passages < MIN_PASSAGES:
        notes.append(
            f"passages of 32 tokens could hardly be compared: the other set holds {overlap.against_passages} of them "
            "that were looked at, as its documents are short or few"
        )
    return notes
