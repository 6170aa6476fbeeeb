"""The `.wandb` file that Weights & Biases writes next to every run, online or offline.

It is a LevelDB log of Record messages: blocks of 32 KiB, records cut at their edges, a checksum for each piece.
Source: wandb/proto/wandb_internal.proto and core/pkg/leveldb in github.com/wandb/wandb.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from mldebug_mcp.core import protobuf
from mldebug_mcp.core.protobuf import Field
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import parse_json
from mldebug_mcp.logs.log_file import LogFile

NAME = "wandb"

BLOCK = 32 * 1024
_HEADER = 7
_FULL, _FIRST, _LAST = 1, 2, 4
_MAX_RECORD = 64 * 1024 * 1024
_HISTORY, _SUMMARY, _CONFIG, _RUN = 2, 3, 5, 17
_RUN_CONFIG = 4
_ITEM, _STEP = 1, 2
_OWN = ("_wandb", "_timestamp", "_runtime")
"""Keys that W&B adds itself."""
_KEY, _NESTED_KEY, _INTEGER, _NUMBER, _TEXT, _JSON, _VALUE_JSON = 1, 2, 5, 6, 7, 8, 16


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the history and the configuration; of a run without history, its summary."""
    summary: dict[str, object] = {}
    damaged = 0
    for record in records(file.pieces(BLOCK)):
        if record is None:
            damaged += 1
            continue
        try:
            _take(record, builder, summary)
        except (ValueError, struct.error):
            damaged += 1
    if damaged:
        builder.note(f"{file.path.name}: {damaged} record(s) damaged or cut off are left out")
    if not builder.records and summary:
        builder.note("the run has a summary but no history: only its last values are known")
        builder.record(summary)


def records(blocks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield the records, None for one that is damaged or cut off."""
    gathered = bytearray()
    first = _HEADER  # the file's own header stands in the first block
    for block in blocks:
        at, first = first, 0
        while len(block) - at >= _HEADER:
            checksum, length, kind = struct.unpack_from("<IHB", block, at)
            if kind == 0 and length == 0:
                break  # the padding at the end of a block
            start, at = at + _HEADER, at + _HEADER + length
            piece = block[start:at]
            if len(piece) < length or not _FULL <= kind <= _LAST:
                yield None
                gathered = bytearray()
                break
            if zlib.crc32(block[start - 1 : at]) != checksum:
                yield None
                gathered = bytearray()
                continue
            if kind in (_FULL, _FIRST):
                gathered = bytearray()
            gathered += piece
            if len(gathered) > _MAX_RECORD:
                yield None
                gathered = bytearray()
            elif kind in (_FULL, _LAST):
                yield bytes(gathered)
                gathered = bytearray()
    if gathered:
        yield None


def _take(record: bytes, builder: RunBuilder, summary: dict[str, object]) -> None:
    for part in protobuf.fields(record, 0, len(record)):
        if part.wire != protobuf.BYTES:
            continue
        if part.number == _HISTORY:
            builder.record(_history(record, part))
        elif part.number == _SUMMARY:
            summary.update(_items(record, part))
        elif part.number == _CONFIG:
            builder.configure(_items(record, part), NAME)
        elif part.number == _RUN:
            for inner in protobuf.fields(record, part.start, part.end):
                if inner.number == _RUN_CONFIG and inner.wire == protobuf.BYTES:
                    builder.configure(_items(record, inner), NAME)


def _history(data: bytes, message: Field) -> dict[str, object]:
    """Return the values of one call of `wandb.log`; `_step` counts the calls, unless it was given."""
    values = _items(data, message)
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _STEP and part.wire == protobuf.BYTES and "_step" not in values:
            number = next((step for step in protobuf.fields(data, part.start, part.end) if step.number == 1), None)
            values["_step"] = protobuf.signed(number.value) if number is not None else 0
    return values


def _items(data: bytes, message: Field) -> dict[str, object]:
    """Return the keys and values of a history, summary or configuration message."""
    values: dict[str, object] = {}
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _ITEM and part.wire == protobuf.BYTES:
            key, value = _item(data, part)
            if key and value is not None and not key.startswith(_OWN):
                values[key] = value
    return values


def _item(data: bytes, message: Field) -> tuple[str, object]:
    key: list[str] = []
    value: object = None
    for part in protobuf.fields(data, message.start, message.end):
        if part.number in (_KEY, _NESTED_KEY):
            key.append(protobuf.text(data, part))
        elif part.number in (_VALUE_JSON, _JSON):
            value = parse_json(protobuf.text(data, part))
        elif part.number == _NUMBER:
            (value,) = struct.unpack("<d", data[part.start : part.end])
        elif part.number == _INTEGER:
            value = protobuf.zigzag(part.value)
        elif part.number == _TEXT:
            value = protobuf.text(data, part)
    return "/".join(key), value
