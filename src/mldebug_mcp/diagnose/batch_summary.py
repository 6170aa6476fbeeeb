"""The numbers of a batch or data set, added up piece by piece in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from mldebug_mcp.batch import Batch, Sequences
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.batch.totals import Totals, arrays_of
from mldebug_mcp.models.batch import BatchFinding, BatchSummary, Lengths, Turns

MAX_VOCABULARY = 2**22
"""Ids below this are counted."""


class BatchCounts:
    """Counts over the pieces seen so far."""

    def __init__(self) -> None:
        self.rows = self.tokens = self.trained = self.positions = self.decoded = 0
        self.knows_trained = False
        self.totals = Totals()
        self._used = np.zeros(0, np.bool_)
        self._turns: Counter[str] = Counter()
        self._ended = self._end_trained = 0

    def add(self, batch: Batch) -> None:
        """Count a piece."""
        self.rows += batch.rows
        for side in batch.sides:
            self.tokens += int(side.lengths.sum())
            self.positions += len(side.ids.flat)
            self.knows_trained |= side.trained is not None
            self.trained += int(side.trained_per_row.sum())
            self.totals.add_lengths(side.name, side.lengths, side.numbers)
            self._use(side)
        if batch.classes is not None:
            self.totals.add_classes(batch.classes)
        for name, column in batch.cells.items():
            self.totals.add_cells(name, column, batch.numbers)
        self._count_turns(batch)

    def merge(self, later: BatchCounts) -> None:
        """Add the counts of pieces further on in the data."""
        self.rows += later.rows
        self.tokens += later.tokens
        self.trained += later.trained
        self.positions += later.positions
        self.decoded += later.decoded
        self.knows_trained |= later.knows_trained
        self.totals.merge(later.totals)
        self._turns.update(later._turns)
        self._ended += later._ended
        self._end_trained += later._end_trained
        self._room(len(later._used))
        self._used[: len(later._used)] |= later._used

    def _room(self, ids: int) -> None:
        if ids > len(self._used):
            self._used = np.concatenate([self._used, np.zeros(ids - len(self._used), np.bool_)])

    def _use(self, side: Sequences) -> None:
        flat = side.ids.flat
        if not len(flat):
            return
        low, high = int(flat.min()), int(flat.max())
        if low < 0 or high >= MAX_VOCABULARY:
            flat = flat[(flat >= 0) & (flat < MAX_VOCABULARY)]
            high = int(flat.max(initial=0))
        self._room(high + 1)
        self._used[flat] = True

    def _count_turns(self, batch: Batch) -> None:
        for row in batch.roles:
            self.decoded += int(row.side.ids.lengths[row.index])
            offset = int(row.side.ids.offsets[row.index])
            for turn in row.turns:
                self._turns[turn.role] += 1
                if turn.role != ASSISTANT or turn.end <= turn.stop:
                    continue
                self._ended += 1
                trained = row.side.trained
                self._end_trained += trained is not None and bool(trained[offset + turn.stop : offset + turn.end].any())

    def summary(self, batch: Batch, findings: Sequence[BatchFinding], *, sampled: bool) -> BatchSummary:
        """Return the counts, with the columns and settings of the first piece."""
        cut = next((finding.row_count for finding in findings if finding.check == "truncated_completion"), 0)
        turns = Turns(
            assistant_turns=self._turns[ASSISTANT],
            ended=self._ended,
            end_trained=self._end_trained,
            roles=dict(self._turns),
        )
        return BatchSummary(
            path=batch.path,
            formats=list(batch.formats),
            purpose=batch.purpose,
            purpose_inferred=not batch.purpose_given,
            columns=list(batch.columns),
            rows=self.rows,
            unit=batch.unit,
            tokens=self.tokens,
            trained_tokens=self.trained if self.knows_trained else None,
            padding_tokens=self.positions - self.tokens,
            trained_share=min(1.0, self.trained / self.tokens) if self.knows_trained and self.tokens else None,
            padding_share=(self.positions - self.tokens) / self.positions if self.positions else 0,
            truncated_rows=cut,
            lengths=self._length_summary(),
            turns=turns if self._turns else None,
            vocabulary_used=int(self._used.sum()) if self.positions and batch.words is None else None,
            vocabulary_size=batch.vocabulary,
            sampled=sampled,
        )

    def _length_summary(self) -> Lengths:
        lengths, counts = arrays_of(sum((side.counts for side in self.totals.lengths.values()), Counter()))
        if not len(lengths):
            return Lengths()
        return Lengths(
            least=int(lengths[0]),
            median=_quantile(lengths, counts, 0.5),
            mean=float((lengths * counts).sum() / counts.sum()),
            p95=_quantile(lengths, counts, 0.95),
            greatest=int(lengths[-1]),
            histogram=_histogram(lengths, counts),
        )


def _quantile(lengths: Ints, counts: Ints, share: float) -> float:
    return float(lengths[np.searchsorted(np.cumsum(counts), share * counts.sum())])


def _histogram(lengths: Ints, counts: Ints) -> dict[str, int]:
    """Return rows by powers of two of their length."""
    found: Counter[str] = Counter()
    for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
        low = 1 << (length.bit_length() - 1) if length else 0
        found[f"{low}-{max(2 * low - 1, 0)}" if low > 1 else str(low)] += count
    return dict(found)
