"""A pass over a data set in bounded memory. It sums up numbers and findings, and decodes some rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch import Batch, Sequences
from mldebug_mcp.batch.batch import (
    MAX_PART_NAME,
    MAX_PROBLEM_ROWS,
    Boxes,
    CellCounts,
    ImageStats,
    LengthCounts,
    Overlap,
    Totals,
    arrays_of,
    median_of,
    targets_of,
)
from mldebug_mcp.batch.columns import CLASS_NAMES, FLOAT_INPUTS, bits_to_tell_apart, is_of_images
from mldebug_mcp.batch.corpus import DEFAULT_WINDOW_TOKENS, CorpusCounts, unpacked
from mldebug_mcp.batch.read import DataSet
from mldebug_mcp.batch.roles import Encoder, Words
from mldebug_mcp.batch.sequences import Bools, Floats, Ints, Ragged
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.checks.check import Evidence, Spot, Symptom, answer, symptoms
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import figure, quoted, shorten
from mldebug_mcp.models.base import Severity
from mldebug_mcp.models.data import BatchFinding, BatchSummary, BoxView, Lengths, Place, RowView, TokenView, Turns

# The numbers of a batch or data set, added up piece by piece in bounded memory.


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
            self.totals.lengths.setdefault(side.name, LengthCounts()).add(side.lengths, side.numbers)
            if not batch.is_corpus:  # whose ids are counted one by one
                self._use(side)
        if batch.classes is not None:
            self.totals.add_classes(batch.classes)
        elif batch.purpose == "classification":
            for side in batch.trained_sides:
                if side.labels is not None and side.trained is not None:
                    self.totals.add_token_classes(side.labels.flat[side.trained & side.content].astype(np.int64))
        for values in (batch.floats[name] for name in CLASS_NAMES if name in batch.floats and not batch.cells):
            if values.ndim == 1 and len(values) == batch.rows:
                self.totals.add_values(len(values), float(values.min()), float(values.max()))
        self.totals.parts.add(batch)
        targets = targets_of(batch.cells)
        for name, column in batch.cells.items():
            self.totals.cells.setdefault(name, CellCounts()).merge(CellCounts.of(column, batch.numbers, targets))
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
        """Return the counts, with the columns and settings of a batch, such as `BatchPass.finish` returns."""
        used = int(self._used.sum()) if batch.corpus is None else batch.corpus.used
        cut = next((finding.row_count for finding in findings if finding.check == "truncated_completion"), 0)
        shortened = (finding.values["documents"] for finding in findings if finding.check == "documents_truncated")
        cut = cut or int(next(shortened, 0))
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
            purpose_because=batch.purpose_because,
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
            vocabulary_used=used if self.positions and batch.words is None else None,
            vocabulary_size=batch.vocabulary,
            sampled=sampled,
        )

    def _length_summary(self) -> Lengths:
        lengths, counts = arrays_of(sum((side.counts for side in self.totals.lengths.values()), Counter()))
        if not len(lengths):
            return Lengths()
        return Lengths(
            least=int(lengths[0]),
            median=median_of(lengths, counts),
            mean=float((lengths * counts).sum() / counts.sum()),
            p95=float(lengths[np.searchsorted(np.cumsum(counts), 0.95 * counts.sum())]),
            greatest=int(lengths[-1]),
            histogram=_histogram(lengths, counts),
        )


def _histogram(lengths: Ints, counts: Ints) -> dict[str, int]:
    found: Counter[str] = Counter()
    for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
        low = 1 << (length.bit_length() - 1) if length else 0
        found[f"{low}-{max(2 * low - 1, 0)}" if low > 1 else str(low)] += count
    return dict(found)


# Rows as the model sees them, in marked text: what is trained on, what is masked, what is padding.


SHOWN_ROWS = 4
MAX_BOXES = 100
"""Boxes of an image that are shown."""
SHOWN_TOKENS_PER_END = 200
"""Tokens at each end of a row that are decoded to show; what lies between is left out."""
MAX_PLACE_TOKENS = 24


def row_views(batch: Batch, findings: Sequence[BatchFinding]) -> list[RowView]:
    """Return some rows, those with severe findings first."""
    wanted = [row for finding in findings for row in finding.rows[:2]]
    numbers = list(dict.fromkeys([*wanted, *batch.numbers[:SHOWN_ROWS].tolist()]))
    views: list[RowView] = []
    if batch.boxes is not None and not batch.sides:
        places = [place for number in numbers for place in (batch.numbers == number).nonzero()[0][:1].tolist()]
        return [_boxes_view(batch, batch.boxes, place) for place in places[:SHOWN_ROWS]]
    for number in numbers:
        for side in batch.sides:
            places = (side.numbers == number).nonzero()[0]
            if len(places):
                views.append(view(batch, side, int(places[0])))
        if len(views) >= SHOWN_ROWS:
            break
    return views[: 2 * SHOWN_ROWS]


def _boxes_view(batch: Batch, boxes: Boxes, place: int) -> RowView:
    """Return the boxes of an image, in words and for drawing."""
    mine = np.flatnonzero(boxes.rows == place)[:MAX_BOXES]
    has_classes = len(boxes.classes) == len(boxes.values)
    names = [boxes.names.get(int(boxes.classes[box]), str(boxes.classes[box])) if has_classes else "" for box in mine]
    corners = boxes.corners()[mine]
    lines = [
        f"{name} at {', '.join(map(figure, boxes.values[box].tolist()))}".strip()
        for name, box in zip(names, mine.tolist(), strict=True)
    ]
    views = [
        BoxView(left=left, top=top, right=right, bottom=bottom, name=name)
        for name, (left, top, right, bottom) in zip(names, corners.tolist(), strict=True)
        if np.isfinite((left, top, right, bottom)).all()
    ]
    return RowView(row=int(batch.numbers[place]), tokens=0, text="; ".join(lines) or "no boxes", boxes=views)


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
    for place in (
        *range(min(width, SHOWN_TOKENS_PER_END)),
        *range(max(SHOWN_TOKENS_PER_END, width - SHOWN_TOKENS_PER_END), width),
    ):
        number = int(side.ids.flat[offset + place])
        text = batch.texts.pieces([number])[0] if batch.texts is not None else f"{number} "
        trained = side.trained is not None and bool(side.trained[offset + place])
        kind = "trained" if trained else "masked" if start <= place < stop else "padding"
        if number in special and kind != "padding":
            kind = f"special {kind}"
        views.append(TokenView(id=number, text=text, kind=cast("Any", kind), role=roles[place]))
    if width > 2 * SHOWN_TOKENS_PER_END:
        views.insert(
            SHOWN_TOKENS_PER_END,
            TokenView(id=-1, text=f" ‹{width - 2 * SHOWN_TOKENS_PER_END} tokens left out› ", kind="left out"),
        )
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
    if stop - start > 2 * SHOWN_TOKENS_PER_END:
        pieces += [
            _span(side, start, start + SHOWN_TOKENS_PER_END, texts),
            f" ‹{stop - start - 2 * SHOWN_TOKENS_PER_END} tokens left out› ",
        ]
        pieces.append(_span(side, stop - SHOWN_TOKENS_PER_END, stop, texts))
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


# A pass over a data set: what its pieces show, summed up in bounded memory. Passes over parts can be merged.


MAX_PLACES = 3
OF_EACH_PIECE = frozenset({"token_id_out_of_range", "records_corrupt"})
"""Checks that look at every piece of a corpus without labels; the others look at its first piece, and at counts."""

Progress = Callable[[int, int], None]
"""Called with the rows and tokens read so far."""


@dataclass(slots=True)
class Tally:
    """What a check saw over the pieces so far; `summary`, `values` and `shard` are those of the first piece.

    A severity of None stands for the check's own.
    """

    pieces: int = 0
    summary: str = ""
    values: dict[str, float] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    row_count: int = 0
    places: list[Place] = field(default_factory=list)
    severities: set[Severity | None] = field(default_factory=set)
    shard: str = ""

    @classmethod
    def of(cls, evidence: Evidence, texts: Encoder | None, shard: str = "") -> Tally:
        """Return what a check saw in one piece."""
        rows = sorted(set(evidence.rows.numbers.tolist()))
        places = [spot_place(spot, texts) for spot in evidence.rows.spots[:MAX_PLACES]]
        values = dict(evidence.values)
        return cls(1, evidence.summary, values, rows[:MAX_PROBLEM_ROWS], len(rows), places, {evidence.severity}, shard)

    def merge(self, other: Tally) -> None:
        """Add what the check saw in other pieces, which hold other rows."""
        if not self.pieces:
            self.summary, self.values, self.shard = other.summary, other.values, other.shard
        self.pieces += other.pieces
        self.rows = sorted([*self.rows, *other.rows])[:MAX_PROBLEM_ROWS]
        self.row_count += other.row_count
        self.places = [*self.places, *other.places][:MAX_PLACES]
        self.severities |= other.severities


class BatchPass:
    """What was seen so far; where it is not `judging`, rows are only made comparable with another set's."""

    def __init__(self, *, judging: bool = True) -> None:
        self.judging = judging
        self.tallies = {name: Tally() for name in symptoms("batch")}
        self.counts, self.prints = BatchCounts(), Fingerprints()
        self.notes: dict[str, None] = {}
        self.first: Batch | None = None
        self.corpus: CorpusCounts | None = None

    def add(self, batch: Batch) -> None:
        """Look at a piece."""
        self.prints.add(batch)
        if not self.judging:
            return
        further = self.first is not None and batch.is_corpus
        self.first = self.first or batch
        self.notes.update(dict.fromkeys(batch.notes))
        self.counts.add(batch)
        if batch.is_corpus:
            self.corpus = self.corpus or CorpusCounts(window=batch.model.max_positions or DEFAULT_WINDOW_TOKENS)
            documents = unpacked(batch.sides[0], batch.document_lengths)
            marks = separating(batch)
            self.corpus.add(documents, batch.stored, batch.shard, marks, windows=batch.windows)
            self.corpus.add_tail(batch.tail, batch.shard, batch.cut_off, marks)
        for check in symptoms("batch").values():
            checkpoint(f"looking for {check.id}, row {self.counts.rows:,}")
            if not check.question.whole and (not further or check.id in OF_EACH_PIECE or batch.is_labelled):
                self._judge(check, batch)

    def merge(self, later: BatchPass) -> None:
        """Add a pass over pieces further on in the data."""
        self.prints.merge(later.prints)
        self.notes.update(later.notes)
        self.counts.merge(later.counts)
        self.first = self.first or later.first
        if later.corpus is not None:
            self.corpus = self.corpus or CorpusCounts(window=later.corpus.window)
            self.corpus.merge(later.corpus)
        for name, tally in later.tallies.items():
            self.tallies[name].merge(tally)

    def finish(self, overlap: Overlap) -> Batch:
        """Judge the checks that need all of the data; returns its first piece."""
        first = self.first
        assert first is not None  # noqa: S101 - reading raises on empty input
        whole = replace(first, rows=self.counts.rows, overlap=overlap, totals=self.counts.totals, corpus=self.corpus)
        for check in symptoms("batch").values():
            if check.question.whole:
                self._judge(check, whole)
        if self.counts.trained:
            # If another piece has trained tokens, a piece without any is just rows without any.
            self.tallies["row_labels_masked"].merge(self.tallies["all_labels_masked"])
            self.tallies["all_labels_masked"] = Tally()
        return replace(first, corpus=self.corpus)

    def _judge(self, check: Symptom, batch: Batch) -> None:
        answers, problem = answer(check.question, batch)
        for given in answers:
            if given.evidence is not None:
                every_piece = not batch.is_corpus or batch.is_labelled
                shard = batch.shard if every_piece and not check.question.whole else ""
                tally = Tally.of(given.evidence, batch.texts, shard)
                tally.summary += "" if check.question.whole else _only_source(batch, given.evidence.rows.numbers)
                self.tallies[check.id].merge(tally)
        if problem is not None:
            self.notes[problem] = None


