"""Files of trackers: names of metrics, steps and values, as messages, events or rows of a database.

`LongTable` gathers such rows, whatever holds them.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from mldebug_mcp.core import protobuf
from mldebug_mcp.core.access import is_file, open_input, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.paths import temporary_folder
from mldebug_mcp.core.protobuf import Field
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.documents import Points, add_points
from mldebug_mcp.logs.json_yaml import parse_json, parse_object
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import to_number

if TYPE_CHECKING:
    import sqlite3

# Long tables: rows of the name of a metric, a step and a value, whatever holds them, → the points of each metric.


NO_STEP = frozenset({-(2**31), -(2**63)})
"""Steps that stand for none: ClearML writes a single value at the smallest integer."""


class LongTable:
    """Gathers rows in file order."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[list[float], list[float], list[float]]] = {}
        self._count = 0
        self.single: dict[str, float] = {}
        self.left_out = 0

    def add(self, name: str, step: float, value: float, time: float | None = None) -> None:
        """Take a row, by default as one written after those before it.

        A step that stands for none makes the value a result of the run, and no point of a curve.
        """
        if step in NO_STEP:
            self.single[name] = value
            return
        if name not in self._rows and len(self._rows) >= MAX_METRICS:
            self.left_out += 1
            return
        times, steps, values = self._rows.setdefault(name, ([], [], []))
        times.append(self._count if time is None else time)
        steps.append(step)
        values.append(value)
        self._count += 1

    def give(self, builder: RunBuilder) -> None:
        """Put the metrics into the builder, and name what is not a curve."""
        points = {
            name: Points(*(np.array(axis, dtype=np.float64) for axis in axes)) for name, axes in self._rows.items()
        }
        add_points(builder, points)
        if self.single:
            shown = ", ".join(list(self.single)[:5])
            builder.note(f"{len(self.single)} value(s) were logged without a step and are no curve: {shown}")
        if self.left_out:
            builder.note(f"left out {self.left_out:,} row(s) of more than {MAX_METRICS} metrics")


Row = tuple[str, float, float]
"""The name of a metric, its step and its value."""


def read_messages(
    file: LogFile,
    builder: RunBuilder,
    records: Iterable[bytes | None],
    number: int,
    row_of: Callable[[bytes, protobuf.Field], Row | None],
) -> None:
    """Read the rows that stand in messages of protocol buffers; what is damaged is counted.

    Args:
        file: Where they are from.
        builder: Where the metrics go.
        records: The messages, None for one that is damaged.
        number: The field of a message that holds a row.
        row_of: Returns the row in such a field, None if it holds none; raises ValueError where it is broken.
    """
    table = LongTable()
    damaged = 0
    for record in records:
        try:
            damaged += record is None
            for part in protobuf.fields(record or b"", 0, len(record or b"")):
                if (
                    part.number == number
                    and part.wire == protobuf.BYTES_WIRE_TYPE
                    and (row := row_of(record or b"", part))
                ):
                    table.add(*row)
        except (ValueError, struct.error):
            damaged += 1
    table.give(builder)
    if damaged:
        builder.note(f"{file.path.name}: {damaged} record(s) damaged or cut off are left out")


BLOCK = 32 * 1024
_HEADER_BYTES = 7
_FULL, _FIRST, _LAST = 1, 2, 4
_MAX_RECORD = 64 * 1024 * 1024
_HISTORY, _SUMMARY, _CONFIG, _RUN = 2, 3, 5, 17
_RUN_CONFIG = 4
_ITEM, _HISTORY_STEP = 1, 2
_OWN_KEYS = ("_wandb", "_timestamp", "_runtime")
"""Keys that W&B adds itself."""
_ITEM_KEY, _NESTED_KEY, _ITEM_INTEGER, _ITEM_NUMBER, _ITEM_TEXT, _JSON, _VALUE_JSON = 1, 2, 5, 6, 7, 8, 16


