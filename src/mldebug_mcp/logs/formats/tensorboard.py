"""TensorBoard event files, one or several of one run.

Scalars come in both encodings, simple_value and tensors. Events of one metric differ only in time, step and value. So
one event is parsed, and all others that are alike byte by byte are read from the columns of a matrix. The hparams
plugin and texts hold the configuration. Schemas: event.proto, summary.proto, tensor.proto, hparams/plugin_data.proto
and struct.proto.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core import protobuf
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.protobuf import BYTES_WIRE_TYPE, CHECKED_BYTES, LARGE_BYTES, Field, Records, equally_long
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.documents import Points, add_points
from mldebug_mcp.logs.files import scalars_name
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.settings import Settings, settings_printed_in
from mldebug_mcp.logs.settings.printed import is_configuration

# The configuration in event files: what the hparams plugin keeps, and texts that say settings.
#
# A text is a JSON object, as the Trainer's, a Markdown table, as CleanRL's, one printed as in any log, or a single
# value under the setting's name. Schemas: summary.proto, hparams/plugin_data.proto and google/protobuf/struct.proto.

MAX_TEXT = 200_000
_TAG, _TENSOR, _METADATA = 1, 8, 9
_PLUGIN, _PLUGIN_CONTENT = 1, 2
_SESSION_START, _HPARAMS = 3, 1
_STRING_VALUES = 8
"""The field `string_val` of TensorFlow's `TensorProto`."""
_NUMBER, _STRING, _BOOL = 2, 3, 4
_TEXTS_OF_TORCH = "/text_summary"
_ROW = re.compile(r"^\s*\|(?P<key>[^|]+)\|(?P<value>[^|]*)\|\s*$", re.MULTILINE)
_RULE = re.compile(r"\s*:?-+:?\s*")


def settings_of_summary(event: bytes, start: int, end: int) -> Iterator[Settings]:
    """Yield the settings in the values of a summary.

    Raises:
        ValueError: it is broken.
    """
    for value in _messages(event, start, end, 1):
        name = "".join(protobuf.text(event, message) for message in _messages(event, value.start, value.end, _TAG))
        for metadata in _messages(event, value.start, value.end, _METADATA):
            yield from _hyperparameters(event, metadata)
        for tensor in _messages(event, value.start, value.end, _TENSOR):
            for string in _messages(event, tensor.start, tensor.end, _STRING_VALUES):
                text = protobuf.text(event, string)[:MAX_TEXT]
                yield from _of_text(name.removesuffix(_TEXTS_OF_TORCH), text)


def _messages(data: bytes, start: int, end: int, number: int) -> Iterator[Field]:
    return (
        field for field in protobuf.fields(data, start, end) if field.number == number and field.wire == BYTES_WIRE_TYPE
    )


def _hyperparameters(data: bytes, metadata: Field) -> Iterator[Settings]:
    """Yield what the hparams plugin says at the start of a session."""
    for plugin in _messages(data, metadata.start, metadata.end, _PLUGIN):
        for content in _messages(data, plugin.start, plugin.end, _PLUGIN_CONTENT):
            for start in _messages(data, content.start, content.end, _SESSION_START):
                entries = _messages(data, start.start, start.end, _HPARAMS)
                given = dict(protobuf.map_entry(data, entry) for entry in entries)
                values = {key: None if value is None else _value(data, value) for key, value in given.items()}
                yield Settings.of(values, "TensorBoard hparams")


def _value(data: bytes, message: Field) -> object:
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _NUMBER and part.wire == protobuf.FIXED64:
            (number,) = struct.unpack("<d", data[part.start : part.end])
            return int(number) if number.is_integer() else float(number)
        if part.number == _STRING and part.wire == BYTES_WIRE_TYPE:
            return protobuf.text(data, part)
        if part.number == _BOOL and part.wire == protobuf.VARINT_WIRE_TYPE:
            return bool(part.value)
    return None


