"""TensorBoard event files: scalars in both encodings (simple_value and tensors), from one file or several of one run.

The framing is TFRecord's: length, its checksum, an Event message, its checksum. Events of one metric differ only in
time, step and, in their last four bytes, the value: an event is parsed once per metric and recognised from then on.
Schemas: event.proto, summary.proto and tensor.proto in tensorflow/core and tensorboard/compat/proto.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mldebug_mcp.logs import protobuf
from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.crc32c import masked_crc32c, masked_crc32c_of
from mldebug_mcp.logs.points import Points, add_points
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import shorten

NAME = "tensorboard"

_BLOCK_BYTES = 8 * 1024 * 1024
_HEADER, _FOOTER = 12, 4
_CHECKED_BYTES = 1024
"""Events up to this size are checked; larger ones are images and histograms, which are passed over."""
_MAX_EVENT = 1 << 31
_MAX_TEMPLATES = 4 * MAX_METRICS
_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}
"""numpy formats by DataType (types.proto): float, double, int32, int64, half."""
_FLOAT_VALUES, _DOUBLE_VALUES, _INT_FIELDS = 5, 6, (7, 10)


def matches(file: LogFile) -> bool:
    """Its first record has the framing of an event file."""
    return file.binary == NAME


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the scalars of one event file."""
    read_together([file], builder)


def read_together(files: Sequence[LogFile], builder: RunBuilder) -> None:
    """Read the scalars of the event files of one run; which was written when is told by the clock in them."""
    scalars = _Scalars()
    for file in files:
        events = _Events(scalars)
        with file.path.open("rb") as stream:
            rest = b""
            while not events.broken and (data := stream.read(_BLOCK_BYTES)):
                whole = rest + data
                rest = whole[events.take(whole) :]
                stream.seek(events.ahead, io.SEEK_CUR)
        _tell(file, events, rest, builder)
        scalars.end_of_file()
    add_points(builder, scalars.points())


def _tell(file: LogFile, events: _Events, rest: bytes, builder: RunBuilder) -> None:
    name = shorten(file.path.name, 100)
    if events.broken:
        builder.note(f"{name}: broken after {events.count} records: the rest of it cannot be read")
    elif rest:
        builder.note(f"{name}: the last record is cut off: it is still being written, or the run was killed")
    if events.damaged:
        builder.note(f"{name}: skipped {events.damaged} record(s) whose checksum is wrong")


@dataclass(slots=True)
class _Tag:
    """The points of one metric, raw: times as float64, values as float64, both as bytes."""

    time: list[bytes] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    value: list[bytes] = field(default_factory=list)


class _Scalars:
    """The points of all metrics, over all files."""

    def __init__(self) -> None:
        self._tags: dict[str, _Tag] = {}
        self._done: dict[str, list[Points]] = {}
        self.templates: dict[bytes, _Tag] = {}

    def tag(self, name: str) -> _Tag:
        return self._tags.setdefault(name, _Tag())

    def end_of_file(self) -> None:
        """Close the points of a file: its clock never goes back, whatever it says."""
        for name, tag in self._tags.items():
            time = np.frombuffer(b"".join(tag.time), dtype="<f8")
            value = np.frombuffer(b"".join(tag.value), dtype="<f4").astype(np.float64)
            step = np.array(tag.step, dtype=np.float64)
            self._done.setdefault(name, []).append(Points(np.maximum.accumulate(time), step, value))
        self._tags.clear()
        self.templates.clear()

    def points(self) -> dict[str, Points]:
        return {
            name: Points(*(np.concatenate([getattr(part, axis) for part in parts]) for axis in Points.__slots__))
            for name, parts in self._done.items()
        }


