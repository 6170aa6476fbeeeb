"""What a tokenized corpus holds: ids, ends of documents, lengths, order and shards, counted in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Floats, Ints, Ragged, Sequences, offsets_of
from mldebug_mcp.core.arrays import entropy
from mldebug_mcp.core.conventions import IGNORED_LABEL

MAX_VOCABULARY = 2**22
"""Ids below this are counted one by one: no vocabulary is as large."""
MAX_TOKENS_FOR_ZEROS = 1 << 14
"""Tokens of each piece that are looked at for zeros in every second place."""
MAX_SHARDS = 100_000
ENDS_BYTES = 64 * 1024
"""Bytes at either end of a piece of a shard that its checksum is of."""
COUNTED_AT_ONCE = 2**19
"""Ids that are counted together. Chosen by trial: numpy makes 8 bytes of each, which the processor's cache can hold."""
BIG_ENDIAN = "most significant byte first"
"""What is added to the type of ids in the byte order that hardly any trainer reads."""
DEFAULT_WINDOW_TOKENS = 1024
"""Tokens of a context window where no model's configuration names its own."""


class DocumentCuts:
    """Where documents of a stream begin, found by the ids that end them, or else by the id that begins one."""

    def __init__(self, ends: frozenset[int], bos: int | None) -> None:
        self.ends, self.bos = ends, bos
        self.ends_begin: bool | None = None
        """Whether the end tokens stand before documents, as in the corpora of llm.c; not known before the first one."""

    def documents(self, flat: npt.NDArray[np.integer], *, is_start: bool) -> Ragged | None:
        """Return the documents of a piece of a stream as rows; None where no such id stands in it."""
        found = [
            first + np.flatnonzero(flat[first : first + COUNTED_AT_ONCE] == end)
            for first in range(0, len(flat), COUNTED_AT_ONCE)
            for end in self.ends  # one after the other is faster than looking up each token among a few
        ]
        places = np.concatenate([np.empty(0, np.int64), *found])
        if len(self.ends) > 1:
            places.sort()
        if len(places) and is_start and self.ends_begin is None:
            self.ends_begin = bool(places[0] == 0 and places[-1] < len(flat) - 1)
        # Of end tokens that follow each other the last one, or the first one, is the edge.
        if self.ends_begin:
            cuts = places[np.diff(places, prepend=-2) > 1]
        else:
            cuts = places[np.diff(places, append=len(flat) + 2) > 1] + 1
        if not len(cuts) and self.bos is not None:
            cuts = np.flatnonzero(flat == self.bos)
        cuts = cuts[(cuts > 0) & (cuts < len(flat))]
        if not len(cuts):
            return None
        return Ragged(flat, np.concatenate([[0], cuts, [len(flat)]]).astype(np.int64))


def unpacked(side: Sequences, document_lengths: Ragged | None) -> Sequences:
    """Return the rows of a corpus without padding, those that hold several documents cut at them.

    Lengths of documents next to the rows give their starts, or positions that restart, or a mask that numbers them.
    """
    starts = _starts_inside(side, document_lengths)
    if starts is None and not side.padded:
        return side
    first, stop = side.bounds
    edges = np.concatenate([first[stop > first], np.empty(0, np.int64) if starts is None else starts])
    edges = np.unique(edges[side.content[edges]])
    places = np.cumsum(side.content)[edges] - 1
    flat = side.ids.flat[side.content]
    ids = Ragged(flat, np.append(places, len(flat)))
    labels = None
    if side.shifted_by_design and side.labels is not None and side.trained is not None:
        # The token after the last one of a document may stand in its labels alone.
        following = np.where(side.trained, side.labels.flat, IGNORED_LABEL)[side.content]
        labels = Ragged(following, ids.offsets)
    return Sequences("", ids, np.arange(ids.rows, dtype=np.int64), labels, shifted_by_design=labels is not None)


def _starts_inside(side: Sequences, lengths: Ragged | None) -> Ints | None:
    """Return the flat positions at which documents begin, also those inside of rows; None where nothing tells."""
    if lengths is not None and lengths.rows == side.rows:
        within = np.add.reduceat(np.append(lengths.flat, 0), lengths.offsets[:-1]) if lengths.rows else lengths.flat
        if np.array_equal(within, side.ids.lengths):
            return offsets_of(lengths.flat.astype(np.int64))[:-1]
    if side.positions is not None:
        return np.flatnonzero(side.positions.flat == 0)
    if side.attention is not None and len(side.attention.flat) and int(side.attention.flat.max()) > 1:
        number = side.attention.flat
        return np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    return None