MAX_CHANCE_OF_SOURCE = 1e-3
"""Chance by which as many rows are all of one source. Chosen: each of many findings may be so by chance."""


def _only_source(batch: Batch, rows: Ints) -> str:
    """Return in words the source that all of these rows are from, where rows have several and chance is ruled out."""
    name, sources = batch.sources
    found = {sources[place] for place in np.flatnonzero(np.isin(batch.numbers, rows)).tolist()} if sources else set()
    if len(found) != 1:
        return ""
    source = found.pop()
    count = sources.count(source)
    if (count / len(sources)) ** len(rows) > MAX_CHANCE_OF_SOURCE:
        return ""
    return f"; all of them have {name} {quoted(shorten(source, MAX_PART_NAME))}, which {count} rows have"


def separating(batch: Batch) -> frozenset[int]:
    """Return the tokens that may stand between documents: ends, and special tokens that are not made for other ends."""
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return batch.ends
    others = {tokenizer.unknown, tokenizer.pad, tokenizer.mask}
    return batch.ends | (tokenizer.special_ids - others)


class PassOver(Protocol):
    """A way to pass over a data set: here, or on a cluster."""

    def __call__(self, data: DataSet, progress: Progress | None = None, *, judging: bool = True) -> BatchPass:
        """Return the pass over all of the data; `progress` is called after each piece or part."""


