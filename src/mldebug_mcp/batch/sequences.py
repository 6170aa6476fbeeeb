"""Sets of token rows of different length as flat arrays, and whether their columns agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from mldebug_mcp.core.conventions import IGNORED_LABEL

# Rows of different length as one flat array: all checks work on this, at the speed of numpy.


Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.generic]
HUGE = 2**62
"""What integers beyond 64 bits are read as: outside any vocabulary, as they are."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Stretches of positions of a flat array, none across a row's end: `start[i]` up to `stop[i]`, in `row[i]`."""

    start: Ints
    stop: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.start)

    def kept(self, which: Bools) -> Runs:
        """Return some of them."""
        return Runs(self.start[which], self.stop[which], self.row[which])


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of integers of any type, one after the other: row i is `flat[offsets[i]:offsets[i + 1]]`."""

    flat: npt.NDArray[np.integer]
    offsets: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """Make it from lists. Raises TypeError or ValueError if a row holds anything but whole numbers."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return cls(whole_numbers(list(chain.from_iterable(rows))), offsets_of(lengths))

    @classmethod
    def rectangle(cls, array: npt.NDArray[np.integer]) -> Ragged:
        """Make it from an array of rows of equal length."""
        rows, width = array.shape
        return cls(np.ascontiguousarray(array).reshape(-1), np.arange(rows + 1, dtype=np.int64) * width)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """The length of each row."""
        return np.diff(self.offsets)

    def row(self, index: int) -> npt.NDArray[np.integer]:
        """Return one row."""
        return self.flat[self.offsets[index] : self.offsets[index + 1]]

    def take(self, rows: Ints) -> Ragged:
        """Return the given rows."""
        parts = [self.row(int(row)) for row in rows]
        flat = np.concatenate(parts) if parts else self.flat[:0]
        return Ragged(flat, offsets_of(self.lengths[rows]))

    def up_to(self, lengths: Ints) -> Ragged:
        """Return the rows, each cut at its length."""
        kept = np.clip(lengths, 0, self.lengths)
        place = np.arange(len(self.flat)) - np.repeat(self.offsets[:-1], self.lengths)
        return Ragged(self.flat[place < np.repeat(kept, self.lengths)], offsets_of(kept))

    def row_of(self, positions: Ints) -> Ints:
        """Return the row in which each flat position lies."""
        return np.searchsorted(self.offsets, positions, side="right") - 1

    def runs(self, where: Bools) -> Runs:
        """Return the stretches of positions for which `where` holds, in order."""
        return runs(where, self.offsets)


