"""A pass over a data set: what its pieces show, summed up in bounded memory. Passes over parts can be merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from mldebug_mcp.batch import Batch
from mldebug_mcp.batch.fingerprints import Fingerprints
from mldebug_mcp.batch.overlap import Overlap
from mldebug_mcp.batch.read import DataSet
from mldebug_mcp.batch.words import Encoder
from mldebug_mcp.diagnose.batch_rows import spot_place
from mldebug_mcp.diagnose.batch_summary import BatchCounts
from mldebug_mcp.models.base import Severity
from mldebug_mcp.models.batch import Place
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.symptoms.batch import batch_checks
from mldebug_mcp.symptoms.batch.registry import BatchCheck, BatchEvidence, judge_check

MAX_ROWS = 1000
MAX_PLACES = 3

Progress = Callable[[int, int], None]
"""Called with the rows and tokens read so far."""


@dataclass(slots=True)
class Tally:
    """What a check saw over the pieces so far.

    Args:
        pieces: Pieces in which it saw something.
        summary, values: What it said about the first of them.
        rows: The first rows, `MAX_ROWS` at most.
        row_count: How many there are.
        places: Examples.
        severities: The severities that it gave; None stands for the check's own.
    """

    pieces: int = 0
    summary: str = ""
    values: dict[str, float] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    row_count: int = 0
    places: list[Place] = field(default_factory=list)
    severities: set[Severity | None] = field(default_factory=set)

    @classmethod
    def of(cls, evidence: BatchEvidence, texts: Encoder | None) -> Tally:
        """Return what a check saw in one piece."""
        rows = sorted(set(evidence.rows.tolist()))
        places = [spot_place(spot, texts) for spot in evidence.spots[:MAX_PLACES]]
        values = dict(evidence.values)
        return cls(1, evidence.summary, values, rows[:MAX_ROWS], len(rows), places, {evidence.severity})

    def merge(self, other: Tally) -> None:
        """Add what the check saw in other pieces, which hold other rows."""
        if not self.pieces:
            self.summary, self.values = other.summary, other.values
        self.pieces += other.pieces
        self.rows = sorted([*self.rows, *other.rows])[:MAX_ROWS]
        self.row_count += other.row_count
        self.places = [*self.places, *other.places][:MAX_PLACES]
        self.severities |= other.severities


class BatchPass:
    """What was seen so far.

    Args:
        judging: Whether checks are judged and numbers counted; else rows are only made comparable with another set's.
    """

    def __init__(self, *, judging: bool = True) -> None:
        self.judging = judging
        self.tallies = {name: Tally() for name in batch_checks()}
        self.counts, self.prints = BatchCounts(), Fingerprints()
        self.notes: dict[str, None] = {}
        self.first: Batch | None = None

    def add(self, batch: Batch) -> None:
        """Look at a piece."""
        self.prints.add(batch)
        if not self.judging:
            return
        self.first = self.first or batch
        self.notes.update(dict.fromkeys(batch.notes))
        self.counts.add(batch)
        for check in batch_checks().values():
            checkpoint(f"looking for {check.id}, row {self.counts.rows:,}")
            if not check.whole:
                self._judge(check, batch)

    def merge(self, later: BatchPass) -> None:
        """Add a pass over pieces further on in the data."""
        self.prints.merge(later.prints)
        self.notes.update(later.notes)
        self.counts.merge(later.counts)
        self.first = self.first or later.first
        for name, tally in later.tallies.items():
            self.tallies[name].merge(tally)

    def finish(self, overlap: Overlap) -> Batch:
        """Judge the checks that need all of the data; returns its first piece."""
        first = self.first
        assert first is not None  # noqa: S101 - reading raises on empty input
        whole = replace(first, rows=self.counts.rows, overlap=overlap, totals=self.counts.totals)
        for check in batch_checks().values():
            if check.whole:
                self._judge(check, whole)
        if self.counts.trained:
            # If another piece has trained tokens, a piece without any is just rows without any.
            self.tallies["row_labels_masked"].merge(self.tallies["all_labels_masked"])
            self.tallies["all_labels_masked"] = Tally()
        return first

    def _judge(self, check: BatchCheck, batch: Batch) -> None:
        evidence, problem = judge_check(check, batch)
        if evidence is not None:
            self.tallies[check.id].merge(Tally.of(evidence, batch.texts))
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
