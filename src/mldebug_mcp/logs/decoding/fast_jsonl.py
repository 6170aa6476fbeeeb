"""JSON lines by the block: polars parses, and a count proves that nothing was lost.

polars reads a line into the columns it was told of, refuses a value of another type, and passes over keys it was not
told of. So a block is right exactly if polars accepts it and if as many values came out as there are keys in it.
Every other block goes back to the caller, who reads it line by line: first cut into pieces, so that one odd line costs
little. Bare NaN and Infinity, which polars refuses, are replaced by numbers that occur nowhere in the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl
from polars.datatypes import DataTypeClass

from mldebug_mcp.logs.beside import SUMMARY_MARKS, is_long
from mldebug_mcp.logs.builder import MESSAGES, RunBuilder
from mldebug_mcp.logs.decoding.blocks import PATIENCE, PIECE_BYTES, lines_of, pieces
from mldebug_mcp.logs.decoding.frames import add_frame
from mldebug_mcp.logs.decoding.json_values import parse_object
from mldebug_mcp.logs.process_starts import RESUMES

MAX_KEYS = 500
"""Keys read by the block; a log with more is read line by line."""
_SAMPLE = 50
_KEY = re.compile(rb'"([^"\\\n]*)"\s*:')
_NAN, _INFINITY = b"-1.7272727272727e-297", b"1.3131313131313e+297"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A block as a table, and the numbers in it that stand for NaN and Infinity."""

    frame: pl.DataFrame
    stand_ins: Mapping[float, float]


_OF_RESUMES = tuple(f'"{word}'.encode() for word in RESUMES)
"""What a block holds that may tell of a resume, which is read line by line."""