# The order of the documents: whether sources follow each other, seen by which tokens are common where.


ID_BUCKETS = 257
"""Classes of ids that are compared: a prime, so that neighbours in the vocabulary part."""
MAX_BLOCKS = 64
"""Blocks of neighbouring documents whose ids are counted apart."""
BLOCK_DOCUMENTS = 32
"""Documents of a block to begin with; blocks are joined in pairs when there are more than `MAX_BLOCKS`."""
LOOKED_AT_TOKENS = 256
"""Tokens of a document that are looked at."""
MAX_DOCUMENTS_OF_PIECE = 512
LEAST_DOCUMENTS_OF_PIECE = 64
"""Of the pieces of a large corpus fewer documents are looked at, the more have been."""
DISTANCE_QUANTILE = 0.9
"""Quantile of the distances that is compared: a source that makes up a twentieth of the corpus shows in it."""


class Composition:
    """Counts of ids over stretches of documents, those of every second document apart."""

    def __init__(self) -> None:
        self.blocks: list[npt.NDArray[np.float64]] = []
        self._size = BLOCK_DOCUMENTS

    def add(self, side: Sequences) -> None:
        """Count the documents of a piece; of many, evenly spread ones."""
        start, stop = side.bounds
        most = max(LEAST_DOCUMENTS_OF_PIECE, MAX_DOCUMENTS_OF_PIECE * BLOCK_DOCUMENTS // self._size)
        step = max(1, len(start) // most)
        start, stop = start[::step], np.minimum(stop[::step], start[::step] + LOOKED_AT_TOKENS)
        stretches = list(zip(start.tolist(), stop.tolist(), strict=True))
        looked_at = [side.ids.flat[:0], *(side.ids.flat[first:last] for first, last in stretches)]
        ids = np.concatenate(looked_at).astype(np.uint32)
        number = np.arange(len(start))
        rows = (2 * (number // self._size) + number % self._size % 2).astype(np.uint32)
        blocks = -(-len(start) // self._size)
        # Numpy divides by one number much faster than it takes the remainder.
        keys = np.repeat(rows * np.uint32(ID_BUCKETS), np.maximum(stop - start, 0))
        keys += ids - ids // np.uint32(ID_BUCKETS) * np.uint32(ID_BUCKETS)
        counts = np.bincount(keys, minlength=2 * blocks * ID_BUCKETS).astype(np.float64)
        self.blocks += list(counts.reshape(blocks, 2, ID_BUCKETS))
        self._join()

    def merge(self, later: Composition) -> None:
        """Take the blocks of documents further on in the data."""
        self.blocks += later.blocks
        self._size = max(self._size, later._size)
        self._join()

    def _join(self) -> None:
        while len(self.blocks) > MAX_BLOCKS:
            pairs = [self.blocks[at : at + 2] for at in range(0, len(self.blocks), 2)]
            self.blocks = [np.sum(pair, axis=0) for pair in pairs]
            self._size *= 2

    def distances(self) -> tuple[float, float]:
        """Return how far apart stretches are, and the two halves of a stretch: Jensen-Shannon divergences in bits.

        Of documents in a random order both are the same. The second half of each stretch is compared with the first
        half of every other one, so that both numbers come from as many tokens.
        """
        sizes = [float(block.sum(axis=1).min()) for block in self.blocks]
        usual = float(np.median(sizes)) if sizes else 0.0
        kept = [block for block, size in zip(self.blocks, sizes, strict=True) if size and size >= usual / 2]
        if len(kept) < 2:
            return 0.0, 0.0
        within = [_divergence(block[0], block[1]) for block in kept]
        between = [_divergence(block[0], other[1]) for number, block in enumerate(kept) for other in kept[:number]]
        return float(np.quantile(between, DISTANCE_QUANTILE)), float(np.quantile(within, DISTANCE_QUANTILE))


def _divergence(counts: Floats, others: Floats) -> float:
    """Return the Jensen-Shannon divergence of two lists of counts in bits."""
    counts, others = counts / counts.sum(), others / others.sum()
    middle = (counts + others) / 2
    return entropy(middle) - (entropy(counts) + entropy(others)) / 2


@dataclass(slots=True)
class IdCounts:
    """How often each id from 0 up to `MAX_VOCABULARY` occurs; others are left out."""

    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, ids: npt.NDArray[np.integer]) -> tuple[int, int]:
        """Count ids; returns how many of them are negative, and how many no vocabulary reaches."""
        negative = huge = 0
        for first in range(0, len(ids), COUNTED_AT_ONCE):
            some = ids[first : first + COUNTED_AT_ONCE]
            # As unsigned numbers negative ids are huge, so that one look at the greatest tells whether all are counted.
            unsigned = some.view(f"u{ids.dtype.itemsize}")
            if ids.dtype.itemsize > 2 and int(unsigned.max()) >= MAX_VOCABULARY:
                below = int((some < 0).sum()) if ids.dtype.kind == "i" else 0
                unsigned = unsigned[unsigned < MAX_VOCABULARY]
                negative, huge = negative + below, huge + len(some) - len(unsigned) - below
            elif ids.dtype.kind == "i" and ids.dtype.itemsize <= 2:
                unsigned = unsigned[some >= 0]
                negative += len(some) - len(unsigned)
            counted = unsigned.view(np.int64) if ids.dtype.itemsize > 4 else unsigned
            self._add(np.bincount(counted).astype(np.int64, copy=False))
        return negative, huge

    def merge(self, later: IdCounts) -> None:
        """Add other counts."""
        self._add(later.counts.copy())

    def _add(self, counts: Ints) -> None:
        if len(counts) > len(self.counts):
            counts, self.counts = self.counts, counts
        self.counts[: len(counts)] += counts

    def __getitem__(self, number: int) -> int:
        return int(self.counts[number]) if 0 <= number < len(self.counts) else 0

    def __len__(self) -> int:
        return int(np.count_nonzero(self.counts))

    def total(self, start: int = 0) -> int:
        """Return how many ids of this number or larger ones were counted."""
        return int(self.counts[start:].sum())

    def most_common(self, most: int) -> list[tuple[int, int]]:
        """Return the commonest ids, each with how often it occurs."""
        order = np.argsort(-self.counts, kind="stable")[:most].tolist()
        return [(number, int(self.counts[number])) for number in order if self.counts[number]]


@dataclass(slots=True)
class ShardCounts:
    """What was read of one shard."""

    documents: int = 0
    tokens: int = 0
    checksum: bytes = b""
    """Of its tokens."""
    stored: str = ""
    """How its ids are stored, such as uint16."""
    zeros: tuple[int, int] = (0, 0)
    """Zeros at even and at odd places, of `pairs` each."""
    pairs: int = 0
    marks: int = 0
    """Tokens that may stand between documents."""

    def take(self, ids: npt.NDArray[np.integer], tokens: int, marks: Collection[int] = ()) -> None:
        """Count further ids, so many of them not padding, shape (n,), and which of them are `marks`.

        The checksum is of their sum, eight bytes at a time, and of the first and last of them: a checksum of all takes
        longer than all other counts.
        """
        self.tokens += tokens
        self.marks += int(np.isin(ids, sorted(marks)).sum()) if marks else 0
        data = np.ascontiguousarray(ids).view(np.uint8)
        total = int(data[: len(data) // 8 * 8].view(np.uint64).sum(dtype=np.uint64))
        summed = hashlib.blake2b(self.checksum + total.to_bytes(8, "little"), digest_size=16)
        summed.update(data[:ENDS_BYTES].data)
        summed.update(data[-ENDS_BYTES:].data)
        self.checksum = summed.digest()


@dataclass(slots=True)
class CorpusCounts:
    """Counts over the pieces seen so far, in the order of the data.

    Args:
        documents, tokens: Rows and their tokens without padding.
        windows: Whether rows are cuts of a stream at a fixed width, as the format says.
        stored: How ids are stored, such as uint16.
        counts: How often each id below `MAX_VOCABULARY` occurs.
        negative, huge: Ids below 0 and those that no vocabulary reaches.
        first, last: How often documents begin and end with an id.
        doubled: How often they begin or end with an id that stands there twice.
        lengths: Documents by their tokens; those of `MAX_VOCABULARY` and more count as one less than that.
        longest_last: How often the longest documents end with an id.
        rising, falling, level: Documents that are longer, shorter or as long as the one before.
        zeros: Zeros at even and at odd places, of `pairs` each.
        crossed: Documents that go on over the edge of a window of `window` tokens, laid end to end.
        cut_off: Bytes behind the last whole id, by the name of the file.
        composition: Which ids are common where.
        shards: By the name of the file.
    """

    window: int = DEFAULT_WINDOW_TOKENS
    documents: int = 0
    tokens: int = 0
    windows: bool = False
    stored: str = ""
    counts: IdCounts = field(default_factory=IdCounts)
    negative: int = 0
    huge: int = 0
    first: IdCounts = field(default_factory=IdCounts)
    last: IdCounts = field(default_factory=IdCounts)
    doubled: IdCounts = field(default_factory=IdCounts)
    lengths: IdCounts = field(default_factory=IdCounts)
    longest: int = 0
    longest_last: IdCounts = field(default_factory=IdCounts)
    rising: int = 0
    falling: int = 0
    level: int = 0
    zeros: tuple[int, int] = (0, 0)
    pairs: int = 0
    crossed: int = 0
    cut_off: dict[str, int] = field(default_factory=dict)
    composition: Composition = field(default_factory=Composition)
    shards: dict[str, ShardCounts] = field(default_factory=dict)
    _before: int = 0

    def add(
        self, side: Sequences, stored: str, shard: str = "", marks: Collection[int] = (), *, windows: bool = False
    ) -> None:
        """Count the documents of a piece, or the windows of a stream, stored as this type in this file."""
        self.windows |= windows
        self.stored = self.stored or stored
        self._count_ids(side)
        self._count_boundaries(side)
        self._count_order(side)
        pairs, zeros = _zeros_of(side.ids.flat[:MAX_TOKENS_FOR_ZEROS])
        self.pairs, self.zeros = self.pairs + pairs, _sum(self.zeros, zeros)
        if not self.windows:
            self.composition.add(side)
        if shard and (shard in self.shards or len(self.shards) < MAX_SHARDS):
            counts = self.shards.setdefault(shard, ShardCounts(stored=stored))
            counts.documents += side.rows
            counts.pairs, counts.zeros = counts.pairs + pairs, _sum(counts.zeros, zeros)
            counts.take(side.ids.flat, int(side.lengths.sum()), marks)
        self.documents += side.rows
        self.tokens += int(side.lengths.sum())

    def add_tail(
        self, tail: npt.NDArray[np.integer] | None, shard: str, cut_off: int = 0, marks: Collection[int] = ()
    ) -> None:
        """Count the tokens of a stream behind the last whole window of a file, shape (n,), and the bytes after them."""
        if cut_off and len(self.cut_off) < MAX_SHARDS:
            self.cut_off[shard] = cut_off
        if tail is None:
            return
        self.counts.add(tail)
        self.tokens += len(tail)
        if shard in self.shards:
            self.shards[shard].take(tail, len(tail), marks)

    def _count_ids(self, side: Sequences) -> None:
        negative, huge = self.counts.add(side.ids.flat)
        self.negative += negative
        self.huge += huge

    def _count_boundaries(self, side: Sequences) -> None:
        start, stop = side.bounds
        some = stop > start
        lengths = side.lengths
        self.lengths.add(np.minimum(lengths, MAX_VOCABULARY - 1))
        last = side.ids.flat[stop[some] - 1]
        if side.shifted_by_design and side.labels is not None:
            following = side.labels.flat[stop[some] - 1]
            last = np.where(following == IGNORED_LABEL, last, following)
        first = side.ids.flat[start[some]]
        self.first.add(first)
        self.last.add(last)
        longer = lengths[some] > 1
        for edge, inner in ((last, stop[some] - 2), (first, start[some] + 1)):
            self.doubled.add(edge[longer][edge[longer] == side.ids.flat[inner[longer]]])
        longest = int(lengths.max(initial=0))
        if longest > self.longest:
            self.longest, self.longest_last = longest, IdCounts()
        if longest == self.longest and longest:
            self.longest_last.add(last[lengths[some] == longest])

    def _count_order(self, side: Sequences) -> None:
        lengths = side.lengths
        if not len(lengths):
            return
        change = np.diff(lengths, prepend=self._before if self.documents else lengths[0])
        if not self.documents:
            change = change[1:]
        self.rising += int((change > 0).sum())
        self.falling += int((change < 0).sum())
        self.level += int((change == 0).sum())
        self._before = int(lengths[-1])
        ends = self.tokens + np.cumsum(lengths)
        some = lengths > 0
        self.crossed += int(((ends[some] - lengths[some]) // self.window != (ends[some] - 1) // self.window).sum())

    def merge(self, later: CorpusCounts) -> None:
        """Add the counts of pieces further on in the data."""
        self.windows |= later.windows
        self.stored = self.stored or later.stored
        for mine, theirs in (
            (self.counts, later.counts), (self.first, later.first), (self.last, later.last),
            (self.doubled, later.doubled),
        ):  # fmt: skip
            mine.merge(theirs)
        for name in ("documents", "tokens", "negative", "huge", "rising", "falling", "level", "pairs"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.crossed += later.crossed
        self.lengths.merge(later.lengths)
        if later.longest > self.longest:
            self.longest, self.longest_last = later.longest, IdCounts()
        if later.longest == self.longest:
            self.longest_last.merge(later.longest_last)
        self.zeros = _sum(self.zeros, later.zeros)
        self.composition.merge(later.composition)
        self.shards.update(later.shards)
        self.cut_off.update(later.cut_off)

    # What follows from the counts.

    @property
    def is_stream(self) -> bool:
        """Whether rows are pieces of one stream: cut at a fixed width, or all of one length."""
        shorter = self.documents - self._longest_documents
        tails = max(1, len(self.shards), MAX_SHORT_ROWS_SHARE * self.documents)
        return self.windows or (self.documents > 2 and shorter <= tails)

    @property
    def filled_documents(self) -> int:
        """Documents that hold a token: the others have no end either."""
        return self.documents - self.lengths[0]

    @property
    def _longest_documents(self) -> int:
        return self.lengths[min(self.longest, MAX_VOCABULARY - 1)]

    @property
    def used(self) -> int:
        """How many different ids occur."""
        return len(self.counts)

    def occurs(self, number: int) -> int:
        """Return how often an id occurs."""
        return self.counts[number]

    def occurs_from(self, number: int) -> int:
        """Return how many tokens are this id or a larger one."""
        return self.counts.total(number) + self.huge

    def copies(self) -> list[tuple[str, str]]:
        """Return the shards that hold the same tokens as an earlier one, each with that one."""
        known: dict[tuple[bytes, int, int], str] = {}
        found = []
        for name, shard in self.shards.items():
            first = known.setdefault((shard.checksum, shard.tokens, shard.documents), name)
            if first != name:
                found.append((name, first))
        return found

    @property
    def commonest_share(self) -> float:
        """Share of the tokens that are the commonest id: several in a hundred in any text."""
        return float(self.counts.counts.max(initial=0) / max(1, self.tokens))

    @property
    def cut_documents(self) -> int:
        """Documents as long as the longest, if so many are that they were cut there; else 0.

        Lengths of documents vary: of those near the longest, hardly two are the same.
        """
        longest = self._longest_documents
        if self.is_stream or longest < LEAST_CUT or longest < LEAST_CUT_SHARE * self.documents:
            return 0
        near = self.lengths.counts[int(MIN_NEAR_LENGTH_SHARE * self.longest) : self.longest]
        return longest if longest >= TIMES_NEAR * max(1, int(near.max(initial=0))) else 0

    def lost_if_cut(self) -> tuple[float, float]:
        """Return the share of tokens lost if documents are cut at the window, and of padding if they are filled up."""
        counts = self.lengths.counts
        lengths = np.arange(len(counts))
        kept = int((np.minimum(lengths, self.window) * counts).sum())
        places = self.window * int(counts[lengths > 0].sum())
        return 1 - kept / max(1, self.tokens), 1 - kept / max(1, places)


def _zeros_of(flat: npt.NDArray[np.integer]) -> tuple[int, tuple[int, int]]:
    """Return how many pairs of tokens there are, and how many have a zero as their first and as their second."""
    pairs = len(flat) // 2
    even, odd = (int(np.count_nonzero(flat[place : 2 * pairs : 2] == 0)) for place in (0, 1))
    return pairs, (even, odd)


def _sum(pair: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return pair[0] + other[0], pair[1] + other[1]


MAX_SHORT_ROWS_SHARE = 0.005
"""Share of the rows of a stream that may be shorter, as the last one of each file or part is."""
LEAST_CUT = 8
"""Documents of the greatest length from which on that is a limit. Chosen: a few may be as long by chance."""
LEAST_CUT_SHARE = 0.01
"""The same as a share of all documents. Chosen: a limit that hardly cuts matters little."""
MIN_NEAR_LENGTH_SHARE = 0.9
"""Share of the greatest length from which on lengths are compared with it."""
TIMES_NEAR = 4
"""Documents of the greatest length, for each of the commonest length within a tenth below it. Chosen by hand."""