def offsets_of(lengths: Ints) -> Ints:
    """Return where rows of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _everywhere(length: int) -> Bools:
    """Return so many times True, which take no memory and cannot be changed."""
    return np.broadcast_to(np.True_, length)


def runs(where: Bools, offsets: Ints) -> Runs:
    """Return the stretches of positions for which `where` holds, cut at the row ends given by `offsets`."""
    if not len(where):
        nothing = np.empty(0, np.int64)
        return Runs(nothing, nothing, nothing)
    change = np.flatnonzero(where[1:] != where[:-1]) + 1
    edges = np.concatenate([[0] if where[0] else [], change, [len(where)] if where[-1] else []]).astype(np.int64)
    inner = offsets[1:-1]
    inner = np.unique(inner[(inner > 0) & (inner < len(where))])
    inner = inner[where[inner] & where[inner - 1]]
    start, stop = np.sort(np.concatenate([edges[::2], inner])), np.sort(np.concatenate([edges[1::2], inner]))
    return Runs(start, stop, np.searchsorted(offsets, start, side="right") - 1)


def per_row(found: Runs, rows: int) -> Ints:
    """Return how many positions the runs cover in each row."""
    return np.bincount(found.row, weights=found.stop - found.start, minlength=rows).astype(np.int64)


def count_rows(positions: Ints, rows: Ragged) -> Ints:
    """Return how many of the flat positions lie in each row."""
    return np.bincount(rows.row_of(positions), minlength=rows.rows).astype(np.int64)


def count_into(counts: Counter[int], values: Ints) -> None:
    """Count whole numbers."""
    kinds, found = np.unique(values, return_counts=True)
    counts.update(dict(zip(kinds.tolist(), found.tolist(), strict=True)))


def whole_numbers(values: list[object]) -> npt.NDArray[np.integer]:
    """Return an integer array. Raises TypeError or ValueError if a value is not a whole number."""
    if not values:
        return np.empty(0, np.int64)
    if any(isinstance(value, (str, bytes, list, dict, tuple)) or value is None for value in values):
        raise TypeError("holds something that is not a number")
    array = np.asarray(values)
    if array.dtype == object or array.dtype.kind == "u":
        try:
            return np.array([int(np.clip(float(value), -HUGE, HUGE)) for value in values], np.int64)  # type: ignore[arg-type]
        except OverflowError:
            raise ValueError("holds numbers beyond all token ids") from None
    return as_integers(array)


def as_integers(array: Array) -> npt.NDArray[np.integer]:
    """Return an array as integers. Raises ValueError if that would change a value."""
    if array.dtype.kind in "iu":
        return array  # type: ignore[return-value]
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "f" and bool(np.all(np.isfinite(array.astype(np.float64)))):
        whole = np.clip(array.astype(np.float64), -HUGE, HUGE).astype(np.int64)
        if bool(np.all(whole == array)):
            return whole
        raise ValueError("holds fractions where token ids or labels are due")
    raise ValueError(f"holds values of type {array.dtype}, not whole numbers")


# A set of token rows and what follows from it. A batch has one; a preference batch a chosen and a rejected one.


@dataclass(frozen=True)
class Sequences:
    """Token rows with the columns that belong to them; all columns have the lengths of `ids`.

    Args:
        name: "" for the rows of a plain batch, else "chosen", "rejected" or "prompt".
        ids: The token ids.
        numbers: The number of each row in the file, from 0.
        labels, attention, positions, loss_mask: The columns, where the file has them.
        shifted_by_design: The labels came from a column whose name says that they are the next tokens.
        documents_masked: Something besides the columns keeps packed documents apart (sequence lengths, a block mask).
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
            start, stop = self._attended_bounds
        return start, stop

    @cached_property
    def _mask_covers_padding(self) -> bool:
        """Whether what the mask leaves out at the edges is the same token, as padding is."""
        assert self.attended is not None  # noqa: S101 - asked only where there is a mask
        outside = self.ids.flat[~self.attended]
        return bool(len(outside)) and bool(np.all(outside == outside[0])) and bool(self.attended.any())

    @cached_property
    def _attended_bounds(self) -> tuple[Ints, Ints]:
        """Where the attended tokens of each row begin and end; of a row without any, its end and its beginning."""
        assert self.attended is not None  # noqa: S101 - asked only where there is a mask
        stretches = self.ids.runs(self.attended)
        first, last = self.ids.offsets[1:].copy(), self.ids.offsets[:-1].copy()
        np.minimum.at(first, stretches.row, stretches.start)
        np.maximum.at(last, stretches.row, stretches.stop)
        return first, last

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
            array: Ints = np.minimum(edge + 1, limit)
            return array
        # An all-ones mask tells nothing of a run of padding: then one end token is taken as real.
        end = np.clip(self._attended_bounds[1][row], edge, limit)
        return np.where((end == limit) & (limit - edge > 2), np.minimum(edge + 1, limit), end)

    def _real_start(self, edge: Ints, limit: Ints, row: Ints) -> Ints:
        if self.attended is None:
            # Unless some row begins with a run of it, a row begins there with an end, as cuts of a stream do.
            return edge if bool(np.any(edge - limit > 2)) else limit
        start = np.clip(self._attended_bounds[0][row], limit, edge)
        return np.where((start == limit) & (edge - limit > 2), edge, start)

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
            return _everywhere(len(self.ids.flat))
        filled = stop > start
        mark = np.zeros(len(self.ids.flat) + 1, np.int8)
        np.add.at(mark, start[filled], 1)
        np.add.at(mark, stop[filled], -1)
        return np.cumsum(mark[:-1], dtype=np.int8).astype(np.bool_)

    @property
    def padded(self) -> bool:
        """Whether any row has padding."""
        return int(self.lengths.sum()) < len(self.ids.flat)

    @property
    def labelled_by_itself(self) -> bool:
        """Whether the labels are the ids themselves, as the readers of corpora give them: then none differs."""
        return self.labels is not None and self.labels.flat is self.ids.flat and self.loss_mask is None

    @property
    def is_trained(self) -> bool:
        """Whether labels or a loss mask say where the loss is computed."""
        return self.labels is not None or self.loss_mask is not None

    @cached_property
    def trained(self) -> Bools | None:
        """Where the loss is computed; None if neither labels nor a loss mask tell."""
        if not self.is_trained:
            return None
        if self.labels is None or (self.labelled_by_itself and self.ids.flat.dtype.kind == "u"):
            trained = _everywhere(len(self.ids.flat))
        else:
            trained = self.labels.flat != IGNORED_LABEL
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
        if self.labels is None or self.trained is None or self.labelled_by_itself:
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


