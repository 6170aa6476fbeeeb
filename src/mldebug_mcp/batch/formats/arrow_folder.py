"""Arrow files, and the folders that `datasets.Dataset.save_to_disk` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from mldebug_mcp.batch.columns import Part, Table, packed
from mldebug_mcp.batch.formats.parquet import MOST_BYTES, Foreign, check_rows, pieces_of, require, table_of
from mldebug_mcp.core.access import entries, is_file, is_folder, library_path, matching, open_input, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "arrow"
MAX_STATE = 16 * 1024 * 1024
MAX_SPLITS = 200
STREAM_MARK = b"\xff\xff\xff\xff"


def matches(path: Path, head: bytes) -> bool:
    """An Arrow file or stream, or a folder that holds some, directly or in its splits."""
    if is_folder(path):
        return bool(matching(path, ".arrow") or _splits(path))
    return head.startswith(b"ARROW1") or _is_stream(head)


def _is_stream(head: bytes) -> bool:
    """Whether a file begins with a message of an Arrow stream: a mark, and a length that is padded to 8 bytes.

    Source: https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format
    """
    length = int.from_bytes(head[4:8], "little")
    return head.startswith(STREAM_MARK) and 0 < length < MAX_STATE and length % 8 == 0


def tables(path: Path) -> Iterator[Table]:
    """Yield the record batches of all files, in the order that the folder's state names, else of their names."""
    for file in _files(path):
        yield from part_tables(Part(file))


def parts(path: Path) -> list[Part]:
    """Return record batches that lie together, of about `MOST_BYTES`. Only what says how long they are is read."""
    return packed(((file, _groups(file)) for file in _files(path)), MOST_BYTES)


def _groups(file: Path) -> list[tuple[int, int]]:
    with _opened(file) as pieces:
        return [(piece.num_rows, piece.nbytes) for piece in pieces]


def part_tables(part: Part) -> Iterator[Table]:
    """Yield the record batches of a part; one that does not say where it stops is the whole file."""
    with _opened(part.file) as pieces:
        for batch in islice(pieces, part.start, part.stop or None):
            yield from map(table_of, pieces_of(batch))


@contextmanager
def _opened(file: Path) -> Iterator[Iterator[Foreign]]:
    require()
    import pyarrow as pa

    try:
        with open_input(file) as held, pa.memory_map(library_path(held)) as source:
            yield _pieces(source, held)
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(file), 200)}: a broken Arrow file ({problem}); save it again") from None


def rows(path: Path) -> int:
    """Return how many rows the files hold."""
    count = 0
    for file in _files(path):
        with _opened(file) as pieces:
            count += sum(piece.num_rows for piece in pieces)
    return count


def _files(path: Path) -> list[Path]:
    if not is_folder(path):
        return [path]
    if not matching(path, ".arrow"):
        splits = _splits(path)
        names = [split.name for split in splits]
        if len(splits) > 1:
            raise InputError(
                f"{shorten(str(path), 160)}: holds the splits {', '.join(names[:8])}; give the folder of one of them, "
                "and another as --against to look for leakage"
            )
        return _files(splits[0])
    try:
        state = json.loads(read_bytes(path / "state.json", MAX_STATE))
        named = [path / Path(str(file["filename"])).name for file in state["_data_files"]]
    except (OSError, InputError, ValueError, KeyError, TypeError, RecursionError):
        named = []
    return [file for file in named if is_file(file)] or matching(path, ".arrow")


def _splits(path: Path) -> list[Path]:
    """Return the folders below that hold Arrow files."""
    try:
        return [entry for entry in entries(path, MAX_SPLITS) if is_folder(entry) and matching(entry, ".arrow")]
    except (OSError, InputError):
        return []


def _pieces(source: Foreign, file: BinaryIO) -> Iterator[Foreign]:
    rows = 0
    for batch in _unchecked(source):
        rows += batch.num_rows
        check_rows(rows, file)
        # Looking at a batch whose offsets and lengths do not fit its bytes would end the process.
        batch.validate(full=True)
        yield batch


def _unchecked(source: Foreign) -> Iterator[Foreign]:
    import pyarrow as pa

    try:
        opened = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        yield from pa.ipc.open_stream(source)
        return
    for number in range(opened.num_record_batches):
        yield opened.get_batch(number)
