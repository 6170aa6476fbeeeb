"""Rows that are the same, or nearly so, within a data set and across two, in one pass and in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.batch import Batch, Overlap
from mldebug_mcp.batch.columns import FLOAT_INPUTS, bits_to_tell_apart
from mldebug_mcp.batch.sequences import Bools, Floats, Ints, Sequences
from mldebug_mcp.core.limits import checkpoint

# A key for each row: rows with the same key are the same in everything that the model sees.


SPARE_BITS = 4
"""Bits beyond those of the rows squared that values must have for a repeat to be no chance. Chosen by hand."""

MAX_INPUT_COLUMNS = 256
"""Columns of an input, spread evenly, that are looked at for how many values they have."""


def row_keys(batch: Batch) -> tuple[Ints, Ints]:
    """Return the numbers and the keys of the rows that have content. Keys are 64-bit hashes, good for this process."""
    inputs = [
        np.ascontiguousarray(array)
        for name, array in batch.floats.items()
        if len(array) == batch.rows and not any(word in name for word in ("logp", "reward", "advantage", "score"))
    ]
    sides = [_side_keys(side) for side in batch.sides]
    if sides and any(name in FLOAT_INPUTS and len(array) != batch.rows for name, array in batch.floats.items()):
        # Images cut into patches: whose they are is not known, and the same question about another image is no repeat.
        return _as_arrays({})
    if len(sides) == 1 and not inputs and batch.rest is None:
        return _as_arrays(sides[0])
    if not sides and _repeat_by_chance(inputs, batch):
        return _as_arrays({})
    rest = () if batch.rest is None else (batch.rest.keys,)
    known = set(batch.numbers.tolist()).intersection(*sides) if sides or inputs or rest else set()
    keys = {
        number: hash((*(side[number] for side in sides), *(array[place].tobytes() for array in (*inputs, *rest))))
        for place, number in enumerate(batch.numbers.tolist())
        if number in known
    }
    return _as_arrays(keys)


def _repeat_by_chance(inputs: Sequence[Floats], batch: Batch) -> bool:
    """Tell whether so few values are possible that some rows are the same by chance: one-hot inputs, cells of a grid.

    Of n rows two are the same by chance if fewer than about n squared are possible; a column in which one value is
    common tells fewer apart than it has values.
    """
    wanted = 2 * math.log2(max(2, batch.rows)) + SPARE_BITS
    bits = 0.0 if batch.rest is None else batch.rest.bits
    for array in inputs:
        columns = array.reshape(len(array), -1).T
        for column in columns[:: max(1, len(columns) // MAX_INPUT_COLUMNS)]:
            if bits >= wanted:
                return False
            bits += bits_to_tell_apart(np.unique(column, return_counts=True)[1])
    return bits < wanted


def _side_keys(side: Sequences) -> dict[int, int]:
    start, stop = (bound.tolist() for bound in side.bounds)
    # Files differ in the width of their integers; the same tokens must give the same key.
    flat = side.ids.flat.astype(np.int32, copy=False)
    return {
        number: hash(flat[start[place] : stop[place]].tobytes())
        for place, number in enumerate(side.numbers.tolist())
        if stop[place] > start[place]
    }


def _as_arrays(keys: dict[int, int]) -> tuple[Ints, Ints]:
    return np.fromiter(keys.keys(), np.int64, len(keys)), np.fromiter(keys.values(), np.int64, len(keys))


# Rows that are the same, or nearly so, within a data set and across two: in one pass, and in bounded memory.
#
# Exact repeats are found by a 64-bit key of each row. For near ones a row is known by its anchors: hashes of six tokens
# at the places where a hash of two tokens is a multiple of eight, so the same text gives the same anchors wherever it
# is. Two rows are near when they share four fifths of their anchors. Both lists are thinned evenly by hash when they
# grow too long, which keeps the shares and only makes the search coarser.


MAX_ROW_KEYS = 16_000_000
MAX_ANCHORS = 4_000_000
MANY_PIECES = 1000
"""Pieces whose lists are kept apart: with more of them, counting at each piece would take longer than joining them."""
ANCHOR_BITS = 3
"""An anchor is where the hash of two tokens begins with this many zero bits: one place in eight."""
MARKED_AT_ONCE = 2**18
"""Tokens whose marks are computed together. Chosen by trial: so many stay in the processor's cache."""
WIDTH = 6
LEAST_ANCHORS = 4
MIN_ROW_SIMILARITY = 0.8
_FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1, 0xD3A2646D], np.uint64)