def _of_text(name: str, text: str) -> Iterator[Settings]:
    """Yield the settings that a text says, if any."""
    source = f"TensorBoard text {name!r}"
    values = parse_object(text) or _table(text)
    if values and is_configuration(values):
        yield Settings.of(values, source)
    elif not values and "\n" in text:
        yield settings_printed_in(text.splitlines())
    elif not values and (alone := Settings.of({name: text.strip()}, source)).known:
        yield alone


def _table(text: str) -> dict[str, object]:
    """Return the rows of a Markdown table of two columns, without its heading."""
    rows = [(row["key"].strip().strip("`*"), row["value"].strip().strip("`*")) for row in _ROW.finditer(text)]
    body = next((number + 1 for number, (key, _) in enumerate(rows) if _RULE.fullmatch(key)), 0)
    return dict(rows[body:])


# Event messages → the points of each metric.

Bytes = NDArray[np.uint8]

_MAX_SHAPES = 64
"""Metrics whose events are equally long that are read by columns; the others are parsed one by one."""
_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}
"""struct formats by DataType (types.proto): float, double, int32, int64, half."""
_FLOAT_VALUES, _DOUBLE_VALUES, _INT_FIELDS = 5, 6, (7, 10)
_TIME_BYTES = 9
"""A key and a double: every event begins with the time."""
_STEP_KEY = 0x10
"""The key of the field `step` of TensorFlow's `Event`: number 2, a varint."""
_PLUGINS_WITH_SETTINGS = (b"hparams", b"text")
MAX_CONFIGURATIONS = 1000
"""Texts and hyperparameters that are looked at: answers of a language model are texts too."""


class _Part(NamedTuple):
    """Some points of a metric: the numbers of their events in the file and their values, all of shape (n,)."""

    number: NDArray[np.int64]
    time: Floats
    step: Floats
    value: Floats


class _Scalar(NamedTuple):
    """A scalar in a message: its value and where its last four bytes, a float32, stand; -1 if it is none."""

    name: str
    value: float
    start: int


