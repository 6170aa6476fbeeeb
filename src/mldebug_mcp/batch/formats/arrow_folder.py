"""Arrow files, and the folders that `datasets.Dataset.save_to_disk` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from mldebug_mcp.batch.formats.arrow import MOST_BYTES, Foreign, pieces_of, require, table_of
from mldebug_mcp.batch.part import Part, packed
from mldebug_mcp.batch.table import Table
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

NAME = "arrow"


def matches(path: Path, head: bytes) -> bool:
    """An Arrow file or stream, or a folder that holds some, directly or in its splits."""
    if path.is_dir():
        return any(path.glob("*.arrow")) or any(path.glob("*/*.arrow"))
    return head.startswith(b"ARROW1") or (path.suffix == ".arrow" and head.startswith(b"\xff\xff\xff\xff"))


def tables(path: Path) -> Iterator[Table]:
    """Yield the record batches of all files, in the order that the folder's state names, else of their names."""
    for file in _files(path):
        yield from part_tables(Part(file))


def parts(path: Path) -> list[Part]:
    """Return record batches that lie together, of about `MOST_BYTES`. Only what says how long they are is read."""
    found: list[Part] = []
    rows = 0
    for file in _files(path):
        with _opened(file) as pieces:
            groups = [(piece.num_rows, piece.nbytes) for piece in pieces]
        found += packed(file, groups, rows, MOST_BYTES)
        rows += sum(count for count, _ in groups)
    return found


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
        with pa.memory_map(str(file)) as source:
            yield _pieces(source)
    except (pa.ArrowException, OSError) as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(file), 200)}: a broken Arrow file ({problem}); save it again") from None


def rows(path: Path) -> int:
    """Return how many rows the files hold."""
    require()
    import pyarrow as pa

    count = 0
    for file in _files(path):
        try:
            with pa.memory_map(str(file)) as source:
                count += sum(piece.num_rows for piece in _pieces(source))
        except (pa.ArrowException, OSError):
            return count
    return count


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    if not any(path.glob("*.arrow")):
        splits = sorted({file.parent for file in path.glob("*/*.arrow")})
        names = [split.name for split in splits]
        if len(splits) > 1:
            raise InputError(
                f"{shorten(str(path), 160)}: holds the splits {', '.join(names[:8])}; give the folder of one of them, "
                "and another as --against to look for leakage"
            )
        return _files(splits[0])
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        named = [path / Path(str(one["filename"])).name for one in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError):
        named = []
    return [file for file in named if file.is_file()] or sorted(path.glob("*.arrow"))


def _pieces(source: Foreign) -> Iterator[Foreign]:
    import pyarrow as pa

    try:
        opened = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        yield from pa.ipc.open_stream(source)
        return
    for number in range(opened.num_record_batches):
        yield opened.get_batch(number)