Hashes = npt.NDArray[np.uint64]


# Passages: stretches of tokens that begin at an anchor, thinned by its hash, so that the same text gives the same ones.


PASSAGE = 32
"""Tokens of a passage, some 25 words: twice the 13 words by which GPT-3's paper looks for contamination (appendix C of
https://arxiv.org/abs/2005.14165), as chance hardly repeats as many."""
MAX_PASSAGES = 4_000_000
ANCHOR_PART = np.uint64(0xFFFF_0000_0000_0000)
"""The bits of a passage's hash that are those of its anchor, by which passages are thinned."""


class Passages:
    """Hashes of the passages seen so far, each with the number of its row."""

    def __init__(self) -> None:
        self.hashes: list[Hashes] = []
        self.owners: list[Ints] = []
        self.level = 0

    def add(self, side: Sequences, anchors: Hashes, places: Ints) -> None:
        """Take the passages of a side that begin at these anchors; runs of the same token are none."""
        flat, (_, stop) = side.ids.flat, side.bounds
        if self.level:
            thin = anchors >> np.uint64(64 - self.level) == 0
            anchors, places = anchors[thin], places[thin]
        row = side.ids.row_of(places)
        inside = (places + PASSAGE <= stop[row]) & (flat[places] != flat[np.minimum(places + 1, len(flat) - 1)])
        anchors, places, row = anchors[inside], places[inside], row[inside]
        value = anchors.copy()
        for step in range(WIDTH, PASSAGE):
            value = (value ^ flat[places + step].astype(np.uint64)) * _FACTORS[step % len(_FACTORS)]
            value ^= value >> np.uint64(29)
        value *= np.uint64(0x9E3779B97F4A7C15)
        self.hashes.append((anchors & ANCHOR_PART) | (value & ~ANCHOR_PART))
        self.owners.append(side.numbers[row])
        self._thin()

    def merge(self, later: Passages) -> None:
        """Take the passages that were seen further on in the file."""
        self.hashes += later.hashes
        self.owners += later.owners
        self._thin(max(self.level, later.level))

    def _thin(self, level: int = 0) -> None:
        while self.level < level or (sum(map(len, self.hashes)) > MAX_PASSAGES and self.level < 16):
            self.level += 1
            kept = [hashes >> np.uint64(64 - self.level) == 0 for hashes in self.hashes]
            self.hashes = [hashes[use] for hashes, use in zip(self.hashes, kept, strict=True)]
            self.owners = [owners[use] for owners, use in zip(self.owners, kept, strict=True)]
        if len(self.hashes) > MANY_PIECES:
            self.hashes, self.owners = [_hashes(self.hashes)], [_joined(self.owners)]

    def repeated(self, besides: Ints) -> tuple[int, int, Ints]:
        """Return how many passages there are, how many repeat an earlier one, and an example of two rows.

        The numbers of rows that were found to be copies are given as `besides`, and left out.
        """
        hashes, owners = _hashes(self.hashes), _joined(self.owners)
        if len(besides):
            kept = ~np.isin(owners, besides)
            hashes, owners = hashes[kept], owners[kept]
        pairs = _first_of_same(owners, hashes.view(np.int64))
        return len(hashes), len(pairs), pairs[:1]

    def shared(self, other: Passages) -> tuple[int, int]:
        """Return how many passages the other set has, of those that both could keep, and how many of them are here."""
        here, there = _hashes(self.hashes), _hashes(other.hashes)
        if self.level > other.level:
            there = there[there >> np.uint64(64 - self.level) == 0]
        if not len(here):
            return len(there), 0
        here = np.sort(here)  # much faster than numpy's own search for members, which makes a table of their hashes
        there = np.sort(there)
        place = np.minimum(np.searchsorted(here, there), len(here) - 1)
        return len(there), int((here[place] == there).sum())