class Scalars:
    """The points of all metrics, over all files of a run."""

    def __init__(self) -> None:
        self._parts: dict[str, list[_Part]] = {}
        self._done: dict[str, list[Points]] = {}
        self._settings: list[Settings] = []
        self.damaged = 0

    def take_alike(self, numbers: NDArray[np.int64], rows: Bytes) -> None:
        """Take equally long events, shape (n, length), with their numbers in the file, shape (n,)."""
        for _ in range(_MAX_SHAPES):
            if not len(rows):
                return
            alike = self._take_shape(numbers, rows)
            numbers, rows = numbers[~alike], rows[~alike]
        for number, row in zip(numbers.tolist(), rows, strict=True):
            self.take(number, row.tobytes())

    def take(self, number: int, event: bytes) -> list[_Scalar]:
        """Take one event and return the scalars in it."""
        time, step = 0.0, 0
        found: list[_Scalar] = []
        try:
            for part in protobuf.fields(event, 0, len(event)):
                if part.number == 1 and part.wire == protobuf.FIXED64:
                    (time,) = struct.unpack("<d", event[part.start : part.end])
                elif part.number == 2:
                    step = protobuf.signed(part.value)
                elif part.number == 5 and part.wire == protobuf.BYTES_WIRE_TYPE:
                    found += _summary(event, part.start, part.end)
                    may_set = not found and len(self._settings) < MAX_CONFIGURATIONS
                    if may_set and any(setting in event for setting in _PLUGINS_WITH_SETTINGS):
                        self._settings += settings_of_summary(event, part.start, part.end)
        except (ValueError, struct.error):
            self.damaged += 1
            return []
        for scalar in found:
            array = np.array([[time], [step], [scalar.value]], dtype=np.float64)
            self._parts.setdefault(scalar.name, []).append(_Part(np.array([number]), *array))
        return found

    def settings(self) -> Settings:
        """Return the configuration that the events say; the first says what stands."""
        return Settings.merged(*self._settings)

    def _take_shape(self, numbers: NDArray[np.int64], rows: Bytes) -> NDArray[np.bool_]:
        """Take the first event and all that are like it; return which those are, shape (n,)."""
        first = rows[0]
        alike = np.zeros(len(rows), dtype=np.bool_)
        alike[0] = True
        found = self.take(int(numbers[0]), first.tobytes())
        if not found:  # a histogram, a picture: all that begin alike hold no scalar either
            return alike
        rest = _behind_step(first)
        length = len(first)
        if len(found) > 1 or found[0].start != length - 4 or rest > length - 4 or first[0] != 0x09:
            return alike
        same: NDArray[np.bool_] = (rows[:, 0] == 0x09) & (rows[:, rest : length - 4] == first[rest : length - 4]).all(
            axis=1
        )
        if rest > _TIME_BYTES:
            same &= (rows[:, _TIME_BYTES] == _STEP_KEY) & (rows[:, rest - 1] < 128)
            same &= (rows[:, _TIME_BYTES + 1 : rest - 1] >= 128).all(axis=1)
        others = rows[same & ~alike]
        step = np.zeros(len(others), dtype=np.uint64)
        for place, column in enumerate(others[:, _TIME_BYTES + 1 : rest].T):
            step |= (column.astype(np.uint64) & np.uint64(127)) << np.uint64(7 * place)
        time = np.ascontiguousarray(others[:, 1:9]).view("<f8")[:, 0]
        value = np.ascontiguousarray(others[:, length - 4 :]).view("<f4")[:, 0].astype(np.float64)
        part = _Part(numbers[same & ~alike], time, step.view(np.int64).astype(np.float64), value)
        self._parts[found[0].name].append(part)
        return same

    def end_of_file(self, metric: str = "") -> None:
        """Close the points of a file: its clock never goes back, whatever it says.

        Args:
            metric: The name of its one metric where the tag does not say it, as in a folder of `add_scalars`.
        """
        for name in self._parts:
            self._done.setdefault(metric or name, []).append(self._of_this_file(name))
        self._parts.clear()

    def points(self) -> dict[str, Points]:
        """Return the points of each metric so far."""
        found = {name: list(parts) for name, parts in self._done.items()}
        for name in self._parts:
            found.setdefault(name, []).append(self._of_this_file(name))
        return {
            name: Points(
                *(np.concatenate([getattr(part, axis.name) for part in parts]) for axis in dataclasses.fields(Points))
            )
            for name, parts in found.items()
        }

    def _of_this_file(self, name: str) -> Points:
        """Return the points of a metric in the file that is being read, in the order of their events."""
        number, time, step, value = (np.concatenate(axis) for axis in zip(*self._parts[name], strict=True))
        order = np.argsort(number, kind="stable")
        part = _Part(number[order], time[order], step[order], value[order])
        self._parts[name] = [part]
        return Points(np.maximum.accumulate(part.time), part.step, part.value)


def _behind_step(event: Bytes) -> int:
    """Return where an event goes on behind time and step; a step of 0 is left out."""
    if len(event) <= _TIME_BYTES or event[_TIME_BYTES] != _STEP_KEY:
        return _TIME_BYTES
    ends = np.flatnonzero(event[_TIME_BYTES + 1 : _TIME_BYTES + 11] < 128)
    return _TIME_BYTES + 2 + int(ends[0]) if len(ends) else len(event)


def _summary(data: bytes, start: int, end: int) -> Iterator[_Scalar]:
    """Yield the scalars of a summary."""
    for summary_field in protobuf.fields(data, start, end):
        if summary_field.number != 1 or summary_field.wire != protobuf.BYTES_WIRE_TYPE:
            continue
        name = ""
        scalar: tuple[float, int] | None = None
        for part in protobuf.fields(data, summary_field.start, summary_field.end):
            if part.number == 1 and part.wire == protobuf.BYTES_WIRE_TYPE:
                name = protobuf.text(data, part)
            elif part.number == 2 and part.wire == protobuf.FIXED32:
                scalar = _unpacked("<f", data[part.start : part.end]), part.start
            elif part.number == 8 and part.wire == protobuf.BYTES_WIRE_TYPE:
                scalar = _tensor_scalar(data, part.start, part.end)
        if name and scalar is not None:
            yield _Scalar(name, *scalar)