# Whether columns agree with the tokens: labels with the ids, masks with the padding.


NEARLY_ALL = 0.95
"""Share of labels that must be the neighbouring token to call them shifted. Chosen by hand: chance gives a few in a
hundred, a real shift all but the ends of rows."""
SHIFTS = (1, -1, 2, -2)
"""Shifts that are looked for: the right one of a loss that does not shift, the other way, and both twice."""
LEAST_LABELS = 4
"""Trained labels without which no shift is looked for. Chosen: fewer agree by chance."""
PERMUTATION = "perm_mask"
"""The column by which a batch for XLNet is recognised."""
MIN_MASK_TOKEN_SHARE = 0.5
"""Share of the mask token among inputs that differ from their labels, from which on it hides words."""
LEAST_HIDDEN = 8
"""Labels that differ from their inputs, to tell without a tokenizer that one token hides them."""


def shift_of(side: Sequences, *, of_some: bool = False) -> int:
    """Return by how many places labels are ahead of their tokens: 1 for the next ones; 0 for none of `SHIFTS`.

    With `of_some`, rows whose labels are all tokens of their own places are left out: one source may be shifted alone.
    """
    if side.labels is None or side.trained is None:
        return 0
    places = np.flatnonzero(side.trained)
    if of_some:
        places = places[np.isin(side.ids.row_of(places), side.ids.row_of(side.disagreeing))]
    if len(places) < LEAST_LABELS or len(side.disagreeing) < 0.5 * len(places):
        return 0
    return next((shift for shift in SHIFTS if _share(side, places, shift) >= NEARLY_ALL), 0)


def shifted_rows(side: Sequences) -> Bools:
    """Return the rows that train on labels of other places, where those of any row are `shift_of` places ahead."""
    found: Bools = side.trained_per_row > 0
    if len(side.disagreeing):
        found &= np.bincount(side.ids.row_of(side.disagreeing), minlength=side.rows) > 0
    return found


def _share(side: Sequences, places: Ints, shift: int) -> float:
    assert side.labels is not None  # noqa: S101 - the caller saw them
    row = side.ids.row_of(places)
    inside = (places + shift >= side.ids.offsets[row]) & (places + shift < side.ids.offsets[row + 1])
    places = places[inside]
    return float(np.mean(side.labels.flat[places] == side.ids.flat[places + shift])) if len(places) else 0.0


def hides_words(side: Sequences, mask: int | None, columns: Iterable[str]) -> bool:
    """Return whether words are hidden at random and trained on there, as for a masked or permuted language model."""
    if PERMUTATION in columns:
        return True
    ids = side.ids.flat[side.disagreeing]
    if not len(ids):
        return False
    if mask is not None:
        return float(np.mean(ids == mask)) > MIN_MASK_TOKEN_SHARE
    common = int(np.bincount(np.clip(ids, 0, 2**20)).max())
    return len(ids) >= LEAST_HIDDEN and common > 0.6 * len(ids)


def inverted_rows(side: Sequences) -> Ints:
    """Return the rows whose mask is 1 on the padding and 0 on the text; none unless all such rows agree."""
    if side.attended is None or not len(side.ids.flat):
        return np.empty(0, np.int64)
    if not len(side.misattended):
        return np.empty(0, np.int64)
    agreeing = side.ids.lengths - count_rows(side.misattended, side.ids)
    inverted: Bools = (side.lengths > 0) & (agreeing <= 0.1 * side.ids.lengths)
    padded = side.lengths < side.ids.lengths
    judged = side.lengths > 0
    if bool(inverted[judged].all()) or (bool((inverted & padded).any()) and bool(inverted[padded & judged].all())):
        return np.flatnonzero(inverted)
    return np.empty(0, np.int64)