class WandbReader:
    """The `.wandb` file that Weights & Biases writes next to every run, online or offline.

    It is a LevelDB log of Record messages: blocks of 32 KiB, records cut at their edges, a checksum for each piece.
    Source: wandb/proto/wandb_internal.proto and core/pkg/leveldb in github.com/wandb/wandb.
    """

    NAME = "wandb"

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the history and the configuration; of a run without history, its summary."""
        summary: dict[str, object] = {}
        damaged = 0
        for record in records(file.pieces(BLOCK)):
            if record is None:
                damaged += 1
                continue
            try:
                _take_record(record, builder, summary)
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
    first = _HEADER_BYTES  # the file's own header stands in the first block
    for block in blocks:
        at, first = first, 0
        while len(block) - at >= _HEADER_BYTES:
            checksum, length, kind = struct.unpack_from("<IHB", block, at)
            if kind == 0 and length == 0:
                break  # the padding at the end of a block
            start, at = at + _HEADER_BYTES, at + _HEADER_BYTES + length
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


def _take_record(record: bytes, builder: RunBuilder, summary: dict[str, object]) -> None:
    for part in protobuf.fields(record, 0, len(record)):
        if part.wire != protobuf.BYTES_WIRE_TYPE:
            continue
        if part.number == _HISTORY:
            builder.record(_history(record, part))
        elif part.number == _SUMMARY:
            summary.update(_items(record, part))
        elif part.number == _CONFIG:
            builder.configure(_items(record, part), WandbReader.NAME)
        elif part.number == _RUN:
            for inner in protobuf.fields(record, part.start, part.end):
                if inner.number == _RUN_CONFIG and inner.wire == protobuf.BYTES_WIRE_TYPE:
                    builder.configure(_items(record, inner), WandbReader.NAME)


def _history(data: bytes, message: Field) -> dict[str, object]:
    """Return the values of one call of `wandb.log`; `_step` counts the calls, unless it was given."""
    values = _items(data, message)
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _HISTORY_STEP and part.wire == protobuf.BYTES_WIRE_TYPE and "_step" not in values:
            number = next((step for step in protobuf.fields(data, part.start, part.end) if step.number == 1), None)
            values["_step"] = protobuf.signed(number.value) if number is not None else 0
    return values


def _items(data: bytes, message: Field) -> dict[str, object]:
    """Return the keys and values of a history, summary or configuration message."""
    values: dict[str, object] = {}
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _ITEM and part.wire == protobuf.BYTES_WIRE_TYPE:
            key, value = _item(data, part)
            if key and value is not None and not key.startswith(_OWN_KEYS):
                values[key] = value
    return values


def _item(data: bytes, message: Field) -> tuple[str, object]:
    key: list[str] = []
    value: object = None
    for part in protobuf.fields(data, message.start, message.end):
        if part.number in (_ITEM_KEY, _NESTED_KEY):
            key.append(protobuf.text(data, part))
        elif part.number in (_VALUE_JSON, _JSON):
            value = parse_json(protobuf.text(data, part))
        elif part.number == _ITEM_NUMBER:
            (value,) = struct.unpack("<d", data[part.start : part.end])
        elif part.number == _ITEM_INTEGER:
            value = protobuf.zigzag(part.value)
        elif part.number == _ITEM_TEXT:
            value = protobuf.text(data, part)
    return "/".join(key), value


_SCALAR_FIELD = 13
_SCALAR_KEY, _SCALAR_STEP, _SCALAR_VALUE = 1, 2, 5
_VALUE_NUMBER = 1


class SwanlabReader:
    """The `.swanlab` file of a run of SwanLab: framed as W&B's file is, with a message for each scalar.

    Source: written by swanlab 0.10.3. A record holds field 13 for a scalar: its key, its step, its time and its value.
    """

    NAME = "swanlab"

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read every scalar; media and console lines are passed over.

        SwanLab keeps the first value of each step. Of a training that goes back it drops the steps logged before.
        """
        reached: dict[str, float] = {}
        back: list[tuple[float, float]] = []

        def row_of(data: bytes, scalar: protobuf.Field) -> Row | None:
            row = _swanlab_row(data, scalar)
            if row is not None:
                name, step, _ = row
                if step < reached.get(name, step):
                    back.append((reached[name], step))
                reached[name] = step
            return row

        read_messages(file, builder, records(file.pieces(BLOCK)), _SCALAR_FIELD, row_of)
        if back:
            reached_step, step = back[0]
            builder.note(
                f"{file.path.name}: training goes back from step {figure(reached_step)} to {figure(step)} or earlier. "
                "SwanLab keeps the first value of each step: new values of steps logged before are not in the file"
            )


def _swanlab_row(data: bytes, scalar: protobuf.Field) -> Row | None:
    name, step, value = "", 0, 0.0  # a field that is 0 is not written
    for part in protobuf.fields(data, scalar.start, scalar.end):
        if part.number == _SCALAR_KEY and part.wire == protobuf.BYTES_WIRE_TYPE:
            name = protobuf.text(data, part)
        elif part.number == _SCALAR_STEP and part.wire == protobuf.VARINT_WIRE_TYPE:
            step = protobuf.signed(part.value)
        elif part.number == _SCALAR_VALUE and part.wire == protobuf.BYTES_WIRE_TYPE:
            value = _number(data, part)
    return (name, step, value) if name else None