class Fingerprints:
    """Keys and anchors of the rows seen so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._numbers: list[Ints] = []
        self._keys: list[Ints] = []
        self._anchors: list[Hashes] = []
        self._owners: list[Ints] = []
        self._thin_keys = self._thin_anchors = 0
        self.passages = Passages()

    def add(self, batch: Batch) -> None:
        """Take the rows of a piece."""
        self.rows += batch.rows
        numbers, keys = row_keys(batch)
        kept = keys & ((1 << self._thin_keys) - 1) == 0
        self._numbers.append(numbers[kept])
        self._keys.append(keys[kept])
        main = next((side for side in batch.sides if side.name != "prompt"), None)
        if main is not None:
            anchors, places = anchors_of(main)
            if batch.is_corpus:
                self.passages.add(main, anchors, places)
            owners = main.numbers[main.ids.row_of(places)]
            thin = anchors >> np.uint64(64 - self._thin_anchors) == 0 if self._thin_anchors else slice(None)
            self._anchors.append(anchors[thin])
            self._owners.append(owners[thin])
        self._thin()

    def merge(self, later: Fingerprints) -> None:
        """Take the rows that were seen further on in the file."""
        self.rows += later.rows
        self._numbers += later._numbers
        self._keys += later._keys
        self._anchors += later._anchors
        self._owners += later._owners
        self.passages.merge(later.passages)
        if later._thin_keys != self._thin_keys:
            self._thin_keys_to(max(self._thin_keys, later._thin_keys))
        if later._thin_anchors != self._thin_anchors:
            self._thin_anchors_to(max(self._thin_anchors, later._thin_anchors))
        self._thin()

    def _thin(self) -> None:
        while sum(map(len, self._keys)) > MAX_ROW_KEYS:
            self._thin_keys_to(self._thin_keys + 1)
        while sum(map(len, self._anchors)) > MAX_ANCHORS:
            self._thin_anchors_to(self._thin_anchors + 1)
        if len(self._keys) > MANY_PIECES:
            self._numbers, self._keys = [_joined(self._numbers)], [_joined(self._keys)]
            self._owners, self._anchors = [_joined(self._owners)], [_hashes(self._anchors)]

    def _thin_keys_to(self, level: int) -> None:
        self._thin_keys = level
        kept = [keys & ((1 << level) - 1) == 0 for keys in self._keys]
        self._keys = [keys[use] for keys, use in zip(self._keys, kept, strict=True)]
        self._numbers = [numbers[use] for numbers, use in zip(self._numbers, kept, strict=True)]

    def _thin_anchors_to(self, level: int) -> None:
        self._thin_anchors = level
        few = [anchors >> np.uint64(64 - level) == 0 for anchors in self._anchors]
        self._anchors = [anchors[use] for anchors, use in zip(self._anchors, few, strict=True)]
        self._owners = [owners[use] for owners, use in zip(self._owners, few, strict=True)]

    @property
    def thinned(self) -> bool:
        """Whether only part of the rows could be compared."""
        return bool(self._thin_keys or self._thin_anchors)

    def overlap(self, other: Fingerprints | None = None, path: str = "") -> Overlap:
        """Return what the rows share with each other, and with another data set's."""
        checkpoint(f"comparing {self.rows:,} rows")
        numbers, keys = _joined(self._numbers), _joined(self._keys)
        exact = _first_of_same(numbers, keys)
        owners, anchors = _joined(self._owners), _hashes(self._anchors)
        near = _near(anchors, owners)
        near = near[~np.isin(near[:, 0], exact[:, 0])]
        passages, repeated, example = self.passages.repeated(exact[:, 0])
        within = Overlap(exact, near, self.rows, passages=passages, repeated=repeated, example=example)
        if other is None:
            return within
        checkpoint(f"comparing with {other.rows:,} other rows")
        there, keys_there = _joined(other._numbers), _joined(other._keys)
        same = _pairs_of_same(numbers, keys, there, keys_there)
        their_anchors = _hashes(other._anchors)
        around = _near_across(anchors, owners, their_anchors, _joined(other._owners))
        around = around[~np.isin(around[:, 1], same[:, 1])]
        theirs, shared = self.passages.shared(other.passages)
        return replace(
            within, against=path, against_rows=other.rows, against_exact=same, against_near=around,
            against_passages=theirs, against_shared=shared,
        )  # fmt: skip


