"""A pass over a data set in bounded memory. It sums up numbers and findings, and decodes some rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np

from mldebug_mcp.batch import Batch, Sequences
from mldebug_mcp.batch.batch import MAX_PROBLEM_ROWS, Boxes, CellCounts, LengthCounts, Overlap, Totals, arrays_of
from mldebug_mcp.batch.columns import CLASS_NAMES
from mldebug_mcp.batch.corpus import WINDOW, CorpusCounts, unpacked
from mldebug_mcp.batch.fingerprints import Fingerprints
from mldebug_mcp.batch.read import DataSet
from mldebug_mcp.batch.roles import Encoder
from mldebug_mcp.batch.sequences import Ints
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.checks.asking import answer
from mldebug_mcp.checks.check import Evidence, Spot, Symptom, symptoms
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import figure
from mldebug_mcp.models.base import Severity
from mldebug_mcp.models.batch import BatchFinding, BatchSummary, BoxView, Lengths, Place, RowView, TokenView, Turns

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
        for name, column in batch.cells.items():
            self.totals.cells.setdefault(name, CellCounts()).merge(CellCounts.of(column, batch.numbers))
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


# Rows as the model sees them, in marked text: what is trained on, what is masked, what is padding.


SHOWN_ROWS = 4
MAX_BOXES = 100
"""Boxes of an image that are shown."""
HALF = 200
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
    for place in (*range(min(width, HALF)), *range(max(HALF, width - HALF), width)):
        number = int(side.ids.flat[offset + place])
        text = batch.texts.pieces([number])[0] if batch.texts is not None else f"{number} "
        trained = side.trained is not None and bool(side.trained[offset + place])
        kind = "trained" if trained else "masked" if start <= place < stop else "padding"
        if number in special and kind != "padding":
            kind = f"special {kind}"
        views.append(TokenView(id=number, text=text, kind=cast("Any", kind), role=roles[place]))
    if width > 2 * HALF:
        views.insert(HALF, TokenView(id=-1, text=f" ‹{width - 2 * HALF} tokens left out› ", kind="left out"))
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
    if stop - start > 2 * HALF:
        pieces += [_span(side, start, start + HALF, texts), f" ‹{stop - start - 2 * HALF} tokens left out› "]
        pieces.append(_span(side, stop - HALF, stop, texts))
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
    """What a check saw over the pieces so far; `summary` and `values` are those of the first piece.

    A severity of None stands for the check's own.
    """

    pieces: int = 0
    summary: str = ""
    values: dict[str, float] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    row_count: int = 0
    places: list[Place] = field(default_factory=list)
    severities: set[Severity | None] = field(default_factory=set)

    @classmethod
    def of(cls, evidence: Evidence, texts: Encoder | None) -> Tally:
        """Return what a check saw in one piece."""
        rows = sorted(set(evidence.rows.numbers.tolist()))
        places = [spot_place(spot, texts) for spot in evidence.rows.spots[:MAX_PLACES]]
        values = dict(evidence.values)
        return cls(1, evidence.summary, values, rows[:MAX_PROBLEM_ROWS], len(rows), places, {evidence.severity})

    def merge(self, other: Tally) -> None:
        """Add what the check saw in other pieces, which hold other rows."""
        if not self.pieces:
            self.summary, self.values = other.summary, other.values
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
            self.corpus = self.corpus or CorpusCounts(window=batch.model.max_positions or WINDOW)
            documents = unpacked(batch.sides[0], batch.document_lengths)
            self.corpus.add(documents, batch.stored, batch.shard, windows=batch.windows)
            self.corpus.add_tail(batch.tail, batch.shard, batch.cut_off)
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
                self.tallies[check.id].merge(Tally.of(given.evidence, batch.texts))
        if problem is not None:
            self.notes[problem] = None


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