def _number(data: bytes, message: protobuf.Field) -> float:
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _VALUE_NUMBER and part.wire == protobuf.FIXED64:
            return float(struct.unpack("<d", data[part.start : part.end])[0])
    return 0.0


PIECE = 1 << 20
MAX_RECORD = 1 << 24
"""Bytes of a record: images and embeddings are passed over, and no more is kept of a broken length."""
_LENGTH = struct.Struct("<Q")
_VALUES_FIELD = 1
_VALUE_STEP, _VALUE_TAG, _VALUE_SCALAR = 1, 2, 4


class VisualdlReader:
    """The `vdlrecords.*.log` of VisualDL: messages, each behind its length, with the values that were added together.

    Source: written by visualdl 2.5.3. A value holds its step (1), its tag (2), its time (3) and, for a scalar, its
    number as a float (4).
    """

    NAME = "visualdl"

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read every scalar; images, histograms and the like are passed over."""
        read_messages(file, builder, _records(file.pieces(PIECE)), _VALUES_FIELD, _visualdl_row)


def _records(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield the records, and None for what is cut off or broken at the end."""
    data = b""
    for piece in pieces:
        data += piece
        at = 0
        while len(data) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(data, at)
            if size > MAX_RECORD:
                yield None
                return
            if len(data) - at - _LENGTH.size < size:
                break
            at += _LENGTH.size
            yield data[at : at + size]
            at += size
        data = data[at:]
    if data:
        yield None


def _visualdl_row(data: bytes, value: protobuf.Field) -> Row | None:
    step, tag, number = 0, "", None  # a field that is 0 is not written
    for part in protobuf.fields(data, value.start, value.end):
        if part.number == _VALUE_STEP and part.wire == protobuf.VARINT_WIRE_TYPE:
            step = protobuf.signed(part.value)
        elif part.number == _VALUE_TAG and part.wire == protobuf.BYTES_WIRE_TYPE:
            tag = protobuf.text(data, part)
        elif part.number == _VALUE_SCALAR and part.wire == protobuf.FIXED32:
            number = float(struct.unpack("<f", data[part.start : part.end])[0])
    return (tag, step, number) if tag and number is not None else None


_MARKS = regex(r'"type": ?"(?:training_stats_scalar|metric_msg|parameter_msg|installed_packages)"')
_OF_THE_MACHINE = ("sys.", ":monitor:")
"""How the names begin of what the trackers measure of the machine."""