def _tensor_scalar(data: bytes, start: int, end: int) -> tuple[float, int] | None:
    """Return the value of a tensor without dimensions and where it stands as a float32, or None for other tensors."""
    dtype, scalar = 0, None
    for part in protobuf.fields(data, start, end):
        if part.number == 1:
            dtype = part.value
        elif part.number == 2 and part.end > part.start:
            return None  # it has dimensions
        elif part.number in (4, _FLOAT_VALUES, _DOUBLE_VALUES, *_INT_FIELDS):
            scalar = part
    if scalar is None or dtype not in _FORMATS:
        return None
    if scalar.number in _INT_FIELDS:
        value = scalar.value if scalar.wire == protobuf.VARINT_WIRE_TYPE else protobuf.varint(data, scalar.start)[0]
        return float(protobuf.signed(value)), -1
    raw = data[scalar.start : scalar.end]
    code = {_FLOAT_VALUES: "<f", _DOUBLE_VALUES: "<d"}.get(scalar.number, _FORMATS[dtype])
    if len(raw) != struct.calcsize(code):
        return None
    return _unpacked(code, raw), scalar.start if code == "<f" else -1


def _unpacked(code: str, raw: bytes) -> float:
    return float(struct.unpack(code, raw)[0])


# TensorBoard event files: scalars in both encodings (simple_value and tensors), from one file or several of one run.

NAME = "tensorboard"


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the scalars of one event file."""
    read_together([file], builder)


def follow(file: LogFile, builder: RunBuilder) -> EventFile:
    """Return what reads the events as they come."""
    del builder
    return EventFile(file.path.name, Scalars())


def read_together(files: Sequence[LogFile], builder: RunBuilder) -> None:
    """Read the scalars of the event files of one run; the clock in them says when each was written."""
    scalars = Scalars()
    for file in files:
        events = EventFile(file.path.name, scalars)
        with file.stream() as stream:
            at, size = 0, file.size
            while at < size and (taken := events.take(stream.read(min(events.block_bytes, size - at)))):
                checkpoint(f"reading {shorten(file.path.name, 60)}: {at:,} of {size:,} bytes")
                at += taken
                stream.seek(at)
        events.remark(builder, cut_off=at != size)
        for problem in file.problems:
            builder.note(problem)
        scalars.end_of_file(scalars_name(file.path) if len(files) > 1 else "")
    builder.configure(scalars.settings())
    add_points(builder, scalars.points())


class EventFile:
    """What has been read of one event file so far."""

    block_bytes = 2 * LARGE_BYTES

    def __init__(self, name: str, scalars: Scalars) -> None:
        self._name = shorten(name, 100)
        self._scalars = scalars
        self._records = Records()
        self._wrong = -scalars.damaged

    def take(self, data: bytes) -> int:
        """Read the whole records at the beginning of `data`; return where the next one begins, 0 if there is none."""
        records = self._records
        if records.broken:
            return 0
        first = records.count
        starts, lengths, done = records.find(data)
        self._wrong += int(np.count_nonzero(lengths <= CHECKED_BYTES))
        for numbers, rows in equally_long(data, starts, lengths):
            self._wrong -= len(numbers)
            self._scalars.take_alike(numbers + first, rows)
        for number in np.flatnonzero(lengths > CHECKED_BYTES).tolist():
            self._scalars.take(first + number, data[starts[number] : starts[number] + lengths[number]])
        return done + records.ahead

    def tell(self, builder: RunBuilder) -> None:
        """Give the points so far to a builder that is thrown away."""
        self.remark(builder, cut_off=False)
        builder.configure(self._scalars.settings())
        add_points(builder, self._scalars.points())

    def remark(self, builder: RunBuilder, *, cut_off: bool) -> None:
        """Say in the notes what could not be read."""
        damaged = self._wrong + self._scalars.damaged
        if self._records.broken:
            builder.note(f"{self._name}: broken after {self._records.count} records: the rest of it cannot be read")
        elif cut_off:
            builder.note(f"{self._name}: the last record is cut off: it is still being written, or the run was killed")
        if damaged:
            builder.note(f"{self._name}: skipped {damaged} damaged record(s)")
