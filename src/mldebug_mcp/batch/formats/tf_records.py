"""Messages of the type `tf.train.Example`, lists of numbers by name, in files of TFRecord and ArrayRecord.

Messages as protobuf's libraries write them are read together, one step for all of them; others one by one. Sources:
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto and
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.batch.formats.files import Bytes, in_files, mapped, whole_numbers
from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.core.access import library_path, matching, open_input
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.protobuf import fields, masked_crc32c, masked_crc32c_of, masked_crc32c_of_parts
from mldebug_mcp.core.text import counted, shorten

BYTES_LIST = 1
FLOAT_LIST = 2
INT64_LIST = 3
LAST_BYTE = 127
"""Greatest value of the last byte of a number; the bytes before it are greater."""
MOST_BYTES = 10
"""Of a number of 64 bits."""
WORD_BYTES = 4
"""Bytes of the numbers that are decoded by words: those below 2 ** 28, as all token ids are."""
DECODED_AT_ONCE = 1 << 16
"""Bytes that are decoded together. Chosen by trial: so many stay in the processor's cache."""
MAX_FEATURES = 64
"""Features of a message that is read together with others."""


class Packed(NamedTuple):
    """Whole numbers as the message holds them; they are decoded for many messages at once."""

    data: bytes


Value = Packed | npt.NDArray[np.float32] | list[bytes]


def example(message: bytes) -> dict[str, Value]:
    """Return the features of an Example by name. Raises ValueError if it is none."""
    found: dict[str, Value] = {}
    data = memoryview(message)
    for number, features in _fields(data):
        if number != 1:
            raise ValueError("a field that no Example has")
        for _, entry in _fields(features):
            name, value = "", None
            for field, content in _fields(entry):
                if field == 1:
                    name = bytes(content).decode("utf-8")
                else:
                    value = _feature(content)
            if value is not None:
                found[name] = value
    if not found:
        raise ValueError("no feature")
    return found


def _feature(data: memoryview) -> Value | None:
    for kind, listed in _fields(data):
        if kind == INT64_LIST:
            packed = [content for field, content in _fields(listed) if field == 1]
            whole = b"".join(packed)
            if whole and whole[-1] > LAST_BYTE:
                raise ValueError("a number is cut off")
            return Packed(whole)
        if kind == FLOAT_LIST:
            return np.frombuffer(b"".join(content for _, content in _fields(listed)), "<f4")
        if kind == BYTES_LIST:
            return [bytes(content) for _, content in _fields(listed)]
        raise ValueError("a kind that no Feature has")
    return None


def _whole_numbers(lists: Sequence[Packed]) -> Ragged:
    """Return the numbers of packed lists. Raises ValueError if one is too long."""
    return _unpacked([np.frombuffer(packed.data, np.uint8) for packed in lists])


def _unpacked(lists: Sequence[Bytes]) -> Ragged:
    """Return the numbers of packed lists, each ending with the last byte of a number.

    A number has seven bits in each of its bytes, the least significant ones first.

    Raises:
        ValueError: a number is too long.
    """
    bounds = offsets_of(np.fromiter(map(len, lists), np.int64, len(lists)))
    data = np.concatenate([*lists, np.zeros(WORD_BYTES, np.uint8)])  # so that the last number has a word, too
    size = int(bounds[-1])
    parts = range(0, size, DECODED_AT_ONCE)
    count = sum(np.count_nonzero(data[part : min(size, part + DECODED_AT_ONCE)] <= LAST_BYTE) for part in parts)
    numbers, offsets = np.empty(count, np.int64), np.empty_like(bounds)
    start = done = 0
    while start < size:
        stop = _end_of_number(data, min(size, start + DECODED_AT_ONCE))
        last = np.flatnonzero(data[start:stop] <= LAST_BYTE)
        numbers[done : done + len(last)] = _decoded(data[start : stop + WORD_BYTES], last)
        lists_here = slice(*np.searchsorted(bounds, [start, stop]))
        offsets[lists_here] = done + np.searchsorted(last, bounds[lists_here] - start)
        start, done = stop, done + len(last)
    offsets[bounds == size] = done
    return Ragged(numbers, offsets)


