"""Rows in files of text and of columns: CSV, JSON and JSON lines; parquet and Arrow, which pyarrow reads."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from mldebug_mcp.batch.batch import coco_table, is_coco
from mldebug_mcp.batch.columns import (
    Column,
    Part,
    Table,
    from_mapping,
    from_records,
    has_usual_columns,
    packed,
    records_in,
    row_count,
)
from mldebug_mcp.batch.formats.files import Format, files_with, in_files, without_held_out
from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.core.access import entries, is_file, is_folder, library_path, matching, open_input, read_bytes
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.text import counted, shorten

CSV_CHARACTERS = 32 * 1024 * 1024
"""Characters of cells that one table holds."""
MAX_CELL = 64 * 1024 * 1024
"""Characters of a cell that are read."""


def _csv_matches(path: Path, head: bytes) -> bool:
    """Its name says so, and its first line names two columns or more."""
    return not is_folder(path) and path.suffix.lower() in (".csv", ".tsv") and _delimiter(head) is not None


def _csv_rows(path: Path) -> int:
    with _csv_lines(path) as lines:
        return sum(1 for _ in lines) - 1


def _csv_tables(path: Path) -> Iterator[Table]:
    """Yield the rows, some thousands at a time. Raises InputError if it cannot be read as a table."""
    with _csv_lines(path) as lines:
        names = next(lines)
        kept: list[list[str]] = []
        size = odd = 0
        for line in lines:
            if len(line) != len(names):
                odd += bool(line)
                continue
            kept.append(line)
            size += sum(map(len, line))
            if size > CSV_CHARACTERS:
                yield _csv_table(names, kept)
                kept, size = [], 0
        table = _csv_table(names, kept)
        if odd:
            table.notes.append(f"skipped {odd} line(s) with more or fewer cells than the header")
        yield table


CSV = Format("csv", _csv_matches, _csv_tables, _csv_rows)
"""CSV and TSV files with a header line: one row on each line. A column of numbers is read as numbers."""


def _delimiter(head: bytes) -> str | None:
    first = head.splitlines()[0].decode("utf-8", "replace") if head.splitlines() else ""
    found = max("\t,;", key=first.count)
    return found if found in first else None


@contextmanager
def _csv_lines(path: Path) -> Iterator[Iterator[list[str]]]:
    # The limit is the module's own and only ever rises here: texts are longer than its 128 KiB.
    csv.field_size_limit(MAX_CELL)
    try:
        with open_input(path) as file:
            delimiter = _delimiter(file.readline(1 << 20)) or ","
            file.seek(0)
            yield csv.reader(io.TextIOWrapper(file, "utf-8-sig", "replace", newline=""), delimiter=delimiter)
    except csv.Error as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(path), 200)}: not a CSV file ({problem}); save it again") from None


def _csv_table(names: list[str], lines: list[list[str]]) -> Table:
    columns = zip(*lines, strict=True) if lines else ([] for _ in names)
    return Table({name: _csv_column(list(cells)) for name, cells in zip(names, columns, strict=True)})


def _csv_column(cells: list[str]) -> Column:
    """Return whole numbers, else numbers, else the texts: what an empty cell stands for is not known."""
    kinds: tuple[Callable[[str], object], ...] = (int, float)
    for kind in kinds:
        try:
            return [kind(cell) for cell in cells]
        except ValueError:
            continue
    return list(cells)


JSONL_BYTES = 32 * 1024 * 1024
"""Bytes of lines that one table holds."""
MAX_LINE_BYTES = 64 * 1024 * 1024


def _json_lines_matches(path: Path, head: bytes) -> bool:
    """Its name says so, or its first line is a whole JSON object and another line follows."""
    if is_folder(path):
        return False
    first, newline, rest = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    if path.suffix in (".jsonl", ".ndjson"):
        return first[:1] == b"{"
    if not newline or not rest.strip() or first[:1] != b"{":
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _json_lines_rows(path: Path) -> int:
    with open_input(path) as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b"")) + 1


def _json_lines_tables(path: Path) -> Iterator[Table]:
    """Yield the lines, some thousands at a time. Lines that are not objects are skipped and counted."""
    records: list[dict[str, object]] = []
    size = row = broken = first_broken = 0
    any_row = False
    with open_input(path) as file:
        number = 1
        while line := file.readline(MAX_LINE_BYTES):
            here, number = number, number + line.endswith(b"\n")
            if not line.strip():
                continue
            record = object_in(line)
            if record is None:
                broken, first_broken = broken + 1, first_broken or here
                continue
            records.append(record)
            size += len(line)
            if size > JSONL_BYTES:
                yield from_records(records, first=row)
                row, size, records, any_row = row + len(records), 0, [], True
    if not records and not any_row:
        raise InputError(f"{shorten(str(path), 200)}: no line holds a JSON object; give one row on each line")
    last = from_records(records, first=row)
    if broken:
        last.notes.append(f"skipped {broken} line(s) that are not JSON objects, first line {first_broken}")
    yield last


def in_folder(found: Format, endings: tuple[str, ...], *, may_be_weights: bool = False) -> Format:
    """Return the format of a folder of such files: those that are not held out are one data set.

    Where files of weights look the same, each file needs a column with a usual name of a batch.
    """
    files_in = files_with(endings)

    def matches(path: Path, _: bytes) -> bool:
        return is_folder(path) and bool(files_in(path))

    def tables(path: Path) -> Iterator[Table]:
        files, first = without_held_out(files_in(path)), 0
        note = f"read as one data set of {counted(len(files), 'file')} ({found.name})"
        for file in files:
            rows = 0
            for table in found.tables(file):
                if may_be_weights and not has_usual_columns(table.columns):
                    raise InputError(
                        f"{shorten(str(file), 200)}: no column is called as those of a batch, so these may be weights; "
                        "give a folder of batches alone"
                    )
                without = {name: [first + row for row in lacking] for name, lacking in table.rows_without.items()}
                yield replace(table, rows_without=without, notes=[note, *table.notes], shard=file.name)
                rows += max((row_count(column) for column in table.columns.values()), default=0)
            first += rows

    def rows(path: Path) -> int | None:
        counts = [found.rows(file) for file in without_held_out(files_in(path))]
        return None if None in counts else sum(count for count in counts if count is not None)

    return Format(found.name, matches, tables, rows, endings, files_in)


JSON_LINES = Format("jsonl", _json_lines_matches, _json_lines_tables, _json_lines_rows)
"""JSON lines: one row on each line."""


def object_in(line: bytes) -> dict[str, object] | None:
    """Return the row on a line; None for anything but a JSON object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