class _Events:
    """The records of one file."""

    def __init__(self, scalars: _Scalars) -> None:
        self._scalars = scalars
        self._lengths: dict[bytes, int] = {}
        self.ahead = 0
        """Bytes of a large record that stand behind the data last taken: it holds no scalar and need not be read."""
        self.count = 0
        self.damaged = 0
        self.broken = False

    def take(self, data: bytes) -> int:
        """Read the whole records at the beginning of `data` and return where the first that is cut off begins."""
        starts: list[int] = []
        ends: list[int] = []
        at = self.ahead = 0
        while (header := data[at : at + _HEADER]) and len(header) == _HEADER:
            length = self._lengths.get(header)
            if length is None:
                length = self._checked_length(header)
            start = at + _HEADER
            if length < 0:
                self.broken = True
                break
            if start + length + _FOOTER > len(data):
                if length > _BLOCK_BYTES:
                    self.ahead, at = start + length + _FOOTER - len(data), len(data)
                break
            starts.append(start)
            ends.append(start + length)
            at = start + length + _FOOTER
        self.count += len(starts)
        damaged = _damaged(data, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))
        self.damaged += len(damaged)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if number not in damaged:
                self._event(data, start, end)
        return at

    def _checked_length(self, header: bytes) -> int:
        """Return the length that a record's header tells, or -1 if its checksum is wrong."""
        length, checksum = struct.unpack("<QI", header)
        if length > _MAX_EVENT or masked_crc32c_of(header[:8]) != checksum:
            return -1
        if len(self._lengths) < _MAX_TEMPLATES:
            self._lengths[header] = length
        return int(length)

    def _event(self, data: bytes, start: int, end: int) -> None:
        """Take the scalars of an event: time (field 1), step (field 2, left out if 0), then the summary (field 5)."""
        rest = start + 9
        step = 0
        if end - start > 14 and data[rest] == 0x10:
            step = data[rest + 1]
            rest += 2
            if step >= 128:
                try:
                    step, rest = protobuf.varint(data, rest - 1)
                except ValueError:
                    self.damaged += 1
                    return
        template = data[rest : end - 4]
        tag = self._scalars.templates.get(template)
        if tag is not None and data[start] == 0x09:
            tag.time.append(data[start + 1 : start + 9])
            tag.step.append(step)
            tag.value.append(data[end - 4 : end])
            return
        try:
            self._whole_event(data, start, end, template)
        except (ValueError, struct.error):
            self.damaged += 1

    def _whole_event(self, data: bytes, start: int, end: int, template: bytes) -> None:
        time, step = b"\0" * 8, 0
        found: list[tuple[str, bytes, int]] = []
        for event_field in protobuf.fields(data, start, end):
            if event_field.number == 1 and event_field.wire == protobuf.FIXED64:
                time = data[event_field.start : event_field.end]
            elif event_field.number == 2:
                step = protobuf.signed(event_field.value)
            elif event_field.number == 5 and event_field.wire == protobuf.BYTES:
                found += _summary(data, event_field.start, event_field.end)
        for name, value, _ in found:
            tag = self._scalars.tag(name)
            tag.time.append(time)
            tag.step.append(step)
            tag.value.append(value)
        if len(found) == 1 and found[0][2] == end - 4 and len(self._scalars.templates) < _MAX_TEMPLATES:
            self._scalars.templates[template] = self._scalars.tag(found[0][0])


def _damaged(data: bytes, starts: np.ndarray, ends: np.ndarray) -> set[int]:
    """Return the numbers of the records whose checksum is wrong."""
    content = np.frombuffer(data, dtype=np.uint8)
    lengths = ends - starts
    wrong: set[int] = set()
    for length in np.unique(lengths[lengths <= _CHECKED_BYTES]).tolist():
        numbers = np.flatnonzero(lengths == length)
        rows = np.lib.stride_tricks.sliding_window_view(content, length + _FOOTER)
        for some in np.array_split(numbers, 1 + len(numbers) * length // _BLOCK_BYTES):
            records = rows[starts[some]]
            stored = np.ascontiguousarray(records[:, length:]).view("<u4")[:, 0]
            wrong.update(some[masked_crc32c(records[:, :length]) != stored].tolist())
    return wrong


def _summary(data: bytes, start: int, end: int) -> Iterator[tuple[str, bytes, int]]:
    """Yield the scalars of a summary: name, value as float32, and where in the data a float32 stands (else -1)."""
    for summary_field in protobuf.fields(data, start, end):
        if summary_field.number != 1 or summary_field.wire != protobuf.BYTES:
            continue
        name = ""
        scalar: tuple[bytes, int] | None = None
        for part in protobuf.fields(data, summary_field.start, summary_field.end):
            if part.number == 1 and part.wire == protobuf.BYTES:
                name = protobuf.text(data, part)
            elif part.number == 2 and part.wire == protobuf.FIXED32:
                scalar = data[part.start : part.end], part.start
            elif part.number == 8 and part.wire == protobuf.BYTES:
                scalar = _tensor_scalar(data, part.start, part.end)
        if name and scalar is not None:
            yield name, *scalar


def _tensor_scalar(data: bytes, start: int, end: int) -> tuple[bytes, int] | None:
    """Return the value of a tensor without dimensions as float32 and where it stands, or None for any other tensor."""
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
        value = scalar.value if scalar.wire == protobuf.VARINT else protobuf.varint(data, scalar.start)[0]
        return struct.pack("<f", protobuf.signed(value)), -1
    raw = data[scalar.start : scalar.end]
    code = {_FLOAT_VALUES: "<f", _DOUBLE_VALUES: "<d"}.get(scalar.number, _FORMATS[dtype])
    if len(raw) != struct.calcsize(code):
        return None
    return (raw, scalar.start) if code == "<f" else (_float32(struct.unpack(code, raw)[0]), -1)


def _float32(value: float) -> bytes:
    return np.float32(value).tobytes()
