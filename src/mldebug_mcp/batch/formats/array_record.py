"""ArrayRecord files, which Grain and MaxText read, of `tf.train.Example` messages. Read by the `array_record` package.

Source: https://github.com/google/array_record
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mldebug_mcp.batch.columns import Table
from mldebug_mcp.batch.formats.files import files_to_read
from mldebug_mcp.batch.formats.tf_example import table_of
from mldebug_mcp.core.access import is_folder, library_path, matching, open_input
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.text import shorten

NAME = "arrayrecord"
ENDINGS = (".array_record", ".arrayrecord")
SIGNATURE = bytes.fromhex("83af70d10d884a3f")
"""The first bytes of a Riegeli file, on which ArrayRecord is built
(https://github.com/google/riegeli/blob/master/doc/riegeli_records_file_format.md)."""
CHUNK_RECORDS = 1024
"""Records that are read together."""
CHUNK_BYTES = 16 * 1024**2
"""Bytes of messages that one piece holds at least, unless the file ends before."""


def matches(path: Path, head: bytes) -> bool:
    """A file with Riegeli's signature, or a folder of files named so."""
    return bool(files_to_read(path, files_in)) if is_folder(path) else head.startswith(SIGNATURE)


def rows(path: Path) -> int:
    """Return how many records there are."""
    count = 0
    for file in files_to_read(path, files_in):
        with _opened(file) as reader:
            count += int(reader.num_records())
    return count


def tables(path: Path) -> Iterator[Table]:
    """Yield the examples, some megabytes at a time. Raises InputError if a record is none."""
    for file in files_to_read(path, files_in):
        with _opened(file) as reader:
            total = int(reader.num_records())
            records: list[bytes] = []
            for first in range(0, total, CHUNK_RECORDS):
                last = min(first + CHUNK_RECORDS, total)
                records += reader.read(list(range(first, last)))
                if sum(map(len, records)) > CHUNK_BYTES or last == total:
                    stop = np.cumsum(np.fromiter(map(len, records), np.int64, len(records)))
                    start = np.concatenate([[0], stop[:-1]])
                    data = np.frombuffer(b"".join(records), np.uint8)
                    yield table_of(data, start, stop, file, last - len(records))
                    records = []


def files_in(folder: Path) -> list[Path]:
    """Return the files of this format in a folder."""
    return [file for ending in ENDINGS for file in matching(folder, ending)]


@contextmanager
def _opened(file: Path) -> Iterator[Any]:  # of the package, which has no types
    try:
        from array_record.python.array_record_module import ArrayRecordReader
    except ImportError:
        raise MissingExtraError("array_record", "arrayrecord") from None
    with open_input(file) as held:
        try:
            reader = ArrayRecordReader(library_path(held))
            try:
                yield reader
            finally:
                reader.close()  # tells what is broken, too
        except RuntimeError as error:
            problem = shorten(str(error), 120) or "its end is missing"
            raise InputError(f"{shorten(str(file), 200)}: a broken ArrayRecord ({problem}); write it again") from None