MAX_JSON_BYTES = 1024**3
MAX_LISTS = 2_000_000
"""Lists and objects in a file: each takes at least 56 bytes of memory, however little its text."""
MAX_PRINTED = 100_000
"""Bytes of a file that are searched for printed tensors."""
PRINTED = "this is what print() shows of tensors; save the batch itself, with torch.save(batch, 'batch.pt')"
_WRAPPERS = ("batch", "data", "rows", "examples", "inputs", "train")


def _json_matches(_: Path, head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _json_tables(path: Path) -> Iterator[Table]:
    name = shorten(str(path), 200)
    content = read_bytes(path, MAX_JSON_BYTES, "give it as JSONL or parquet")
    if content.count(b"[") + content.count(b"{") > MAX_LISTS:
        raise InputError(f"{name}: more than {MAX_LISTS:,} lists and objects; give it as JSONL or parquet")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else shorten(str(error), 120)
        again = (
            PRINTED
            if any(word in content[:MAX_PRINTED] for word in (b"tensor(", b"array("))
            else "save the batch again"
        )
        raise InputError(f"{name}: not JSON ({problem}); {again}") from None
    yield table_of_json(value, name)


JSON = Format("json", _json_matches, _json_tables)
"""A JSON file: columns of rows, rows of columns, one row, or any of these under a key such as "batch" or "data"."""


def table_of_json(value: object, name: str) -> Table:
    """Return a JSON value as a table."""
    if isinstance(value, dict):
        if is_coco(value):
            return coco_table(value)
        inner = next((value[key] for key in _WRAPPERS if isinstance(value.get(key), (dict, list)) and value[key]), None)
        if isinstance(inner, dict) or (isinstance(inner, list) and records_in(inner)):
            return table_of_json(inner, name)
        return from_mapping(value)
    records = records_in(value)
    if records is not None:
        return from_records(records)
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        return from_mapping({"input_ids": value})
    raise InputError(f'{name}: holds no rows; give columns such as {{"input_ids": [[...]], "labels": [[...]]}}')


# Arrow record batches → tables, without copying where the numbers lie one after the other.


Foreign: TypeAlias = Any
"""An object of pyarrow, which is optional and has no types."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of columns that are looked at together. Smaller parts cost more calls, larger ones more memory."""
MAX_PIECE_ROWS = 1_000_000
"""Rows of a record batch that are looked at together, however few bytes they take."""
MANY_ROWS = 1_000_000
"""Rows, above which a file must have bytes for them: few bytes can stand for any number."""
ROWS_PER_BYTE = 100
"""More rows than this are not a data set. Chosen by hand: each row holds at least a token, compressed or not."""


def _require_pyarrow() -> None:
    """Raise MissingExtraError if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtraError("pyarrow", "batch") from None


def _check_rows(rows: int, file: BinaryIO) -> None:
    """Raise ValueError if a file claims far more rows than data sets have for its bytes: empty rows take none."""
    size = os.fstat(file.fileno()).st_size
    if rows > MANY_ROWS + ROWS_PER_BYTE * size:
        raise ValueError(f"{rows:,} rows in {size:,} bytes")


def _pieces_of_batch(batch: Foreign) -> Iterator[Foreign]:
    """Yield a record batch in parts of at most about `MOST_BYTES`."""
    rows = min(MAX_PIECE_ROWS, max(1, batch.num_rows * MOST_BYTES // max(batch.nbytes, 1)))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def _table_of_batch(piece: Foreign) -> Table:
    """Return a record batch as a table."""
    return Table({str(name): _column_of_batch(piece.column(number)) for number, name in enumerate(piece.schema.names)})


def _column_of_batch(column: Foreign) -> Column:
    import pyarrow as pa

    kind = column.type
    if column.null_count:
        return list(column.to_pylist())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = kind.value_type
        if pa.types.is_integer(values) or pa.types.is_boolean(values):
            return _ragged(column)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return list(column.to_pylist())


def _ragged(column: Foreign) -> Column:
    offsets = np.asarray(column.offsets.to_numpy(), np.int64)
    values = column.values
    if values.null_count:
        return list(column.to_pylist())
    first, last = int(offsets[0]), int(offsets[-1])
    flat = np.asarray(values.slice(first, last - first).to_numpy(zero_copy_only=False))
    return Ragged(flat.astype(np.int8) if flat.dtype == np.bool_ else flat, offsets - first)


MOST_ROWS = 16_384
"""Rows of a parquet file that are decoded together."""


def _parquet_rows(file: Path) -> int:
    """Return how many rows a file says that it holds."""
    with _opened_parquet(file) as opened:
        rows: int = opened.metadata.num_rows
        return rows


def _parquet_tables(files: list[Path]) -> Iterator[Table]:
    return chain.from_iterable(map(_parquet_part_tables, _parquet_parts(files)))


def _parquet_parts(files: list[Path]) -> list[Part]:
    """Return groups of rows that lie together, of about `MOST_BYTES` in the files."""
    parts = packed(((file, _groups_of_rows(file)) for file in files), MOST_BYTES)
    return [replace(part, shard=part.file.name) for part in parts] if len(files) > 1 else parts


def _parquet_part_tables(part: Part) -> Iterator[Table]:
    with _opened_parquet(part.file) as opened:
        groups = range(part.start, part.stop)
        for batch in opened.iter_batches(batch_size=_rows_at_once(opened.metadata), row_groups=groups):
            yield from (replace(_table_of_batch(piece), shard=part.shard) for piece in _pieces_of_batch(batch))


PARQUET = in_files(
    "parquet", lambda head: head.startswith(b"PAR1"), _parquet_tables, _parquet_rows, (".parquet",),
    parts=_parquet_parts, part_tables=_parquet_part_tables,
)  # fmt: skip
"""Parquet files, read through pyarrow one record batch at a time."""


def _groups_of_rows(file: Path) -> list[tuple[int, int]]:
    with _opened_parquet(file) as opened:
        about = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
        return [(group.num_rows, group.total_byte_size) for group in about]


@contextmanager
def _opened_parquet(file: Path) -> Iterator[Foreign]:
    _require_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_input(file) as stream, pq.ParquetFile(library_path(stream)) as opened:
            _check_rows(opened.metadata.num_rows, stream)
            yield opened
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(file), 200)}: a broken parquet file ({problem}); write it again") from None


def _rows_at_once(metadata: Foreign) -> int:
    """Return how many rows to read together: files store numbers in about half of what they take in memory."""
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    rows: int = MOST_BYTES // 2 * metadata.num_rows // max(size, 1)
    return max(1, min(MOST_ROWS, rows))


MAX_STATE = 16 * 1024 * 1024
"""Bytes of the description of a data set, or of a stream's schema."""
MAX_SPLITS = 200
STREAM_MARK = b"\xff\xff\xff\xff"
"""First bytes of a stream of Arrow. Source: the IPC format's continuation marker."""


def _arrow_matches(path: Path, head: bytes) -> bool:
    """An Arrow file or stream, or a folder that holds some, directly or in its splits."""
    if is_folder(path):
        return bool(matching(path, ".arrow") or _splits(path))
    return head.startswith(b"ARROW1") or _is_stream(head)


def _arrow_tables(path: Path) -> Iterator[Table]:
    return chain.from_iterable(map(_arrow_part_tables, map(Part, _arrow_files(path))))


def _arrow_parts(path: Path) -> list[Part]:
    """Return record batches that lie together, of about `MOST_BYTES`. Only what says how long they are is read."""
    return packed(((file, _record_batches(file)) for file in _arrow_files(path)), MOST_BYTES)


def _arrow_part_tables(part: Part) -> Iterator[Table]:
    """Yield the record batches of a part; one that does not say where it stops is the whole file."""
    with _opened_arrow(part.file) as pieces:
        for batch in islice(pieces, part.start, part.stop or None):
            yield from map(_table_of_batch, _pieces_of_batch(batch))


def _arrow_rows(path: Path) -> int:
    return sum(rows for file in _arrow_files(path) for rows, _ in _record_batches(file))


ARROW = Format("arrow", _arrow_matches, _arrow_tables, _arrow_rows, (".arrow",), None, _arrow_parts, _arrow_part_tables)
"""Arrow files, and the folders that `datasets.Dataset.save_to_disk` writes."""


def _is_stream(head: bytes) -> bool:
    """Whether a file begins with a message of an Arrow stream: a mark, and a length that is padded to 8 bytes.

    Source: https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format
    """
    length = int.from_bytes(head[4:8], "little")
    return head.startswith(STREAM_MARK) and 0 < length < MAX_STATE and length % 8 == 0


def _record_batches(file: Path) -> list[tuple[int, int]]:
    with _opened_arrow(file) as pieces:
        return [(piece.num_rows, piece.nbytes) for piece in pieces]


@contextmanager
def _opened_arrow(file: Path) -> Iterator[Iterator[Foreign]]:
    _require_pyarrow()
    import pyarrow as pa

    try:
        with open_input(file) as stream, pa.memory_map(library_path(stream)) as source:
            yield _checked_batches(source, stream)
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(file), 200)}: a broken Arrow file ({problem}); save it again") from None


def _arrow_files(path: Path) -> list[Path]:
    """Return a file, or those of a folder in the order that its state names, else of their names."""
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
        return _arrow_files(splits[0])
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


def _checked_batches(source: Foreign, file: BinaryIO) -> Iterator[Foreign]:
    rows = 0
    for batch in _unchecked_batches(source):
        rows += batch.num_rows
        _check_rows(rows, file)
        # Looking at a batch whose offsets and lengths do not fit its bytes would end the process.
        batch.validate(full=True)
        yield batch


def _unchecked_batches(source: Foreign) -> Iterator[Foreign]:
    import pyarrow as pa

    try:
        opened = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        yield from pa.ipc.open_stream(source)
        return
    for number in range(opened.num_record_batches):
        yield opened.get_batch(number)
