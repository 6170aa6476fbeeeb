"""SQLite databases of trackers: MLflow's store, Trackio's projects and the offline runs of neptune-scale.

A database is opened read-only, with nothing in its schema trusted, and every query is interrupted when it takes too
long. Schemas: mlflow/store/tracking/dbmodels/models.py, trackio/sqlite_storage.py, and
neptune_api/proto/neptune_pb/ingest/v1/pub/ingest.proto, as neptune-scale 0.30 writes it.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np

from mldebug_mcp.core import protobuf
from mldebug_mcp.core.access import is_file, open_input, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.protobuf import Field
from mldebug_mcp.core.text import shorten
from mldebug_mcp.core.writing import temporary_folder
from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.documents import Points, add_points
from mldebug_mcp.logs.formats.long_columns import LongTable
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.log_file import LogFile

NAME = "sqlite"

_SECONDS = 120.0
_MAX_POINTS = 50_000_000
_MAX_VALUE_BYTES = 16 * 1024 * 1024
_MLFLOW = {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}
_TRACKIO = {"run_name", "step", "metrics"}
_NEPTUNE = {"operation_type", "operation"}
_MAX_COPIED = 256 * 1024 * 1024
"""Bytes of a database and its journal that are copied to be read."""
_LARGEST = 1.7e308
"""MLflow stores an infinity as the largest float."""

_UPDATE = 0
_STEP_FIELD, _ASSIGN, _APPEND = 1, 4, 8
_FLOAT, _INTEGER, _BOOLEAN, _TEXT = 1, 3, 4, 5
_MILLIONTHS = 1e-6
"""Numbers of the messages of neptune-scale: the kind of an operation, fields, and the unit of a step's fraction."""

