"""TFRecord files of `tf.train.Example`: length, its checksum, a message, its checksum, again and again.

Layout: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from mldebug_mcp.batch.formats.splits import without_held_out
from mldebug_mcp.batch.formats.tf_example import example, table_of
from mldebug_mcp.batch.table import Table
from mldebug_mcp.core.access import is_folder, matching, open_input
from mldebug_mcp.core.crc32c import masked_crc32c_of
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

NAME = "tfrecord"
CHUNK_BYTES = 16 * 1024**2
"""Bytes of messages that one piece holds at least, unless the file ends before."""
MAX_MESSAGE = 1024**3
_HEADER = struct.Struct("<QI")
_FOOTER = 4
_NAMED = re.compile(r"\.tfrecords?(?:$|[-.])|-of-\d{5}$")


def matches(path: Path, head: bytes) -> bool:
    """A file that begins with a length and its checksum, or a folder of files named so."""
    if is_folder(path):
        return bool(_files(path))
    return len(head) >= _HEADER.size and masked_crc32c_of(head[:8]) == int.from_bytes(head[8:12], "little")


def rows(path: Path) -> int:
    """Return how many messages there are."""
    return sum(1 for file in _files(path) for _ in _messages(file, skipping=True))


def tables(path: Path) -> Iterator[Table]:
    """Yield the examples, some megabytes at a time. Raises InputError if a message is none."""
    for file in _files(path):
        kept, size, count = [], 0, 0
        for message in _messages(file):
            try:
                kept.append(example(message))
            except (ValueError, UnicodeDecodeError) as error:
                raise InputError(
                    f"{shorten(str(file), 200)}: record {count} is not a tf.train.Example ({error}); only those can be "
                    "read from TFRecord files"
                ) from None
            size, count = size + len(message), count + 1
            if size > CHUNK_BYTES:
                yield table_of(kept, file)
                kept, size = [], 0
        if kept:
            yield table_of(kept, file)


def files_in(folder: Path) -> list[Path]:
    """Return the files of this format in a folder."""
    return [file for file in matching(folder, "") if _NAMED.search(file.name)]


def _files(path: Path) -> list[Path]:
    return without_held_out(files_in(path)) if is_folder(path) else [path]


def _messages(file: Path, *, skipping: bool = False) -> Iterator[bytes]:
    """Yield the messages; empty ones where they are to be skipped. Raises InputError where the framing breaks."""
    name = shorten(str(file), 200)
    with open_input(file) as opened:
        size = opened.seek(0, 2)
        at = opened.seek(0)
        while at < size:
            header = opened.read(_HEADER.size)
            length = _HEADER.unpack(header)[0] if len(header) == _HEADER.size else MAX_MESSAGE + 1
            end = at + _HEADER.size + length + _FOOTER
            if length > MAX_MESSAGE or end > size:
                raise InputError(
                    f"{name}: broken or cut off after {counted(at, 'byte')}: a record goes on behind the end; copy or "
                    "write the file again"
                )
            yield b"" if skipping else opened.read(length)
            at = opened.seek(end)