class ScalarEventsReader:
    """JSON lines of events, some of them scalars: ClearML's offline `metrics.jsonl` and Comet's `messages.json`.

    A line is one event, or a list of events. ClearML splits the name of a metric into `metric` and `variant`, and
    writes NaN and infinities as 0. Comet wraps each event into a `payload`.

    Source: written by clearml 2.1 and comet_ml 3.58.
    """

    NAME = "scalar events"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """Its lines are events of ClearML or Comet."""
        return file.head.lstrip()[:1] in ("{", "[") and _MARKS.search(file.head) is not None

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the scalars and the parameters among the events; the others are passed over."""
        table, broken, zeros = LongTable(), 0, 0
        parameters: dict[str, object] = {}
        for line in file.lines():
            if not line.strip():
                continue
            try:
                events = parse_json(line)
            except ValueError:
                broken += 1
                continue
            for event in _event_mappings(events):
                payload = event.get("payload")
                kind = event.get("type")
                if kind == "training_stats_scalar":
                    zeros += _take_scalar(event, _names(event, "metric", "variant"), "value", "iter", table)
                elif (
                    kind == "metric_msg" and isinstance(payload, Mapping) and isinstance(payload.get("metric"), Mapping)
                ):
                    metric = payload["metric"]
                    _take_scalar(metric, _names(metric, "metricName"), "metricValue", "step", table)
                elif kind == "parameter_msg" and isinstance(payload, Mapping):
                    parameters |= _parameter(payload.get("param"))
        table.give(builder)
        builder.configure(parameters, ScalarEventsReader.NAME)
        if zeros:
            builder.note(
                f"{zeros} value(s) are exactly 0: ClearML writes NaN and infinities as 0 in this file, so that these "
                "may have been NaN; its console log says so"
            )
        if broken:
            builder.note(f"{shorten(file.path.name, 80)}: skipped {broken} line(s) that are not JSON")


def _event_mappings(events: object) -> Iterator[Mapping[str, object]]:
    yield from (event for event in (events if isinstance(events, list) else [events]) if isinstance(event, Mapping))


def _names(event: Mapping[str, object], *keys: str) -> str:
    return "/".join(text for key in keys if isinstance(text := event.get(key), str) and text)


def _take_scalar(event: Mapping[str, object], name: str, value_key: str, step_key: str, table: LongTable) -> bool:
    """Take a scalar; return whether its value is exactly 0, as that of a number that ClearML could not write."""
    value, step = to_number(event.get(value_key)), to_number(event.get(step_key))
    if not name or value is None or step is None or name.startswith(_OF_THE_MACHINE):
        return False
    table.add(name, step, value)
    return value == 0


def _parameter(parameter: object) -> dict[str, object]:
    """Return a parameter that the script logged; those that Comet finds by itself are of the process."""
    if not isinstance(parameter, Mapping) or parameter.get("source") in ("cli", "auto-logged"):
        return {}
    name = parameter.get("paramName")
    return {name: parameter.get("paramValue")} if isinstance(name, str) else {}


_MAX_QUERY_SECONDS = 120.0
_MAX_POINTS = 50_000_000
_MAX_VALUE_BYTES = 16 * 1024 * 1024
_MLFLOW = {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}
_TRACKIO = {"run_name", "step", "metrics"}
_NEPTUNE = {"operation_type", "operation"}
_MAX_COPIED = 256 * 1024 * 1024
"""Bytes of a database and its journal that are copied to be read."""
_MIN_STORED_INFINITY = 1.7e308
"""MLflow stores an infinity as the largest float."""

_UPDATE_OPERATION = 0
_STEP_FIELD, _ASSIGN, _APPEND = 1, 4, 8
_FLOAT, _INTEGER, _BOOLEAN, _TEXT = 1, 3, 4, 5
_STEP_FRACTION_UNIT = 1e-6
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


class SqliteReader:
    """SQLite databases of trackers: MLflow's store, Trackio's projects and the offline runs of neptune-scale.

    A database is opened read-only, with nothing in its schema trusted, and every query is interrupted when it takes too
    long. Schemas: mlflow/store/tracking/dbmodels/models.py, trackio/sqlite_storage.py, and
    neptune_api/proto/neptune_pb/ingest/v1/pub/ingest.proto, as neptune-scale 0.30 writes it.
    """

    NAME = "sqlite"

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read one run of the database; the notes name the others."""
        import sqlite3  # few logs are a database

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
    import sqlite3

    database = sqlite3.connect(f"file:{quote(str(place))}?{mode}", uri=True)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    end = time.monotonic() + _MAX_QUERY_SECONDS
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
    _take_points(database.execute(query, (run,)), builder)
    if _columns(database, "params") >= {"key", "value", "run_uuid"}:
        params = database.execute("SELECT key, value FROM params WHERE run_uuid = ? LIMIT 2000", (run,))
        builder.configure({_text(key): value for key, value in params}, SqliteReader.NAME)


def _take_points(rows: Iterator[tuple[object, ...]], builder: RunBuilder) -> None:
    """Take rows of key, time, step, value and whether it is NaN."""
    table, odd = LongTable(), 0
    for count, (key, when, step, value, is_nan) in enumerate(rows):
        if (
            count < _MAX_POINTS
            and isinstance(when, int | float)
            and isinstance(step, int | float)
            and isinstance(value, int | float)
        ):
            stored = math.copysign(math.inf, value) if abs(value) > _MIN_STORED_INFINITY else value
            table.add(_text(key), step, math.nan if is_nan else stored, when)
        else:
            odd += 1
    builder.skipped(odd, "row(s) of the metrics table that hold no numbers or are too many")
    table.give(builder)


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
    builder.skipped(broken, "row(s) of the metrics table that are not JSON objects")
    if by in _columns(database, "configs"):
        for (text,) in database.execute(f"SELECT config FROM configs WHERE {by} = ? LIMIT 1", (run,)):  # noqa: S608
            given = {name: value for name, value in (_object(text) or {}).items() if not name.startswith("_")}
            builder.configure(given, SqliteReader.NAME)


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
    for (operation,) in database.execute(query, (_UPDATE_OPERATION,)):
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
        if part.wire != protobuf.BYTES_WIRE_TYPE:
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
    return parts.get(1, 0) + _STEP_FRACTION_UNIT * parts.get(2, 0)


def _entry_value(data: bytes, message: Field) -> object:
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _FLOAT and part.wire == protobuf.FIXED64:
            return float(struct.unpack("<d", data[part.start : part.end])[0])
        if part.number == _INTEGER and part.wire == protobuf.VARINT_WIRE_TYPE:
            return protobuf.signed(part.value)
        if part.number == _BOOLEAN and part.wire == protobuf.VARINT_WIRE_TYPE:
            return bool(part.value)
        if part.number == _TEXT and part.wire == protobuf.BYTES_WIRE_TYPE:
            return protobuf.text(data, part)
    return 0.0