class FastRecords:
    """Takes blocks of JSON lines.

    Args:
        builder: Where the records go.
    """

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._types: dict[str, pl.DataType] = {}
        self._refused = 0
        self.empty = 0
        self.took_last = False
        """Whether the last piece was taken here, and not handed back."""

    def learn(self, values: Mapping[str, object]) -> None:
        """Take note of keys by one value of each."""
        for key, value in values.items():
            if key not in self._types:
                kind = _type_of(value)
                if kind is not None:
                    self._types[key] = kind

    def knowing(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass blocks on; take note of the keys of the first one before any is parsed."""
        for block in blocks:
            if not self._types:
                self._learn_from(_whole_lines(block))
            yield block

    def parse(self, block: bytes) -> Parsed | None:
        """Parse the whole lines of a block if polars reads them exactly.

        Nothing is taken yet: this may run in other threads than `take`.
        """
        block = _whole_lines(block)
        types = dict(self._types)
        by_line = not SUMMARY_MARKS.isdisjoint(types) or not MESSAGES.isdisjoint(types) or is_long(types)
        if not types or len(types) > MAX_KEYS or by_line or self._refused >= PATIENCE:
            return None
        if any(mark in block for mark in _OF_RESUMES):
            return None
        frame = _parsed(block, types)
        if frame is not None:
            return Parsed(frame, {})
        spelled = _with_numbers_for_nan(block)
        frame = None if spelled is None else _parsed(spelled, types)
        return None if frame is None else Parsed(frame, {float(_NAN): np.nan, float(_INFINITY): np.inf})

    def take(self, block: bytes, parsed: Parsed | None) -> Iterator[bytes]:
        """Take a block that `parse` has seen; yield the pieces, in their order, that have to be read line by line."""
        whole = _whole_lines(block)
        if self._refused >= PATIENCE:
            whole = b""
        elif not (self._taken(parsed) or (self._infer(whole) and self._taken(self.parse(whole)))):
            for piece in pieces(whole, PIECE_BYTES):
                if self._taken(self.parse(piece)):
                    self._refused = 0
                else:
                    self._refused += 1
                    self.took_last = False
                    yield piece
        if len(whole) < len(block):
            self.took_last = False
            yield block[len(whole) :]

    def _learn_from(self, block: bytes) -> None:
        if self._infer(block[: block.rfind(b"\n", 0, PIECE_BYTES) + 1]):
            return
        for line in islice(lines_of(block[:PIECE_BYTES]), _SAMPLE):
            record = parse_object(line)
            if record is not None:
                self.learn({key: value for key, value in record.items() if value is not None})

    def _infer(self, block: bytes) -> bool:
        """Take note of the keys that polars finds in a block; return whether any is new."""
        # The time that polars takes grows with the square of the number of keys.
        if len(set(_KEY.findall(block))) > MAX_KEYS:
            return False
        try:
            found = pl.scan_ndjson(block, infer_schema_length=None).collect_schema()
        except (pl.exceptions.PolarsError, ValueError):
            return False
        new = {key: kind for key, dtype in found.items() if key not in self._types and (kind := _readable(dtype))}
        # Of more than 32 keys polars forgets the order.
        self._types |= {key: new[key] for key in sorted(new, key=lambda key: (block.find(f'"{key}"'.encode()), key))}
        return bool(new)

    def _taken(self, parsed: Parsed | None) -> bool:
        """Take what was parsed, if it was and no text in it may spell a number; return whether it was taken."""
        empty = None if parsed is None else add_frame(self._builder, parsed.frame, parsed.stand_ins)
        self.empty += empty or 0
        self.took_last = self.took_last or empty is not None
        return empty is not None


def _whole_lines(block: bytes) -> bytes:
    """Return a block without a last line that has no end: it may still be being written."""
    return block[: block.rfind(b"\n") + 1]


def _parsed(block: bytes, types: Mapping[str, pl.DataType]) -> pl.DataFrame | None:
    try:
        frame = pl.read_ndjson(block, schema=types)
    except (pl.exceptions.PolarsError, ValueError):
        return None
    values = _values_in(frame)
    if values == np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == ord(":")):
        return frame
    # Times in text hold colons too, and a null is a key without a value: count again, more slowly.
    nulls = block.count(b'": null') + block.count(b'":null')
    keys = block.count(b'":') + block.count(b'" :')
    return frame if values + nulls == keys else None


def _type_of(value: object, depth: int = 0) -> pl.DataType | None:
    if isinstance(value, bool):
        return pl.Boolean()
    if isinstance(value, int | float):
        return pl.Float64()
    if isinstance(value, str):
        return pl.String()
    if isinstance(value, dict) and value and depth < 4:
        inner = {key: _type_of(item, depth + 1) for key, item in value.items()}
        if all(kind is not None for kind in inner.values()):
            return pl.Struct({key: kind for key, kind in inner.items() if kind is not None})
    return None


def _readable(dtype: pl.DataType | DataTypeClass) -> pl.DataType | None:
    """Return the type as which a column of this type is read, or None if it is not read by the block."""
    if dtype.is_numeric():
        return pl.Float64()
    if isinstance(dtype, pl.Struct):
        inner = {field.name: _readable(field.dtype) for field in dtype.fields}
        if all(inner.values()):
            return pl.Struct({key: kind for key, kind in inner.items() if kind is not None})
        return None
    return next((kind() for kind in (pl.Boolean, pl.String) if dtype == kind), None)


def _values_in(frame: pl.DataFrame) -> int:
    """Return how many keys had a value; an object counts for itself and for what it holds."""
    count = 0
    for column in frame.iter_columns():
        count += len(column) - column.null_count()
        if isinstance(column.dtype, pl.Struct):
            count += _values_in(column.struct.unnest())
    return count


def _with_numbers_for_nan(block: bytes) -> bytes | None:
    """Return the block with stand-ins for NaN and Infinity, or None if it has none or has the stand-ins already."""
    if b"NaN" not in block and b"Infinity" not in block:
        return None
    if _NAN in block or _INFINITY in block:
        return None
    return block.replace(b"NaN", _NAN).replace(b"Infinity", _INFINITY)