def pass_over(data: DataSet, progress: Progress | None = None, *, judging: bool = True) -> BatchPass:
    """Pass over a data set here, one piece after the other."""
    passed = BatchPass(judging=judging)
    for batch in data.batches():
        passed.add(batch)
        checkpoint(
            f"{passed.prints.rows:,} rows, {passed.counts.tokens:,} tokens"
            if judging
            else f"{passed.prints.rows:,} rows to compare with"
        )
        if progress is not None:
            progress(passed.counts.rows, passed.counts.tokens)
    return passed


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
    sides = [_side_keys(side) for side in (*batch.sides, *(() if batch.targets is None else (batch.targets,)))]
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


MIN_LETTERS = 20
"""Letters of a row from which the same ones are no accident. Chosen: some four words."""


def _letter_keys(side: Sequences, words: Words) -> tuple[Hashes, Ints]:
    """Return a key of the letters of each row that has enough of them, and the rows' numbers."""
    start, stop = (bound.tolist() for bound in side.bounds)
    texts = [words.letters(side.ids.flat[start[place] : stop[place]]) for place in range(side.rows)]
    long = np.array([len(text) >= MIN_LETTERS for text in texts], np.bool_)
    keys = np.array([hash(text) for text in texts], np.int64).view(np.uint64)
    return keys[long], side.numbers[long]


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
"""Keys of rows that are kept. More are thinned by their hash, the same ones everywhere."""
MAX_ANCHORS = 4_000_000
"""Anchors of rows that are kept. More are thinned by their hash, the same ones everywhere."""
MOST_HALVINGS = 16
"""How often the lists are halved at most: by so many bits a passage is known by its anchor alone."""
MANY_PIECES = 1000
"""Pieces whose lists are kept apart: with more of them, counting at each piece would take longer than joining them."""
ANCHOR_BITS = 3
"""An anchor is where the hash of two tokens begins with this many zero bits: one place in eight."""
MARKED_AT_ONCE = 2**18
"""Tokens whose marks are computed together. Chosen by trial: so many stay in the processor's cache."""
ANCHOR_TOKENS = 6
"""Tokens that the mark of an anchor is computed from."""
LEAST_ANCHORS = 4
"""Anchors without which rows are not compared. Chosen: fewer agree by chance."""
MIN_ROW_SIMILARITY = 0.8
"""Share of the anchors of the longer row that both have, from which on rows are nearly equal."""
_FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1, 0xD3A2646D], np.uint64)