def _end_of_number(data: Bytes, at: int) -> int:
    """Return where the last number ends whose bytes all lie before a place."""
    return next((end for end in range(at, max(0, at - MOST_BYTES), -1) if data[end - 1] <= LAST_BYTE), at)


def _decoded(data: Bytes, last: Ints) -> npt.NDArray[np.integer]:
    """Return numbers whose last bytes lie at these places; `WORD_BYTES` more bytes follow the last of them."""
    start = np.empty_like(last)
    start[:1], start[1:] = 0, last[:-1] + 1
    longest = int((last - start).max(initial=0))
    if longest >= MOST_BYTES:
        raise ValueError("a number of more than ten bytes")
    if longest >= WORD_BYTES:
        return _decoded_by_bytes(data, start, last - start)
    # The four bytes from each number's first one on, of which those behind its last one are cleared.
    words = np.ndarray((len(data) - WORD_BYTES + 1,), "<u4", data, strides=(1,)).take(start)
    ends = ~words & np.uint32(0x80808080)
    words &= ((ends & -ends) << np.uint32(1)) - np.uint32(1)
    numbers = words & np.uint32(0x7F)
    for place in range(1, longest + 1):
        numbers |= words >> np.uint32(place) & np.uint32(0x7F << 7 * place)
    return numbers


def _decoded_by_bytes(data: Bytes, start: Ints, further: Ints) -> npt.NDArray[np.integer]:
    numbers = (data[start] & LAST_BYTE).astype(np.uint64)
    for place in range(1, int(further.max()) + 1):
        longer = np.flatnonzero(further >= place)
        numbers[longer] |= (data[start[longer] + place] & LAST_BYTE).astype(np.uint64) << np.uint64(7 * place)
    return numbers.view(np.int64)


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number and content of each field. Raises ValueError where the message is broken."""
    for part in fields(data, 0, len(data)):
        yield part.number, data[part.start : part.end]


class _UnevenError(Exception):
    """The messages are not as protobuf's libraries write them, or differ in their features."""


class _Lists(NamedTuple):
    """The lists of a feature: their kind, and where the feature lies in each message."""

    kind: int
    start: Ints
    stop: Ints


def _lists_in(data: Bytes, start: Ints, stop: Ints) -> dict[str, _Lists]:
    """Return the features of all messages by name, in the order of the first message. Raises _UnevenError."""
    at, ends = _content(data, start, stop, key=0x0A)
    found: dict[str, _Lists] = {}
    counts: dict[str, int] = {}
    _check_equal(ends, stop)
    for _ in range(MAX_FEATURES):
        rows = np.flatnonzero(at < ends)
        if not len(rows):
            break
        entry, entry_end = _content(data, at[rows], ends[rows], key=0x0A)
        at[rows] = entry_end
        name, name_end = _content(data, entry, entry_end, key=0x0A)
        feature, feature_end = _content(data, name_end, entry_end, key=0x12)
        _check_equal(feature_end, entry_end)
        while len(rows):
            text = data[name[0] : name_end[0]].tobytes()
            same = _are(data, name, name_end, text)
            key = text.decode("utf-8", "replace")
            kind = _kind(data, feature[same])
            lists = found.setdefault(key, _Lists(kind, np.full(len(start), -1), np.full(len(start), -1)))
            if lists.kind != kind or bool(np.any(lists.start[rows[same]] >= 0)):
                raise _UnevenError
            lists.start[rows[same]], lists.stop[rows[same]] = feature[same], feature_end[same]
            rows, name, name_end = rows[~same], name[~same], name_end[~same]
            feature, feature_end = feature[~same], feature_end[~same]
            counts[key] = counts.get(key, 0) + int(same.sum())
            if len(found) > MAX_FEATURES:
                raise _UnevenError
    if bool(np.any(at < ends)) or not found:
        raise _UnevenError
    return {name: lists for name, lists in found.items() if counts[name] == len(start)}


