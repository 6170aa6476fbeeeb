"""TFRecord files of `tf.train.Example`: length, its checksum, a message, its checksum, again and again.

Layout: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from mldebug_mcp.batch.columns import Table
from mldebug_mcp.batch.formats.files import files_to_read, mapped, whole_numbers
from mldebug_mcp.batch.formats.tf_example import Bytes, table_of
from mldebug_mcp.batch.sequences import Ints
from mldebug_mcp.core.access import is_folder, matching, open_input
from mldebug_mcp.core.crc32c import masked_crc32c, masked_crc32c_of, masked_crc32c_of_parts
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

NAME = "tfrecord"
PIECE_BYTES = 16 * 1024**2
"""Bytes of messages that one piece holds at least, unless the file ends before."""
MAX_MESSAGE = 1024**3
_HEADER = struct.Struct("<QI")
"""Length of a message, and its checksum."""
_FOOTER = 4
PACKED = {b"\x1f\x8b": "gzip", **dict.fromkeys((b"\x78\x01", b"\x78\x9c", b"\x78\xda"), "zlib")}
"""First bytes of files with the compressions that TFRecord has, GZIP and ZLIB."""
_FILE_NAME = re.compile(r"\.tfrecords?(?:$|[-.])|-of-\d{5}$")


def matches(path: Path, head: bytes) -> bool:
    """A file that begins with a length and its checksum, or a folder of files named so."""
    if is_folder(path):
        return bool(files_to_read(path, files_in))
    return len(head) >= _HEADER.size and masked_crc32c_of(head[:8]) == int.from_bytes(head[8:12], "little")


def rows(path: Path) -> int:
    """Return how many messages there are."""
    return sum(len(start) for file in files_to_read(path, files_in) for _, start, _ in _pieces(file))


def tables(path: Path) -> Iterator[Table]:
    """Yield the examples, some megabytes at a time. Raises InputError if a message is none."""
    for file in files_to_read(path, files_in):
        count = place = 0
        for data, start, stop in _pieces(file):
            corrupt = _corrupt(data, start, stop, place)
            try:
                table = table_of(data, start, stop, file, count)
            except InputError as error:
                raise (_unreadable(file, count, corrupt) if corrupt else error) from None
            yield replace(table, corrupt=corrupt)
            count, place = count + len(start), place + int(stop[-1]) + _FOOTER


def _unreadable(file: Path, first: int, corrupt: Mapping[int, int]) -> InputError:
    """Return the error of a file whose first messages do not match their checksums and cannot be read."""
    place, at = next(iter(corrupt.items()))
    return InputError(
        f"{shorten(str(file), 200)}: record {first + place}, at byte {at:,}, does not match its checksum, and cannot "
        "be read; copy or write the file again"
    )


def _corrupt(data: Bytes, start: Ints, stop: Ints, place: int) -> dict[int, int]:
    """Return which messages do not match their checksums, each with the byte of the file at which its record begins.

    The data begins at the byte `place` of the file.
    """
    wrong = np.flatnonzero(masked_crc32c_of_parts(data, start, stop) != whole_numbers(data, stop))
    return {int(number): place + int(start[number]) - _HEADER.size for number in wrong}


def files_in(folder: Path) -> list[Path]:
    """Return the files of this format in a folder."""
    return [file for file in matching(folder, "") if _FILE_NAME.search(file.name)]


def _pieces(file: Path) -> Iterator[tuple[Bytes, Ints, Ints]]:
    """Yield bytes with many messages, and where each begins and ends. Raises InputError where the framing breaks."""
    with open_input(file) as opened:
        size, at, wanted = opened.seek(0, 2), 0, PIECE_BYTES
        while at < size:
            data = mapped(opened, np.dtype(np.uint8), at, min(wanted, size - at))
            start, stop = _messages(data)
            if len(start):
                _check_lengths(data, start, file, at)
                yield data, start, stop
                at, wanted = at + int(stop[-1]) + _FOOTER, PIECE_BYTES
                continue
            needed = _HEADER.size + _length(data, 0) + _FOOTER
            if at == 0 and data[:2].tobytes() in PACKED:
                raise InputError(f"{shorten(str(file), 200)}: packed by {PACKED[data[:2].tobytes()]}: unpack it first")
            if needed > min(size - at, MAX_MESSAGE) or needed <= wanted:
                raise InputError(
                    f"{shorten(str(file), 200)}: broken or cut off after {counted(at, 'byte')}: a record goes on "
                    "behind the end; copy or write the file again"
                )
            wanted = needed


def _messages(data: Bytes) -> tuple[Ints, Ints]:
    """Return where the messages begin and end that are whole."""
    start, stop = [], []
    view, at, size, length_at = data.data, 0, len(data) - _FOOTER, _HEADER.unpack_from
    while (begin := at + _HEADER.size) <= size and (end := begin + length_at(view, at)[0]) <= size:
        start.append(begin)
        stop.append(end)
        at = end + _FOOTER
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


def _length(data: Bytes, at: int) -> int:
    """Return the length of the message whose header begins at a place; more than any where it is cut off."""
    return int(_HEADER.unpack_from(data.data, at)[0]) if at + _HEADER.size <= len(data) else 2 * MAX_MESSAGE
