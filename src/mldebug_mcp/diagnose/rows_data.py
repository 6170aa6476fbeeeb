"""The rows of a step in the data set: shown, and beside those of the steps around."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mldebug_mcp.batch import Batch
from mldebug_mcp.batch.read import DataSet, open_data
from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.diagnose.batch import inspect_batch
from mldebug_mcp.diagnose.batch_rows import view
from mldebug_mcp.errors import InputError
from mldebug_mcp.measure.odd_rows import odd_rows
from mldebug_mcp.models.batch import BatchFinding, BatchInspection, RowView
from mldebug_mcp.models.rows import Beside
from mldebug_mcp.progress import checkpoint

MOST_ROWS = 4096
"""Rows of a step, and of the steps around it, that are read. Chosen: some seconds' work."""
MOST_ODD = 3
"""Ways told in which a row is odd."""


@dataclass(frozen=True, slots=True)
class Data:
    """A data set that rows are looked up in.

    Args:
        path: As it was given.
        tokenizer: What decodes it.
        purpose: What it is for, as `inspect_batch` takes it.
    """

    path: str
    tokenizer: Tokenizer | None
    purpose: str

    @classmethod
    def of(cls, path: str | Path, tokenizer: str | Path | None, purpose: str) -> Data:
        """Return a data set with its tokenizer loaded."""
        return cls(str(path), None if tokenizer is None else load_tokenizer(tokenizer), purpose)

    def opened(self) -> DataSet:
        """Return it for reading."""
        return open_data(self.path, self.tokenizer, None, self.purpose)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the data set shows of the rows of a step.

    Args:
        views: The rows, decoded.
        odd: In what rows differ from those around, what differs most first.
        here, around: The rows of the step, and those of the steps around it.
        findings: What is found in the former alone.
        notes: What could not be looked at.
    """

    views: Mapping[int, RowView]
    odd: Mapping[int, list[str]]
    here: Beside
    around: Beside | None
    findings: Sequence[BatchFinding]
    notes: Sequence[str]


def look_up(data: Data, rows: Sequence[int], around: Sequence[int]) -> Seen:
    """Look at the rows of a step, and at those of the steps around it.

    Raises:
        InputError: they are not in the data, or the data cannot be read.
        MissingExtraError: a format needs a package that is not installed.
    """
    fed = dict.fromkeys(rows)
    near = list(dict.fromkeys(one for one in around if one not in fed))[:MOST_ROWS]
    own = list(fed)[:MOST_ROWS]
    batch = next(replace(data.opened(), chosen=[*own, *near]).batches())
    there = set(batch.numbers.tolist())
    missing = [one for one in own if one not in there]
    if missing:
        raise InputError(f"{data.path[:200]}: row {missing[0]} of the step is not in it; is it the data of this run?")
    here = inspect_batch(data.path, data.tokenizer, None, batch.purpose, rows=own)
    beside = inspect_batch(data.path, data.tokenizer, None, batch.purpose, rows=near) if near else None
    usual = set() if beside is None else {one.check for one in beside.findings}
    odd: dict[int, list[str]] = {}
    for one in odd_rows(batch, own):
        odd.setdefault(one.row, []).append(one.says)
    return Seen(
        views=_views(batch, own),
        odd={row: says[:MOST_ODD] for row, says in odd.items()},
        here=_beside(here),
        around=None if beside is None else _beside(beside),
        findings=[one for one in here.findings if one.check not in usual],
        notes=[note for note in here.notes if "tokenizer" in note],
    )


def rows_of_keys(data: Data, keys: Collection[str]) -> dict[str, int]:
    """Return the first row whose tokens have a key, for each key that is found.

    A key is BLAKE2b of the tokens as 64-bit little-endian numbers, in 16 hexadecimal digits, as the recorder makes it.
    """
    found: dict[str, int] = {}
    for batch in data.opened().batches():
        for side in batch.sides:
            starts, stops = side.bounds
            for index, row in enumerate(side.numbers.tolist()):
                tokens = np.asarray(side.ids.flat[int(starts[index]) : int(stops[index])], "<i8")
                key = hashlib.blake2b(tokens.tobytes(), digest_size=8).hexdigest()
                if key in keys:
                    found.setdefault(key, row)
        checkpoint("looking for the rows by their keys")
    return found


def _views(batch: Batch, rows: Sequence[int]) -> dict[int, RowView]:
    side = batch.sides[0] if batch.sides else None
    if side is None:
        return {}
    places = {row: index for index, row in enumerate(side.numbers.tolist())}
    return {row: view(batch, side, places[row]) for row in rows if row in places}


def _beside(inspection: BatchInspection) -> Beside:
    told = inspection.batch
    return Beside(
        rows=told.rows,
        tokens=told.tokens,
        trained_tokens=told.trained_tokens,
        longest=told.lengths.greatest,
        findings=[one.check for one in inspection.findings],
    )