def anchors_of(side: Sequences) -> tuple[Hashes, Ints]:
    """Return the anchors of all rows of a side, and the flat position of each."""
    flat = side.ids.flat
    if len(flat) < WIDTH:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    found = []
    for first in range(0, len(flat) - 1, MARKED_AT_ONCE):
        small = flat[first : first + MARKED_AT_ONCE + 1].astype(np.uint32, copy=False)
        mark = small[:-1] * np.uint32(0x9E3779B1) + small[1:] * np.uint32(0x85EBCA77)
        found.append(first + np.flatnonzero(mark < np.uint32(1 << (32 - ANCHOR_BITS))))
    places = _joined(found)
    row = side.ids.row_of(places)
    _, stop = side.bounds
    inside = places + WIDTH <= stop[row]
    places = places[inside]
    value = np.zeros(len(places), np.uint64)
    for step in range(WIDTH):
        value = (value ^ flat[places + step].astype(np.uint32).astype(np.uint64)) * _FACTORS[step]
        value ^= value >> np.uint64(29)
    value *= np.uint64(0x9E3779B97F4A7C15)
    return value, places


def _joined(parts: Iterable[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _hashes(parts: Iterable[Hashes]) -> Hashes:
    return np.concatenate([np.empty(0, np.uint64), *parts])


def _first_of_same(numbers: Ints, keys: Ints) -> Ints:
    """Return pairs of a row and the first row with the same key."""
    if not len(keys):
        return np.empty((0, 2), np.int64)
    order = np.argsort(keys, kind="stable")
    numbers, keys = numbers[order], keys[order]
    fresh = np.concatenate([[True], keys[1:] != keys[:-1]])
    first = numbers[np.maximum.accumulate(np.where(fresh, np.arange(len(keys)), 0))]
    pairs: Ints = np.stack([numbers[~fresh], first[~fresh]], axis=1)
    return pairs[np.argsort(pairs[:, 0])]


def _pairs_of_same(numbers: Ints, keys: Ints, there: Ints, keys_there: Ints) -> Ints:
    """Return pairs of a row here and each row there that has its key."""
    here, found = _first_with_key(keys, keys_there)
    return np.stack([numbers[here], there[found]], axis=1)


def _first_with_key(keys: Ints | Hashes, wanted: Ints | Hashes) -> tuple[Ints, Bools]:
    """Return the place of the first key that equals each wanted one that is there, and which of those are."""
    if not len(keys):
        return np.empty(0, np.int64), np.zeros(len(wanted), np.bool_)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found: Bools = keys[order][place] == wanted
    return order[place[found]], found


def _near(anchors: Hashes, owners: Ints) -> Ints:
    """Return pairs of a later and an earlier row that share most of their anchors."""
    # Owners come in the order of the file, so a stable sort keeps them in order within each anchor.
    order = np.argsort(anchors, kind="stable")
    anchors, owners = anchors[order], owners[order]
    same = (anchors[1:] == anchors[:-1]) & (owners[1:] != owners[:-1])
    return _mostly(owners[1:][same], owners[:-1][same], owners, owners)


def _near_across(anchors: Hashes, owners: Ints, theirs: Hashes, their_owners: Ints) -> Ints:
    """Return pairs of a row here and a row there that share most of their anchors."""
    here, found = _first_with_key(anchors, theirs)
    return _mostly(owners[here], their_owners[found], owners, their_owners)


def _mostly(ours: Ints, theirs: Ints, owners: Ints, their_owners: Ints) -> Ints:
    """Return the pairs that occur for at least `MIN_ROW_SIMILARITY` of the anchors of either row."""
    if not len(ours):
        return np.empty((0, 2), np.int64)
    checkpoint(f"{len(ours):,} pairs of rows share something")
    # As one number each: sorting pairs takes ten times as long.
    width = int(theirs.max()) + 1
    codes, shared = np.unique(ours * width + theirs, return_counts=True)
    pairs = np.stack([codes // width, codes % width], axis=1)
    rows, counts = np.unique(owners, return_counts=True)
    there, counts_there = np.unique(their_owners, return_counts=True)
    most = np.maximum(counts[np.searchsorted(rows, pairs[:, 0])], counts_there[np.searchsorted(there, pairs[:, 1])])
    near: Ints = pairs[(shared >= MIN_ROW_SIMILARITY * most) & (most >= LEAST_ANCHORS)]
    _, first = np.unique(near[:, 0], return_index=True)
    return near[first]
