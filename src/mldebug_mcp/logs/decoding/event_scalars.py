"""Event messages → the points of each metric.

Events of one metric differ only in time, step and, in their last four bytes, the value. So one event is parsed, and all
others that are alike byte by byte are read from the columns of a matrix.
Schemas: event.proto, summary.proto and tensor.proto in tensorboard/compat/proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.decoding import protobuf
from mldebug_mcp.logs.decoding.event_settings import settings_of_summary
from mldebug_mcp.logs.decoding.points import Points
from mldebug_mcp.logs.settings import Settings

Bytes = NDArray[np.uint8]

_MAX_SHAPES = 64
"""Metrics whose events are equally long that are read by columns; the others are parsed one by one."""
_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}
"""struct formats by DataType (types.proto): float, double, int32, int64, half."""
_FLOAT_VALUES, _DOUBLE_VALUES, _INT_FIELDS = 5, 6, (7, 10)
_TIME_BYTES = 9
"""A key and a double: every event begins with the time."""
_STEP_KEY = 0x10
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
                elif part.number == 5 and part.wire == protobuf.BYTES:
                    found += _summary(event, part.start, part.end)
                    if not found and any(one in event for one in _PLUGINS_WITH_SETTINGS):
                        self._take_settings(event, part)
        except (ValueError, struct.error):
            self.damaged += 1
            return []
        for scalar in found:
            one = np.array([[time], [step], [scalar.value]], dtype=np.float64)
            self._parts.setdefault(scalar.name, []).append(_Part(np.array([number]), *one))
        return found

    def _take_settings(self, event: bytes, summary: protobuf.Field) -> None:
        if len(self._settings) < MAX_CONFIGURATIONS:
            self._settings += settings_of_summary(event, summary.start, summary.end)

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

    def end_of_file(self) -> None:
        """Close the points of a file: its clock never goes back, whatever it says."""
        for name in self._parts:
            self._done.setdefault(name, []).append(self._of_this_file(name))
        self._parts.clear()

    def points(self) -> dict[str, Points]:
        """Return the points of each metric so far."""
        found = {name: list(parts) for name, parts in self._done.items()}
        for name in self._parts:
            found.setdefault(name, []).append(self._of_this_file(name))
        return {
            name: Points(*(np.concatenate([getattr(part, axis) for part in parts]) for axis in Points.__slots__))
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
        if summary_field.number != 1 or summary_field.wire != protobuf.BYTES:
            continue
        name = ""
        scalar: tuple[float, int] | None = None
        for part in protobuf.fields(data, summary_field.start, summary_field.end):
            if part.number == 1 and part.wire == protobuf.BYTES:
                name = protobuf.text(data, part)
            elif part.number == 2 and part.wire == protobuf.FIXED32:
                scalar = _unpacked("<f", data[part.start : part.end]), part.start
            elif part.number == 8 and part.wire == protobuf.BYTES:
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
        value = scalar.value if scalar.wire == protobuf.VARINT else protobuf.varint(data, scalar.start)[0]
        return float(protobuf.signed(value)), -1
    raw = data[scalar.start : scalar.end]
    code = {_FLOAT_VALUES: "<f", _DOUBLE_VALUES: "<d"}.get(scalar.number, _FORMATS[dtype])
    if len(raw) != struct.calcsize(code):
        return None
    return _unpacked(code, raw), scalar.start if code == "<f" else -1


def _unpacked(code: str, raw: bytes) -> float:
    return float(struct.unpack(code, raw)[0])
