"""The file of a recording. JSON lines are only ever appended, in parts, and thinned to a bounded size in all."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import TypeAlias

# Half of the lines of a recording: of each two records the one that says more.


_LOSS = re.compile(rb'"(?:train/)?loss": ?(-?[\d.eE+-]+|NaN|-?Infinity)')
_ROWS = re.compile(rb', "rows": \[[^\]]*\]')
_DEEP = re.compile(rb'"(?:grad_norm|update_ratio)/')


def thinned(lines: Iterable[bytes], times: int) -> list[bytes]:
    """Return the head, every event, and of each two records of a kind the one whose loss lies farther from the last.

    So a spike and a value that is not finite stay, however often a recording is thinned. The rows of batches go: they
    are looked for where something happened, near the end.

    Args:
        lines: Lines of a recording, in order.
        times: How often what comes out was thinned; its head says so.
    """
    heads: dict[str, object] = {}
    kept: list[tuple[int, bytes]] = []
    waiting: dict[bool, tuple[int, bytes]] = {}
    level = math.nan
    for number, line in enumerate(lines):
        if line.startswith(b'{"recorder"'):
            heads |= _parsed(line)
        elif b'"event"' in line or not line.startswith(b"{"):
            kept.append((number, line))
        else:
            bare, deep = _ROWS.sub(b"", line), _DEEP.search(line) is not None
            before = waiting.pop(deep, None)
            if before is None:
                waiting[deep] = (number, bare)
                continue
            chosen = max(before, (number, bare), key=lambda record: _distance(record[1], level))
            kept.append(chosen)
            level = _loss(chosen[1], level)
    kept += waiting.values()
    head = json.dumps({**heads, "continued": True, "thinned": times}).encode() + b"\n"
    return [head, *(line for _, line in sorted(kept))]


def _parsed(line: bytes) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _loss(line: bytes, other: float) -> float:
    found = _LOSS.search(line)
    value = float(found[1]) if found else math.nan
    return value if math.isfinite(value) else other


def _distance(line: bytes, level: float) -> float:
    found = _LOSS.search(line)
    if found is None:
        return 0.0
    value = float(found[1])
    return math.inf if not math.isfinite(value) else 0.0 if math.isnan(level) else abs(value - level)


# The file of a recording: JSON lines that are only ever appended, in parts, of a bounded size in all.
#
# Lines go to the operating system at once, whole: what was written is there after `kill -9`. When the file has grown to
# a part's size it is renamed to `NAME.1`, the part before to `NAME.2`, and so on: the names that log rotation uses,
# which the readers know. When there are too many parts, two neighbours are thinned into one.


Record: TypeAlias = Mapping[str, object]
RECORDING_PARTS = 8
"""Parts of a full recording. Chosen: the newest eighth is whole, and a rename of eight files is nothing."""
SIGNIFICANT_DIGITS = 7
"""Significant digits of a number: what a float32 holds."""
MIN_FIXED_POINT_NUMBER = 1e6
"""From here on, up to `MAX_FIXED_POINT_NUMBER`, a number keeps two decimals: hundredths of a second since 1970."""
MAX_FIXED_POINT_NUMBER = 1e12
_encoded = json.JSONEncoder(default=str).encode


class Recording:
    """The file that one process appends to.

    Args:
        path: The file; its folder is made.
        max_bytes: Bytes of all parts together.
        head: What is at the head of each part.
    """

    def __init__(self, path: Path, max_bytes: int, head: Record) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.failed = ""
        self._part_bytes = max(max_bytes // RECORDING_PARTS, 1024)
        self._head = dict(head)
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = os.fstat(self._file).st_size
        self._close_cut_line()
        self.write(self._head)

    def write(self, *records: Record) -> None:
        """Append records. A disk that is full ends the recording with one line on stderr, and not the training."""
        if self.failed or not records:
            return
        with self._lock:
            try:
                for lines in _chunks(records, self._part_bytes // 8):
                    self._append(lines)
                    if self._size > self._part_bytes:
                        self._rotate()
            except OSError as error:
                self.failed = f"{self.path}: {error.strerror or error}; nothing more is recorded, training goes on"
                sys.stderr.write(f"mldebug_mcp.recorder: {self.failed}\n")

    def describe(self, more: Record) -> None:
        """Append what became known of the run; each later part begins with it too."""
        self._head |= more
        self.write({"recorder": 1, "continued": True, **more})

    def close(self) -> None:
        """Close the file; nothing was left to be written."""
        with self._lock, contextlib.suppress(OSError):
            self.failed = self.failed or "closed"
            os.close(self._file)

    def _append(self, lines: bytes) -> None:
        while lines:
            written = os.write(self._file, lines)
            self._size += written
            lines = lines[written:]

    def _close_cut_line(self) -> None:
        """End a line that a killed process left half written, so that the next record stands on its own."""
        if self._size:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    self._append(b"\n")

    def _rotate(self) -> None:
        """Begin a new part: the head stands in it before it takes the name, so that there is a file at any time."""
        fresh = self.path.with_name(f".{self.path.name}.new")
        fresh.write_bytes((json.dumps({**self._head, "continued": True}, default=str) + "\n").encode())
        count = len(_parts(self.path))
        for number in range(count, 0, -1):
            _part(self.path, number).replace(_part(self.path, number + 1))
        try:
            os.link(self.path, _part(self.path, 1))
        except OSError:  # a file system without hard links: for a moment no file has the name
            self.path.replace(_part(self.path, 1))
        fresh.replace(self.path)
        os.close(self._file)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._size = os.fstat(self._file).st_size
        if count + 1 >= RECORDING_PARTS:
            _thin(self.path)


def _part(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _parts(path: Path) -> list[Path]:
    """Return the older parts of a recording, the newest first."""
    found: list[Path] = []
    while (part := _part(path, len(found) + 1)).exists():
        found.append(part)
    return found


def _thin(path: Path) -> None:
    """Make one part of two neighbours: the oldest two that were thinned as often, so that a recording ages evenly."""
    parts = _parts(path)[::-1]
    times = [_times_thinned(part) for part in parts]
    first = next((at for at in range(len(parts) - 1) if times[at] == times[at + 1]), 0)
    old, young = parts[first], parts[first + 1]
    with old.open("rb") as buffered_reader, young.open("rb") as other:
        lines = thinned([*buffered_reader, *other], times[first] + 1)
    fresh = path.with_name(f".{path.name}.thin")
    fresh.write_bytes(b"".join(lines))
    fresh.replace(young)
    old.unlink()
    for part in parts[:first][::-1]:  # close the gap: the numbers count from the newest part
        part.replace(_part(path, int(part.name.rpartition(".")[2]) - 1))


def _times_thinned(part: Path) -> int:
    with part.open("rb") as file:
        try:
            head = json.loads(file.readline())
        except ValueError:
            return 0
    times = head.get("thinned", 0) if isinstance(head, dict) else 0
    return times if isinstance(times, int) else 0


def _line(record: Record) -> str:
    """Return a record as a line of JSON, numbers at the length that they deserve."""
    if NoneType in map(type, record.values()):
        record = {name: value for name, value in record.items() if value is not None}
    values = [
        value
        if (type(value) is float and -MIN_FIXED_POINT_NUMBER < value < MIN_FIXED_POINT_NUMBER) or type(value) is int
        else _json(value)
        for value in record.values()
    ]
    return _line_of(tuple(record), tuple(map(type, values))) % tuple(values)


@lru_cache(maxsize=256)
def _line_of(names: tuple[str, ...], kinds: tuple[type, ...]) -> str:
    """Return a line of JSON with a place for each value."""
    places = {float: f"%.{SIGNIFICANT_DIGITS}g", int: "%d"}
    pairs = [
        f"{_encoded(name)}: ".replace("%", "%%") + places.get(kind, "%s")
        for name, kind in zip(names, kinds, strict=True)
    ]
    return "{" + ", ".join(pairs) + "}\n"


def _chunks(records: Sequence[Record], size: int) -> Iterator[bytes]:
    """Yield the lines of records, about so many bytes together."""
    lines: list[str] = []
    length = 0
    for record in records:
        lines.append(_line(record))
        length += len(lines[-1])
        if length >= size:
            yield "".join(lines).encode()
            lines, length = [], 0
    if lines:
        yield "".join(lines).encode()


def _json(value: object) -> str:
    """Return a value as JSON; what is not finite as JavaScript and Python name it."""
    if type(value) is list:
        return _json_list(value)
    if not isinstance(value, float):
        return _encoded(value)
    if MIN_FIXED_POINT_NUMBER < abs(value) < MAX_FIXED_POINT_NUMBER:
        return f"{value:.2f}"
    return f"{value:.{SIGNIFICANT_DIGITS}g}" if math.isfinite(value) else _encoded(value)


def _json_list(values: list[object]) -> str:
    """Return a list as JSON; of whole numbers and of plain words, as rows are, without asking the encoder."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return repr(values)
    if kinds == {str} and (words := "".join(values)).isascii() and words.isalnum():  # type: ignore[arg-type]
        return '["' + '", "'.join(values) + '"]'  # type: ignore[arg-type]
    return _encoded(values)
