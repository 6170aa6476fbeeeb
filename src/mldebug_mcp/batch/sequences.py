"""A set of token rows and what follows from it. A batch has one; a preference batch a chosen and a rejected one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mldebug_mcp.batch.ragged import Bools, Ints, Ragged, Runs, per_row, runs

IGNORE = -100
"""The label that the loss skips: the default `ignore_index` of PyTorch's cross-entropy, used by all of Transformers."""


@dataclass(frozen=True)
class Sequences:
    """Token rows with the columns that belong to them; all columns have the lengths of `ids`.

    Args:
        name: "" for the rows of a plain batch, else "chosen", "rejected" or "prompt".
        ids: The token ids.
        numbers: The number of each row in the file, from 0.
        labels, attention, positions, loss_mask: The columns, where the file has them.
        shifted_by_design: The labels came from a column whose name says that they are the next tokens.
        documents_masked: Something beside the columns keeps packed documents apart (sequence lengths, a block mask).
        pad: The padding token, if it is known or can be inferred.
        pad_may_end: The padding token may be content too, because it is also the end or the first token.
    """

    name: str
    ids: Ragged
    numbers: Ints
    labels: Ragged | None = None
    attention: Ragged | None = None
    positions: Ragged | None = None
    loss_mask: Ragged | None = None
    shifted_by_design: bool = False
    documents_masked: bool = False
    pad: int | None = None
    pad_may_end: bool = False

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.ids.rows

    @cached_property
    def attended(self) -> Bools | None:
        """Where the attention mask lets the model look, or None without a mask."""
        return None if self.attention is None else self.attention.flat != 0

    @cached_property
    def bounds(self) -> tuple[Ints, Ints]:
        """Where the content of each row begins and ends: flat positions, without the padding on either side."""
        start, stop = self.ids.offsets[:-1].copy(), self.ids.offsets[1:].copy()
        whole = int((stop - start).sum())
        if self.pad is not None:
            found = self.ids.runs(self.ids.flat == self.pad)
            start, stop = self._without_padding(start, stop, found) if len(found) else (start, stop)
        if int((stop - start).sum()) == whole and self.attended is not None and self._mask_covers_padding:
            start, stop = self._attended_bounds(start, stop)
        return start, stop

    @cached_property
    def _mask_covers_padding(self) -> bool:
        """Whether what the mask leaves out at the edges is one and the same token, as padding is."""
        assert self.attended is not None  # noqa: S101 - asked only where there is a mask
        outside = self.ids.flat[~self.attended]
        return bool(len(outside)) and bool(np.all(outside == outside[0])) and bool(self.attended.any())

    def _attended_bounds(self, start: Ints, stop: Ints) -> tuple[Ints, Ints]:
        assert self.attended is not None  # noqa: S101 - asked only where there is a mask
        seen = self.ids.runs(self.attended)
        first, last = stop.copy(), start.copy()
        np.minimum.at(first, seen.row, seen.start)
        np.maximum.at(last, seen.row, seen.stop)
        return np.minimum(first, np.maximum(first, stop)), np.maximum(last, np.minimum(first, last))

    def _without_padding(self, start: Ints, stop: Ints, found: Runs) -> tuple[Ints, Ints]:
        at_end = found.stop == stop[found.row]
        at_start = (found.start == start[found.row]) & ~at_end
        whole = (found.start == start[found.row]) & at_end
        edge, row = found.start[at_end], found.row[at_end]
        first_row, edge_start = found.row[at_start], found.stop[at_start]
        if self.pad_may_end:
            edge = self._real_end(edge, found.stop[at_end], row)
            edge_start = self._real_start(edge_start, found.start[at_start], first_row)
        stop[row], start[first_row] = edge, edge_start
        if bool(whole.any()) and not self.pad_may_end:
            start[found.row[whole]] = stop[found.row[whole]]
        return start, stop

    def _real_end(self, edge: Ints, limit: Ints, row: Ints) -> Ints:
        """Return where content ends if the padding token is the end token too: the mask says so, else one is real."""
        if self.attended is None:
            one: Ints = np.minimum(edge + 1, limit)
            return one
        last = self.ids.offsets[:-1].copy()
        seen = self.ids.runs(self.attended)
        np.maximum.at(last, seen.row, seen.stop)
        # An all-ones mask tells nothing of a run of padding: then one end token is taken as real.
        told = np.clip(last[row], edge, limit)
        return np.where((told == limit) & (limit - edge > 2), np.minimum(edge + 1, limit), told)

    def _real_start(self, edge: Ints, limit: Ints, row: Ints) -> Ints:
        if self.attended is None:
            return edge
        first = self.ids.offsets[1:].copy()
        seen = self.ids.runs(self.attended)
        np.minimum.at(first, seen.row, seen.start)
        told = np.clip(first[row], limit, edge)
        return np.where((told == limit) & (edge - limit > 2), edge, told)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each row, padding left out."""
        start, stop = self.bounds
        lengths: Ints = np.maximum(stop - start, 0)
        return lengths

    @cached_property
    def content(self) -> Bools:
        """True where a position is content, False where it is padding."""
        start, stop = self.bounds
        if not self.padded:
            return np.ones(len(self.ids.flat), np.bool_)
        filled = stop > start
        mark = np.zeros(len(self.ids.flat) + 1, np.int8)
        np.add.at(mark, start[filled], 1)
        np.add.at(mark, stop[filled], -1)
        return np.cumsum(mark[:-1], dtype=np.int8).astype(np.bool_)

    @property
    def padded(self) -> bool:
        """Whether any row has padding."""
        return int(self.lengths.sum()) < len(self.ids.flat)

    @cached_property
    def trained(self) -> Bools | None:
        """Where the loss is computed; None if neither labels nor a loss mask tell."""
        if self.labels is None and self.loss_mask is None:
            return None
        trained = np.ones(len(self.ids.flat), np.bool_) if self.labels is None else self.labels.flat != IGNORE
        return trained if self.loss_mask is None else trained & (self.loss_mask.flat != 0)

    @cached_property
    def trained_runs(self) -> Runs | None:
        """The stretches of positions on which the loss is computed."""
        return None if self.trained is None else runs(self.trained, self.ids.offsets)

    @cached_property
    def trained_per_row(self) -> Ints:
        """How many positions of each row are trained on; zeros if that is not known."""
        return np.zeros(self.rows, np.int64) if self.trained_runs is None else per_row(self.trained_runs, self.rows)

    def column(self, positions: Ints) -> Ints:
        """Return the place within its row of each flat position."""
        return positions - self.ids.offsets[self.ids.row_of(positions)]

    @cached_property
    def misattended(self) -> Ints:
        """Flat positions where the attention mask attends to padding or hides content."""
        return np.empty(0, np.int64) if self.attended is None else np.flatnonzero(self.attended != self.content)

    @cached_property
    def disagreeing(self) -> Ints:
        """Flat positions where a label is trained on and is not the token at its place."""
        if self.labels is None or self.trained is None:
            return np.empty(0, np.int64)
        return np.flatnonzero((self.labels.flat != self.ids.flat) & self.trained)

    @cached_property
    def packed(self) -> bool:
        """Whether rows hold several documents that position ids or a mask keep apart."""
        if self.documents_masked:
            return True
        if self.positions is None:
            return False
        again = np.flatnonzero(self.positions.flat == 0)
        start, stop = self.bounds
        row = self.ids.row_of(again)
        return bool(np.any((again > start[row]) & (again < stop[row])))