def _content(data: Bytes, at: Ints, end: Ints, key: int) -> tuple[Ints, Ints]:
    """Return where the content of the fields begins and ends that have this first byte at these places."""
    if bool(np.any(at >= end)) or bool(np.any(data[at] != key)):
        raise _UnevenError
    begin, size = at + 1, np.zeros_like(at)
    more = np.ones(len(at), np.bool_)
    for place in range(WORD_BYTES):
        if bool(np.any(more & (begin >= end))):
            raise _UnevenError
        byte = data[np.minimum(begin, len(data) - 1)].astype(np.int64)
        size += np.where(more, (byte & LAST_BYTE) << 7 * place, 0)
        begin += more
        more &= byte > LAST_BYTE
    if bool(more.any()) or bool(np.any(begin + size > end)):
        raise _UnevenError
    return begin, begin + size


def _check_equal(ends: Ints, others: Ints) -> None:
    if not np.array_equal(ends, others):
        raise _UnevenError


def _are(data: Bytes, start: Ints, stop: Ints, text: bytes) -> npt.NDArray[np.bool_]:
    """Return which of these stretches are a text."""
    same: npt.NDArray[np.bool_] = stop - start == len(text)
    for place, byte in enumerate(text):
        same &= data[np.minimum(start + place, len(data) - 1)] == byte
    return same


def _kind(data: Bytes, start: Ints) -> int:
    """Return the kind of the lists that begin at these places."""
    keys = np.unique(data[np.minimum(start, len(data) - 1)])
    if len(keys) != 1 or int(keys[0]) not in {number << 3 | 2 for number in (BYTES_LIST, FLOAT_LIST, INT64_LIST)}:
        raise _UnevenError
    return int(keys[0]) >> 3


def _column_of(data: Bytes, lists: _Lists) -> Column:
    """Return the lists of a feature as a column. Raises _UnevenError, or ValueError if a number is too long."""
    if lists.kind != INT64_LIST:
        places = zip(lists.start.tolist(), lists.stop.tolist(), strict=True)
        return [_listed(_feature(data[first:last].data) or []) for first, last in places]
    start, stop = _content(data, lists.start, lists.stop, key=INT64_LIST << 3 | 2)
    _check_equal(stop, lists.stop)
    filled = np.flatnonzero(start < stop)
    start = start.copy()
    start[filled], ends = _content(data, start[filled], stop[filled], key=0x0A)
    _check_equal(ends, stop[filled])
    if bool(np.any(data[stop[filled] - 1][ends > start[filled]] > LAST_BYTE)):
        raise _UnevenError  # a number is cut off
    return _unpacked([data[first:last] for first, last in zip(start.tolist(), stop.tolist(), strict=True)])


NOTE = "read as examples of TensorFlow (tf.train.Example)"


def table_of(data: Bytes, start: Ints, stop: Ints, file: Path, number: int) -> Table:
    """Return the features that all of some examples have as columns: numbers as they are, bytes as text.

    Raises:
        InputError: a message cannot be read as an example.
    """
    try:
        columns = {name: _column_of(data, lists) for name, lists in _lists_in(data, start, stop).items()}
    except (_UnevenError, ValueError):
        columns = _columns_by_example(data, start, stop, file, number)
    return Table(columns, notes=[NOTE], shard=file.name)


def _columns_by_example(data: Bytes, start: Ints, stop: Ints, file: Path, number: int) -> dict[str, Column]:
    examples: list[dict[str, Value]] = []
    try:
        for first, last in zip(start.tolist(), stop.tolist(), strict=True):
            examples.append(example(data[first:last].tobytes()))
        shared = [name for name in examples[0] if all(name in other for other in examples)]
        return {name: _column([other[name] for other in examples]) for name in shared}
    except (ValueError, UnicodeDecodeError) as error:
        which = f"record {number + len(examples)}" if len(examples) < len(start) else "a record"
        raise InputError(
            f"{shorten(str(file), 200)}: {which} is not a tf.train.Example ({error}); only those can be read from "
            "TFRecord and ArrayRecord files"
        ) from None


def _column(values: Sequence[Value]) -> Column:
    packed = [value for value in values if isinstance(value, Packed)]
    if len(packed) == len(values):
        return _whole_numbers(packed)
    return [_listed(value) for value in values]