OF_AIM = (
    "Aim keeps its metrics in RocksDB files that are not read here. "
    "In the folder that holds `.aim`, run `aim storage reindex`; "
    'then write a CSV file for each run with: `python -c "import aim, csv; '
    "runs = aim.Repo('.').query_metrics('True').iter_runs(); "
    "points = lambda m: zip(m.data.items_list()[0], m.data.items_list()[1][0]); "
    "name = lambda m: '/'.join([*map(str, m.context.to_dict().values()), m.name]); "
    "rows = lambda run: [(name(m), *point) for m in run for point in points(m)]; "
    "[csv.writer(open(run.run.hash + '.csv', 'w')).writerows([('name', 'step', 'value'), *rows(run)]) for run in runs]"
    '"`'
)
"""Why the store of Aim is refused, and what exports it: tried with Aim 3.29.1, whose queries need the index."""


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read one run of the database; the notes name the others."""
    _check_whole(file)
    try:
        with _opened(file) as database:
            columns = _columns(database, "metrics")
            if columns >= _MLFLOW:
                _read_mlflow(database, file, builder)
            elif columns >= _TRACKIO:
                _read_trackio(database, file, builder, columns)
            elif _columns(database, "run_operations") >= _NEPTUNE:
                _read_neptune(database, builder)
            elif file.path.name == "run_metadata.sqlite":
                raise InputError(f"{file.name}: {OF_AIM}")
            else:
                raise InputError(
                    f"{file.name}: an SQLite database, but not MLflow's, Trackio's or Neptune's: it has no metrics "
                    "table of theirs; export the metrics as CSV"
                )
    except sqlite3.Error as error:
        raise InputError(
            f"{file.name}: the database cannot be read ({shorten(str(error), 120)}); "
            "copy it again, or export the metrics as CSV"
        ) from None


def _check_whole(file: LogFile) -> None:
    """Refuse a database that is cut off, as SQLite reads on in one as if rows had never been there.

    Source of the layout: https://www.sqlite.org/fileformat2.html#the_database_header
    """
    with file.stream() as stream:
        header = stream.read(100)
    if len(header) == 100:
        page_size, pages, changes, valid_for = (
            int.from_bytes(header[a:b]) for a, b in ((16, 18), (28, 32), (24, 28), (92, 96))
        )
        whole = (65536 if page_size == 1 else page_size) * pages
        if changes != valid_for or file.size >= whole:
            return
    raise InputError(f"{file.name}: the database is cut off; copy it again, whole")


@contextlib.contextmanager
def _opened(file: LogFile) -> Iterator[sqlite3.Connection]:
    """Open a database without leaving anything next to it.

    One that nobody is writing is opened as immutable, without a lock even. Of one whose journal (`-wal`) holds records
    the index in shared memory (`-shm`) is needed: where its writer holds one, that is used; where none is there, SQLite
    would make one and leave it, so a copy is read. Immutable, it would be read without its latest records.
    """
    place = file.path.resolve()
    if not _is_live(place) or is_file(place.with_name(place.name + "-shm")):
        mode = "mode=ro" if _is_live(place) else "mode=ro&immutable=1"
        with contextlib.closing(_connection(place, mode)) as database:
            _check_identity(database, file)
            yield database
        return
    journal = place.with_name(place.name + "-wal")
    if place.stat().st_size + journal.stat().st_size > _MAX_COPIED:
        raise InputError(f"{file.name}: its journal has records that are not in it; open it once with the program "
                         "that wrote it, or run `sqlite3 FILE 'PRAGMA wal_checkpoint'`")  # fmt: skip
    with temporary_folder("mldebug-sqlite-") as folder:
        for path in (place, journal):
            with open_input(path) as source, (Path(folder) / path.name).open("wb") as target:
                shutil.copyfileobj(source, target)
        with contextlib.closing(_connection(Path(folder) / place.name, "mode=ro")) as database:
            yield database


def _connection(place: Path, mode: str) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{quote(str(place))}?{mode}", uri=True)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    end = time.monotonic() + _SECONDS
    database.set_progress_handler(lambda: time.monotonic() > end, 100_000)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA query_only = ON")
    database.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
    return database


def _check_identity(database: sqlite3.Connection, file: LogFile) -> None:
    """Refuse a file that took the place of the one that was looked at: SQLite opens by name, when it first reads."""
    database.execute("PRAGMA schema_version").fetchone()
    status = file.path.resolve().lstat()
    if (status.st_dev, status.st_ino) != file.identity:
        raise InputError(f"{file.name}: another file was put in its place while it was opened; try again")


def _is_live(path: Path) -> bool:
    """Say whether somebody writes the database: its journal holds something. One outside the roots is refused."""
    journal = path.with_name(path.name + "-wal")
    require(journal)
    if not is_file(journal) or not journal.stat().st_size:
        return False
    with open_input(journal):
        return True


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns of a table, none if it is not a table (a view may be anything)."""
    kind = database.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if kind != ("table",):
        return set()
    return {str(row[0]) for row in database.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def _read_mlflow(database: sqlite3.Connection, file: LogFile, builder: RunBuilder) -> None:
    builder.formats[-1:] = ["mlflow"]
    found = database.execute(
        "SELECT run_uuid, count(*) FROM metrics GROUP BY run_uuid ORDER BY min(timestamp)"
    ).fetchall()
    keys = {_text(key): key for key, _ in found}
    points = {_text(key): count for key, count in found}
    labels: dict[str, str] = {}
    if _columns(database, "runs") >= {"run_uuid", "name", "lifecycle_stage"}:
        runs = database.execute("SELECT run_uuid, name, lifecycle_stage FROM runs").fetchall()
        labels = {_text(run): _text(name or "") for run, name, _ in runs}
        deleted = {_text(run) for run, _, stage in runs if stage == "deleted"}
        points = {run: count for run, count in points.items() if run not in deleted} or points
    run = keys[builder.choose(str(file.path), points, labels)]
    query = "SELECT key, timestamp, step, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY timestamp, rowid"
    add_points(builder, _by_metric(database.execute(query, (run,)), builder))
    if _columns(database, "params") >= {"key", "value", "run_uuid"}:
        params = database.execute("SELECT key, value FROM params WHERE run_uuid = ? LIMIT 2000", (run,))
        builder.configure({_text(key): value for key, value in params}, NAME)


def _by_metric(rows: Iterator[tuple[object, ...]], builder: RunBuilder) -> dict[str, Points]:
    """Return points by metric from rows of key, time, step, value and whether it is NaN."""
    gathered: dict[str, tuple[list[float], list[float], list[float]]] = {}
    odd = 0
    for count, (key, when, step, value, is_nan) in enumerate(rows):
        numbers = isinstance(when, int | float) and isinstance(step, int | float) and isinstance(value, int | float)
        if not numbers or count >= _MAX_POINTS or (_text(key) not in gathered and len(gathered) >= MAX_METRICS):
            odd += 1
            continue
        times, steps, values = gathered.setdefault(_text(key), ([], [], []))
        times.append(when)  # type: ignore[arg-type]
        steps.append(step)  # type: ignore[arg-type]
        values.append(math.nan if is_nan else _unbounded(value))  # type: ignore[arg-type]
    if odd:
        builder.note(f"skipped {odd} row(s) of the metrics table that hold no numbers or are too many")
    return {key: Points(*(np.array(axis, dtype=np.float64) for axis in axes)) for key, axes in gathered.items()}


def _unbounded(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) > _LARGEST else value


def _read_trackio(database: sqlite3.Connection, file: LogFile, builder: RunBuilder, columns: set[str]) -> None:
    builder.formats[-1:] = ["trackio"]
    by = "run_id" if "run_id" in columns else "run_name"
    rows = database.execute(f"SELECT {by}, max(run_name), count(*) FROM metrics GROUP BY {by} ORDER BY min(rowid)")  # noqa: S608 - one of two names
    found = rows.fetchall()
    keys = {_text(key): key for key, _, _ in found}
    points = {_text(key): count for key, _, count in found}
    labels = {_text(key): _text(name) for key, name, _ in found}
    run = keys[builder.choose(str(file.path), points, labels)]
    broken = 0
    for step, text in database.execute(f"SELECT step, metrics FROM metrics WHERE {by} = ? ORDER BY rowid", (run,)):  # noqa: S608
        values = _object(text)
        if values is None:
            broken += 1
        else:
            builder.record({**values, "step": step})
    if broken:
        builder.note(f"skipped {broken} row(s) of the metrics table that are not JSON objects")
    if by in _columns(database, "configs"):
        for (text,) in database.execute(f"SELECT config FROM configs WHERE {by} = ? LIMIT 1", (run,)):  # noqa: S608
            given = {name: value for name, value in (_object(text) or {}).items() if not name.startswith("_")}
            builder.configure(given, NAME)


def _object(text: object) -> dict[str, object] | None:
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    return parse_object(text) if isinstance(text, str) else None


def _text(value: object) -> str:
    """Return a name as text: a column of SQLite may hold anything."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def _read_neptune(database: sqlite3.Connection, builder: RunBuilder) -> None:
    """Read the metrics and configurations of all updates: a message for each."""
    builder.formats[-1:] = ["neptune"]
    table, settings, damaged = LongTable(), dict[str, object](), 0
    query = "SELECT operation FROM run_operations WHERE operation_type = ? ORDER BY sequence_id"
    for (operation,) in database.execute(query, (_UPDATE,)):
        try:
            _take_operation(bytes(operation), table, settings)
        except (ValueError, TypeError, struct.error):
            damaged += 1
    table.give(builder)
    builder.configure(settings, "neptune")
    if damaged:
        builder.note(f"{damaged} operation(s) of the database are damaged and left out")


def _take_operation(data: bytes, table: LongTable, settings: dict[str, object]) -> None:
    step = 0.0
    for part in protobuf.fields(data, 0, len(data)):
        if part.wire != protobuf.BYTES:
            continue
        if part.number == _STEP_FIELD:
            step = _step_of(data, part)
        elif part.number in (_ASSIGN, _APPEND):
            name, field = protobuf.map_entry(data, part)
            value = _entry_value(data, field) if name and field is not None else None
            if part.number == _ASSIGN and value is not None:
                settings[name] = value
            elif part.number == _APPEND and isinstance(value, float):
                table.add(name, step, value)


def _step_of(data: bytes, message: Field) -> float:
    parts = {part.number: part.value for part in protobuf.fields(data, message.start, message.end)}
    return parts.get(1, 0) + _MILLIONTHS * parts.get(2, 0)


def _entry_value(data: bytes, message: Field) -> object:
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _FLOAT and part.wire == protobuf.FIXED64:
            return float(struct.unpack("<d", data[part.start : part.end])[0])
        if part.number == _INTEGER and part.wire == protobuf.VARINT:
            return protobuf.signed(part.value)
        if part.number == _BOOLEAN and part.wire == protobuf.VARINT:
            return bool(part.value)
        if part.number == _TEXT and part.wire == protobuf.BYTES:
            return protobuf.text(data, part)
    return 0.0