Hashes = npt.NDArray[np.uint64]


# Passages: stretches of tokens that begin at an anchor, thinned by its hash, so that the same text gives the same ones.


PASSAGE_TOKENS = 32
"""Tokens of a passage, some 25 words: twice the 13 words by which GPT-3's paper looks for contamination (appendix C of
https://arxiv.org/abs/2005.14165), as chance hardly repeats as many."""
MAX_PASSAGES = 4_000_000
"""Passages that are kept. More are thinned by their hash, the same ones everywhere."""
ANCHOR_PART = np.uint64(0xFFFF_0000_0000_0000)
"""The bits of a passage's hash that are those of its anchor, by which passages are thinned."""


class Thinned:
    """Hashes in the order of the file, each with the number of its row.

    Where they are more than `most`, a half of them is kept by the hash itself, the same ones everywhere, and so on.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._hashes: list[Hashes] = []
        self._owners: list[Ints] = []
        self.level = 0
        """How often they were halved."""

    @property
    def hashes(self) -> Hashes:
        """The hashes that are kept."""
        return np.concatenate([np.empty(0, np.uint64), *self._hashes])

    @property
    def owners(self) -> Ints:
        """The number of the row of each."""
        return _joined(self._owners)

    def keeps(self, hashes: Hashes) -> Bools:
        """Say of hashes whether they are among those that are kept."""
        return hashes >> np.uint64(64 - self.level) == 0 if self.level else np.ones(len(hashes), np.bool_)

    def add(self, hashes: Hashes, owners: Ints) -> None:
        """Take the hashes of a piece."""
        kept = self.keeps(hashes)
        self._hashes.append(hashes[kept])
        self._owners.append(owners[kept])
        while sum(map(len, self._hashes)) > self._most and self.level < MOST_HALVINGS:
            self._thin_to(self.level + 1)
        if len(self._hashes) > MANY_PIECES:
            self._hashes, self._owners = [self.hashes], [self.owners]

    def merge(self, later: Thinned) -> None:
        """Take the hashes that were seen further on in the file."""
        self._thin_to(max(self.level, later.level))
        for hashes, owners in zip(later._hashes, later._owners, strict=True):
            self.add(hashes, owners)

    def _thin_to(self, level: int) -> None:
        self.level = level
        kept = [self.keeps(hashes) for hashes in self._hashes]
        self._hashes = [hashes[use] for hashes, use in zip(self._hashes, kept, strict=True)]
        self._owners = [owners[use] for owners, use in zip(self._owners, kept, strict=True)]


def passages_at(side: Sequences, anchors: Hashes, places: Ints) -> tuple[Hashes, Ints]:
    """Return the passages of a side that begin at these anchors, and their rows; runs of the same token are none."""
    flat, (_, stop) = side.ids.flat, side.bounds
    row = side.ids.row_of(places)
    inside = (places + PASSAGE_TOKENS <= stop[row]) & (flat[places] != flat[np.minimum(places + 1, len(flat) - 1)])
    anchors, places, row = anchors[inside], places[inside], row[inside]
    value = anchors.copy()
    for step in range(ANCHOR_TOKENS, PASSAGE_TOKENS):
        value = (value ^ flat[places + step].astype(np.uint64)) * _FACTORS[step % len(_FACTORS)]
        value ^= value >> np.uint64(29)
    value *= np.uint64(0x9E3779B97F4A7C15)
    return (anchors & ANCHOR_PART) | (value & ~ANCHOR_PART), side.numbers[row]


def repeated_passages(passages: Thinned, besides: Ints) -> tuple[int, int, Ints]:
    """Return how many passages there are, how many repeat an earlier one, and an example of two rows.

    The numbers of rows that were found to be copies are given as `besides`, and left out.
    """
    hashes, owners = passages.hashes, passages.owners
    if len(besides):
        kept = ~np.isin(owners, besides)
        hashes, owners = hashes[kept], owners[kept]
    pairs = _first_of_same(owners, hashes)
    return len(hashes), len(pairs), pairs[:1]


def shared_passages(passages: Thinned, other: Thinned) -> tuple[int, int]:
    """Return how many passages the other set has, of those that both could keep, and how many of them are here."""
    there = other.hashes[passages.keeps(other.hashes)]
    here = np.sort(passages.hashes)  # much faster than numpy's own search for members, which makes a table of hashes
    there = np.sort(there)
    if not len(here):
        return len(there), 0
    place = np.minimum(np.searchsorted(here, there), len(here) - 1)
    return len(there), int((here[place] == there).sum())


class Fingerprints:
    """Keys, anchors and passages of the rows seen so far."""

    def __init__(self) -> None:
        self.rows = 0
        self.keys, self.anchors = Thinned(MAX_ROW_KEYS), Thinned(MAX_ANCHORS)
        self.letters, self.passages = Thinned(MAX_ROW_KEYS), Thinned(MAX_PASSAGES)
        self.files: dict[str, tuple[int, int]] = {}
        """Rows of each file of a folder, and the sum of their keys."""
        self.images: dict[tuple[str, str], ImageStats] = {}
        """By the column and the file."""

    def add(self, batch: Batch) -> None:
        """Take the rows of a piece."""
        self.rows += batch.rows
        numbers, keys = row_keys(batch)
        self.keys.add(keys.view(np.uint64), numbers)
        if batch.shard:
            self._add_file(batch.shard, len(keys), int(keys.view(np.uint64).sum(dtype=np.uint64)))
        for name, array in batch.floats.items():
            if not is_of_images(name) or len(array) != batch.rows:
                continue
            for part, places in batch.parts():
                if (stats := ImageStats.of(array[places])) is not None:
                    self.images.setdefault((name, part), ImageStats()).merge(stats)
        main = next((side for side in batch.sides if side.name != "prompt"), None)
        if main is None:
            return
        if batch.words is not None:
            if len(batch.sides) == 1:
                self.letters.add(*_letter_keys(main, batch.words))
            main = replace(main, ids=Ragged(batch.words.folded(main.ids.flat), main.ids.offsets))
        anchors, places = anchors_of(main)
        if batch.is_corpus:
            kept = self.passages.keeps(anchors)
            self.passages.add(*passages_at(main, anchors[kept], places[kept]))
        self.anchors.add(anchors, main.numbers[main.ids.row_of(places)])

    def _add_file(self, name: str, rows: int, total: int) -> None:
        known = self.files.get(name, (0, 0))
        self.files[name] = (known[0] + rows, known[1] + total)

    def copied_files(self) -> tuple[tuple[str, str], ...]:
        """Return the files that hold the same rows as an earlier one, in any order, each with that one."""
        known: dict[tuple[int, int], str] = {}
        pairs = [(name, known.setdefault(rows, name)) for name, rows in self.files.items() if rows[0]]
        return tuple((name, first) for name, first in pairs if name != first)

    def _images_of_both(self, other: Fingerprints, path: str) -> dict[tuple[str, str], ImageStats]:
        found = dict(self.images)
        for (name, _), stats in other.images.items():
            found.setdefault((name, path), ImageStats()).merge(stats)
        return found

    def merge(self, later: Fingerprints) -> None:
        """Take the rows that were seen further on in the file."""
        self.rows += later.rows
        for name, (rows, total) in later.files.items():
            self._add_file(name, rows, total)
        for part, stats in later.images.items():
            self.images.setdefault(part, ImageStats()).merge(stats)
        self.keys.merge(later.keys)
        self.letters.merge(later.letters)
        self.anchors.merge(later.anchors)
        self.passages.merge(later.passages)

    @property
    def thinned(self) -> bool:
        """Whether only part of the rows could be compared."""
        return bool(self.keys.level or self.anchors.level)

    def overlap(self, other: Fingerprints | None = None, path: str = "") -> Overlap:
        """Return what the rows share with each other, and with another data set's."""
        checkpoint(f"comparing {self.rows:,} rows")
        numbers, keys = self.keys.owners, self.keys.hashes
        exact = _first_of_same(numbers, keys)
        owners, anchors = self.anchors.owners, self.anchors.hashes
        letters = self.letters
        same_letters = _first_of_same(letters.owners, letters.hashes)
        near = _pairs_by(0, same_letters, _similar_pairs(anchors, owners))
        near = near[~np.isin(near[:, 0], exact[:, 0])]
        same_text = int((~np.isin(same_letters[:, 0], exact[:, 0])).sum())
        passages, repeated, example = repeated_passages(self.passages, exact[:, 0])
        files = self.copied_files()
        within = Overlap(
            exact, near, self.rows, same_text, passages=passages, repeated=repeated, example=example, files=files,
            images=self.images,
        )  # fmt: skip
        if other is None:
            return within
        checkpoint(f"comparing with {other.rows:,} other rows")
        same = _pairs_of_same(numbers, keys, other.keys.owners, other.keys.hashes)
        around = _near_across(anchors, owners, other.anchors.hashes, other.anchors.owners)
        written = _pairs_of_same(letters.owners, letters.hashes, other.letters.owners, other.letters.hashes)
        around = _pairs_by(1, written, around)
        around = around[~np.isin(around[:, 1], same[:, 1])]
        theirs, shared = shared_passages(self.passages, other.passages)
        return replace(
            within, against=path, against_rows=other.rows, against_exact=same, against_near=around,
            against_passages=theirs, against_shared=shared, images=self._images_of_both(other, path),
        )  # fmt: skip