def _listed(value: Value) -> object:
    if isinstance(value, Packed):
        return _whole_numbers([value]).flat.tolist()
    return _text(value) if isinstance(value, list) else value


def _text(values: list[bytes]) -> object:
    texts = [value.decode("utf-8", "replace") for value in values]
    return texts[0] if len(texts) == 1 else texts


PIECE_BYTES = 16 * 1024**2
"""Bytes of messages that one piece holds at least, unless the file ends before."""
MAX_MESSAGE = 1024**3
_HEADER = struct.Struct("<QI")
"""Length of a message, and its checksum."""
_FOOTER_BYTES = 4
PACKED_BY = {b"\x1f\x8b": "gzip", **dict.fromkeys((b"\x78\x01", b"\x78\x9c", b"\x78\xda"), "zlib")}
"""First bytes of files with the compressions that TFRecord has, GZIP and ZLIB."""
_FILE_NAME = re.compile(r"\.tfrecords?(?:$|[-.])|-of-\d{5}$")


def _begins_with_length(head: bytes) -> bool:
    """Say whether a file begins with a length and its checksum."""
    return len(head) >= _HEADER.size and masked_crc32c_of(head[:8]) == int.from_bytes(head[8:12], "little")


def _tfrecord_rows(file: Path) -> int:
    return sum(len(start) for _, start, _ in _blocks_of_messages(file))


def _tfrecord_tables(files: list[Path]) -> Iterator[Table]:
    """Yield the examples, some megabytes at a time. Raises InputError if a message is none."""
    for file in files:
        count = place = 0
        for data, start, stop in _blocks_of_messages(file):
            corrupt = _corrupt_messages(data, start, stop, place)
            try:
                table = table_of(data, start, stop, file, count)
            except InputError as error:
                raise (_unreadable(file, count, corrupt) if corrupt else error) from None
            yield replace(table, corrupt=corrupt)
            count, place = count + len(start), place + int(stop[-1]) + _FOOTER_BYTES


def _tfrecord_files_in(folder: Path) -> list[Path]:
    return [file for file in matching(folder, "") if _FILE_NAME.search(file.name)]


TFRECORD = in_files(
    "tfrecord", _begins_with_length, _tfrecord_tables, _tfrecord_rows, (".tfrecord", ".tfrecords"), _tfrecord_files_in
)
"""TFRecord files of `tf.train.Example`: length, its checksum, a message, its checksum, again and again.

Layout: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
"""


def _unreadable(file: Path, first: int, corrupt: Mapping[int, int]) -> InputError:
    """Return the error of a file whose first messages do not match their checksums and cannot be read."""
    place, at = next(iter(corrupt.items()))
    return InputError(
        f"{shorten(str(file), 200)}: record {first + place}, at byte {at:,}, does not match its checksum, and cannot "
        "be read; copy or write the file again"
    )


def _corrupt_messages(data: Bytes, start: Ints, stop: Ints, place: int) -> dict[int, int]:
    """Return which messages do not match their checksums, each with the byte of the file at which its record begins.

    The data begins at the byte `place` of the file.
    """
    wrong = np.flatnonzero(masked_crc32c_of_parts(data, start, stop) != whole_numbers(data, stop))
    return {int(number): place + int(start[number]) - _HEADER.size for number in wrong}


def _blocks_of_messages(file: Path) -> Iterator[tuple[Bytes, Ints, Ints]]:
    """Yield bytes with many messages, and where each begins and ends. Raises InputError where the framing breaks."""
    with open_input(file) as opened:
        size, at, wanted = opened.seek(0, 2), 0, PIECE_BYTES
        while at < size:
            data = mapped(opened, np.dtype(np.uint8), at, min(wanted, size - at))
            start, stop = _messages(data)
            if len(start):
                _check_lengths(data, start, file, at)
                yield data, start, stop
                at, wanted = at + int(stop[-1]) + _FOOTER_BYTES, PIECE_BYTES
                continue
            # More than any message takes, where its header is cut off.
            length = int(_HEADER.unpack_from(data.data)[0]) if _HEADER.size <= len(data) else 2 * MAX_MESSAGE
            needed = _HEADER.size + length + _FOOTER_BYTES
            if at == 0 and data[:2].tobytes() in PACKED_BY:
                raise InputError(
                    f"{shorten(str(file), 200)}: packed by {PACKED_BY[data[:2].tobytes()]}: unpack it first"
                )
            if needed > min(size - at, MAX_MESSAGE) or needed <= wanted:
                raise InputError(
                    f"{shorten(str(file), 200)}: broken or cut off after {counted(at, 'byte')}: a record goes on "
                    "behind the end; copy or write the file again"
                )
            wanted = needed


def _messages(data: Bytes) -> tuple[Ints, Ints]:
    """Return where the messages begin and end that are whole."""
    start, stop = [], []
    view, at, size, length_at = data.data, 0, len(data) - _FOOTER_BYTES, _HEADER.unpack_from
    while (begin := at + _HEADER.size) <= size and (end := begin + length_at(view, at)[0]) <= size:
        start.append(begin)
        stop.append(end)
        at = end + _FOOTER_BYTES
    return np.array(start, np.int64), np.array(stop, np.int64)


def _check_lengths(data: Bytes, start: Ints, file: Path, place: int) -> None:
    """Raise InputError if a length does not match its checksum: where the next record begins is not known then."""
    lengths = data[start[:, None] - _HEADER.size + np.arange(8)]
    wrong = np.flatnonzero(masked_crc32c(lengths) != whole_numbers(data, start - 4))
    if len(wrong):
        at = place + int(start[wrong[0]]) - _HEADER.size
        raise InputError(
            f"{shorten(str(file), 200)}: broken or cut off after {counted(at, 'byte')}: the length of the record there "
            "does not match its checksum; copy or write the file again"
        )


RIEGELI_SIGNATURE = bytes.fromhex("83af70d10d884a3f")
"""The first bytes of a Riegeli file, on which ArrayRecord is built
(https://github.com/google/riegeli/blob/master/doc/riegeli_records_file_format.md)."""
CHUNK_RECORDS = 1024
"""Records that are read together."""


def _array_record_rows(file: Path) -> int:
    with _opened_array_record(file) as reader:
        return int(reader.num_records())


def _array_record_tables(files: list[Path]) -> Iterator[Table]:
    """Yield the examples, some megabytes at a time. Raises InputError if a record is none."""
    for file in files:
        with _opened_array_record(file) as reader:
            total = int(reader.num_records())
            records: list[bytes] = []
            for first in range(0, total, CHUNK_RECORDS):
                last = min(first + CHUNK_RECORDS, total)
                records += reader.read(list(range(first, last)))
                if sum(map(len, records)) > PIECE_BYTES or last == total:
                    stop = np.cumsum(np.fromiter(map(len, records), np.int64, len(records)))
                    start = np.concatenate([[0], stop[:-1]])
                    data = np.frombuffer(b"".join(records), np.uint8)
                    yield table_of(data, start, stop, file, last - len(records))
                    records = []


ARRAY_RECORD = in_files(
    "arrayrecord", lambda head: head.startswith(RIEGELI_SIGNATURE), _array_record_tables, _array_record_rows,
    (".array_record", ".arrayrecord"),
)  # fmt: skip
"""ArrayRecord files, which Grain and MaxText read; the `array_record` package opens them.

Source: https://github.com/google/array_record
"""


@contextmanager
def _opened_array_record(file: Path) -> Iterator[Any]:  # of the package, which has no types
    try:
        from array_record.python.array_record_module import ArrayRecordReader
    except ImportError:
        raise MissingExtraError("array_record", "arrayrecord") from None
    with open_input(file) as stream:
        try:
            reader = ArrayRecordReader(library_path(stream))
            try:
                yield reader
            finally:
                reader.close()  # tells what is broken, too
        except RuntimeError as error:
            problem = shorten(str(error), 120) or "its end is missing"
            raise InputError(f"{shorten(str(file), 200)}: a broken ArrayRecord ({problem}); write it again") from None