def anchors_of(side: Sequences) -> tuple[Hashes, Ints]:
    """Return the anchors of all rows of a side, and the flat position of each."""
    flat = side.ids.flat
    if len(flat) < ANCHOR_TOKENS:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    found = []
    for first in range(0, len(flat) - 1, MARKED_AT_ONCE):
        small = flat[first : first + MARKED_AT_ONCE + 1].astype(np.uint32, copy=False)
        mark = small[:-1] * np.uint32(0x9E3779B1) + small[1:] * np.uint32(0x85EBCA77)
        found.append(first + np.flatnonzero(mark < np.uint32(1 << (32 - ANCHOR_BITS))))
    places = _joined(found)
    row = side.ids.row_of(places)
    _, stop = side.bounds
    inside = places + ANCHOR_TOKENS <= stop[row]
    places = places[inside]
    value = np.zeros(len(places), np.uint64)
    for step in range(ANCHOR_TOKENS):
        value = (value ^ flat[places + step].astype(np.uint32).astype(np.uint64)) * _FACTORS[step]
        value ^= value >> np.uint64(29)
    value *= np.uint64(0x9E3779B97F4A7C15)
    return value, places


def _joined(parts: Iterable[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _pairs_by(column: int, *found: Ints) -> Ints:
    """Return pairs of rows, the first that was found for each row of a column."""
    pairs = np.concatenate(found)
    return pairs[np.unique(pairs[:, column], return_index=True)[1]]


def _first_of_same(numbers: Ints, keys: Hashes) -> Ints:
    if not len(keys):
        return np.empty((0, 2), np.int64)
    order = np.argsort(keys, kind="stable")
    numbers, keys = numbers[order], keys[order]
    fresh = np.concatenate([[True], keys[1:] != keys[:-1]])
    first = numbers[np.maximum.accumulate(np.where(fresh, np.arange(len(keys)), 0))]
    pairs: Ints = np.stack([numbers[~fresh], first[~fresh]], axis=1)
    return pairs[np.argsort(pairs[:, 0])]


def _pairs_of_same(numbers: Ints, keys: Hashes, there: Ints, keys_there: Hashes) -> Ints:
    here, found = _first_with_key(keys, keys_there)
    return np.stack([numbers[here], there[found]], axis=1)


def _first_with_key(keys: Hashes, wanted: Hashes) -> tuple[Ints, Bools]:
    """Return the place of the first key that equals each wanted one that is there, and which of those are."""
    if not len(keys):
        return np.empty(0, np.int64), np.zeros(len(wanted), np.bool_)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found: Bools = keys[order][place] == wanted
    return order[place[found]], found


def _similar_pairs(anchors: Hashes, owners: Ints) -> Ints:
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
    return near
