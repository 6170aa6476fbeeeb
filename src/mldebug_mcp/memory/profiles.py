"""Memory profiles of other tools: JAX's device memory profile, timelines of torch's profiler, and names for the rest.

JAX writes a gzip of a pprof profile (https://github.com/google/pprof/blob/main/proto/profile.proto): the live buffers
of one moment, by stack and device. `torch.profiler` writes a timeline as JSON: bytes by category at each time
(`.json`, `.json.gz`), or each change (`.raw.json.gz`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.protobuf import BYTES_WIRE_TYPE, VARINT_WIRE_TYPE, Field, fields, text, varint
from mldebug_mcp.core.text import shorten
from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot, snapshot_of
from mldebug_mcp.memory.tables import Blocks, DeviceTables, Events, Ints, Segments, SnapshotTables, Stacks

MAX_PROFILE = 256 * 1024 * 1024
"""Bytes of an uncompressed profile that are read."""
JAX = "JAX device memory profile"
TIMELINE = "memory timeline of torch.profiler"

# What a file is that holds no memory profile, by its first bytes.


_MAGIC: Sequence[tuple[bytes, str]] = (
    (b"SQLite format 3", "an SQLite database, as Nsight Systems exports; record a memory snapshot instead"),
    (b"memray", "a memory profile of memray, which follows the host's memory; open it with `memray flamegraph`"),
    (b"PAR1", "a Parquet table"),
    (b"\x89HDF", "an HDF5 file, as checkpoints of Keras are"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"ARROW1", "a table of Arrow"),
    (b"\x89PNG", "a picture; give the snapshot that it was drawn from"),
    (b"\xff\xd8\xff", "a picture; give the snapshot that it was drawn from"),
    (b"%PDF", "a PDF document"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"),
    (b"BZh", "compressed with bzip2; decompress it first"),
    (b"\xfd7zXZ", "compressed with xz; decompress it first"),
    (b"\x7fELF", "a program or library"),
    (b"NSYS", "a report of Nsight Systems; record a memory snapshot instead"),
)
_WEB_PAGES = (b"<html", b"<!doctype html")
_SAFETENSORS = re.compile(rb'.{8}\{"', re.DOTALL)
_TAR_MARK_OFFSET = 257
"""Where a tar archive has its mark."""
RECORD = (
    "record a snapshot with torch.cuda.memory._record_memory_history() and _dump_snapshot('snapshot.pickle'), or "
    "jax.profiler.save_device_memory_profile('memory.prof')"
)


def what_it_is(head: bytes) -> str:
    """Return what a file is by its first bytes; "" where they do not tell."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head.lstrip().lower().startswith(_WEB_PAGES):
        return "a web page; give the snapshot or timeline (.json.gz) that it shows"
    if head[_TAR_MARK_OFFSET : _TAR_MARK_OFFSET + 5] == b"ustar":
        return "a tar archive; unpack it and give the file in it"
    return "a file of safetensors, weights without a history" if _SAFETENSORS.match(head) else ""


# JSON: the timelines of torch's profiler.


_ORDER = (
    Category.PARAMETERS,
    Category.OPTIMIZER_STATE,
    Category.INPUTS,
    Category.TEMPORARY,
    Category.ACTIVATIONS,
    Category.GRADIENTS,
    Category.TEMPORARY,
    Category.UNKNOWN,
)
"""What the columns of a timeline hold: `torch.profiler._memory_profiler._CATEGORY_TO_INDEX`; the last but one is what
autograd needs for itself."""
_HUGE = 1 << 56
"""Bytes that no device has: a profile with such numbers is damaged."""


def read_json(text: bytes, path: str) -> MemorySnapshot:
    """Read a timeline of torch's profiler.

    Raises:
        InputError: it is other JSON; the message says what.
    """
    name = shorten(path, 200)
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON that can be read ({shorten(str(error), 100)}); {RECORD}") from None
    timeline = _timeline(tree)
    if timeline is None or not len(timeline):
        raise InputError(f"{name}: {_json_kind(tree)}, not a memory profile; {RECORD}")
    total = timeline.sum(axis=1)
    peak = int(total.argmax())
    stated: dict[Category, int] = {}
    for category, bytes_ in zip(_ORDER, timeline[peak].tolist(), strict=True):
        stated[category] = stated.get(category, 0) + int(bytes_)
    device = DeviceMemory(
        0,
        allocated=int(total[-1]),
        peak_allocated=int(total[peak]),
        stated={kind: n for kind, n in stated.items() if n},
    )
    moment = f"at the peak (moment {peak:,} of {len(total):,})"
    return MemorySnapshot(
        path,
        TIMELINE,
        [device],
        notes=[
            f"a timeline holds bytes by category, as torch.profiler counts them, {moment}; it does not say who "
            "allocated them, what the allocator holds and which device it is"
        ],
    )


def _timeline(tree: object) -> Ints | None:
    """Return bytes of each category over time, shape (times, 8); None for other data."""
    if not isinstance(tree, list) or not tree:
        return None
    if len(tree) == 2 and all(isinstance(part, list) for part in tree) and len(tree[0]) == len(tree[1]):
        return _sizes(tree[1])
    return _changes(tree)


def _sizes(rows: list[object]) -> Ints | None:
    """Return the sizes of `[times, sizes]`, whose first column is always 0."""
    wide = len(_ORDER) + 1
    if not all(
        isinstance(row, list)
        and len(row) == wide
        and all(isinstance(value, int) and abs(value) < _HUGE for value in row)
        for row in rows
    ):
        return None
    return np.array(rows, dtype=np.int64).reshape(-1, wide)[:, 1:]


def _changes(rows: list[object]) -> Ints | None:
    """Return the sums of rows of (time, action, bytes, category), where those that free have bytes below 0."""
    for row in rows:
        if not (isinstance(row, list) and len(row) == 4 and all(isinstance(number, int) for number in row)):
            return None
        if not (1 <= row[1] <= 4 and abs(row[2]) < _HUGE and 0 <= row[3] < len(_ORDER)):
            return None
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    live_bytes = np.zeros((len(columns), len(_ORDER)), np.int64)
    live_bytes[np.arange(len(columns)), columns[:, 3]] = columns[:, 2]
    return np.cumsum(live_bytes, axis=0)


def _json_kind(tree: object) -> str:
    """Return what JSON is, as far as its keys tell."""
    keys = set(map(str, islice(tree, 100))) if isinstance(tree, Mapping) else set()
    if "traceEvents" in keys:
        return "a trace of torch.profiler or another tracer, which shows time"
    if {"nbformat", "cells"} <= keys:
        return "a notebook"
    if keys & {"model_type", "hidden_size", "architectures"}:
        return "a model's configuration, whose memory `estimate` gives"
    kind = "an object" if isinstance(tree, Mapping) else "a list" if isinstance(tree, list) else "a value"
    some = f" with the keys {', '.join(shorten(key, 30) for key in sorted(keys)[:5])}" if keys else ""
    return f"JSON, {kind}{some}"


# pprof: JAX's device memory profile.


MAX_BUFFERS = 1_000_000
"""Buffers of a profile that are kept apart; those beyond are one for each stack."""
_DEVICE = re.compile(r"(?P<kind>[^\d]*)(?P<number>\d{1,6})?")


@dataclass(slots=True)
class _Profile:
    """The tables of a pprof profile that are needed here.

    Args:
        types: Names of the values of a sample.
        samples: Locations, values and labels of each sample.
        locations: Functions and lines by location, innermost first.
        functions: Names and files by function, as places in `strings`.
        strings: The texts.
    """

    types: list[int] = field(default_factory=list)
    samples: list[tuple[list[int], list[int], dict[int, int]]] = field(default_factory=list)
    locations: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    functions: dict[int, tuple[int, int]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)

    def text(self, place: int) -> str:
        return self.strings[place] if 0 <= place < len(self.strings) else ""


def read_pprof(data: bytes, path: str) -> MemorySnapshot:
    """Read a device memory profile of JAX.

    Raises:
        InputError: it is not such a profile; the message says what it is.
    """
    name = shorten(path, 200)
    try:
        profile = _profile(data)
    except ValueError:
        raise InputError(f"{name}: neither a pickle, JSON nor a pprof profile; {RECORD}") from None
    types = [profile.text(type_) for type_ in profile.types]
    if "space" not in types or not profile.samples:
        kinds = ", ".join(shorten(type_, 30) for type_ in types[:4]) or "nothing"
        raise InputError(f"{name}: a pprof profile of {kinds}, not of device memory; {RECORD}")
    return snapshot_of(_tables(profile, types.index("space"), path))


def _tables(profile: _Profile, space: int, path: str) -> SnapshotTables:
    result = SnapshotTables(path, JAX, [], Stacks())
    blocks: dict[str, list[tuple[int, int]]] = {}
    made = 0
    for number, (locations, values, labels) in enumerate(profile.samples):
        if number % 10_000 == 0:
            checkpoint(f"{number:,} of {len(profile.samples):,} samples")
        live_bytes = values[space] if space < len(values) else 0
        named = {profile.text(key): profile.text(value) for key, value in labels.items()}
        if live_bytes <= 0 or live_bytes >= _HUGE:
            continue
        count = max(1, values[1 - space]) if len(values) == 2 else 1
        stack = result.stacks.add(list(_frames(profile, locations)))
        count = count if made + count <= MAX_BUFFERS else 1
        made += count
        blocks.setdefault(named.get("device", ""), []).extend(_divided(live_bytes, count, stack))
    # Compiled programs name no device; the first holds them too.
    of_programs = blocks.pop("", []) if len(blocks) > 1 else []
    for device in sorted(blocks)[:1]:
        blocks[device] += of_programs
    for place, device in enumerate(sorted(blocks)):
        match = _DEVICE.match(device.rpartition(":")[2])
        distinct = len({block.rpartition(":")[0] for block in blocks}) == 1
        known = int(match["number"]) if match and match["number"] and distinct else place
        result.devices.append(_device(known, blocks[device]))
    names = ", ".join(shorten(block, 40) for block in sorted(blocks) if block)
    result.notes.append(
        f"live buffers of one moment on {names or 'no named device'}; what grows is seen by comparing two profiles "
        "(against=)"
    )
    return result


def _divided(live_bytes: int, count: int, stack: int) -> Iterator[tuple[int, int]]:
    """Yield the buffers of one sample, which tells their number and their sum."""
    for place in range(count):
        yield live_bytes // count + (live_bytes % count if place == 0 else 0), stack


def _frames(profile: _Profile, locations: Sequence[int]) -> Iterator[dict[str, object]]:
    for location in locations[:256]:
        for function, line in profile.locations.get(location, []):
            name, file = profile.functions.get(function, (-1, -1))
            yield {"filename": profile.text(file), "name": profile.text(name), "line": line}


def _device(number: int, blocks: list[tuple[int, int]]) -> DeviceTables:
    none = np.zeros(0, np.int64)
    size = np.array([bytes_ for bytes_, _ in blocks], np.int64)
    count = len(blocks)
    flags = np.zeros(count, np.bool_)
    return DeviceTables(
        number,
        Segments(none, none, none.astype(np.bool_)),
        Blocks(
            np.cumsum(size) - size, size, size, ~flags, flags, np.array([stack for _, stack in blocks], np.int64),
            np.zeros(count, np.int64),
        ),
        Events(none, none, none, none, none, none),
    )  # fmt: skip


def _profile(data: bytes) -> _Profile:
    """Return the tables; raises ValueError where the bytes are no profile."""
    found = _Profile()
    for part in fields(data, 0, len(data)):
        if part.number == 1:
            found.types.append(_numbers(data, part).get(1, 0))
        elif part.number == 2:
            found.samples.append(_sample(data, part))
        elif part.number == 4:
            lines = [_numbers(data, line) for line in fields(data, part.start, part.end) if line.number == 4]
            found.locations[_numbers(data, part).get(1, 0)] = [(line.get(1, 0), line.get(2, 0)) for line in lines]
        elif part.number == 5:
            function = _numbers(data, part)
            found.functions[function.get(1, 0)] = function.get(2, 0), function.get(4, 0)
        elif part.number == 6:
            found.strings.append(text(data, _message(part))[:1000])
    if not found.strings or found.strings[0]:
        raise ValueError("the first text of a pprof profile is empty")
    return found


def _sample(data: bytes, sample: Field) -> tuple[list[int], list[int], dict[int, int]]:
    numbers: dict[int, list[int]] = {1: [], 2: []}
    labels: dict[int, int] = {}
    for part in fields(data, sample.start, sample.end):
        if part.number in numbers and part.wire == VARINT_WIRE_TYPE:
            numbers[part.number].append(part.value)
        elif part.number in numbers:
            numbers[part.number] += _packed(data, part)
        elif part.number == 3:
            label = _numbers(data, part)
            labels[label.get(1, 0)] = label.get(2, 0)
    return numbers[1], numbers[2], labels


def _numbers(data: bytes, message: Field) -> dict[int, int]:
    """Return the numbers of a message by the numbers of their fields, of each the first."""
    found: dict[int, int] = {}
    for part in fields(data, _message(message).start, message.end):
        if part.wire == VARINT_WIRE_TYPE:
            found.setdefault(part.number, part.value)
    return found


def _message(part: Field) -> Field:
    """Return a field that holds a message or a text; raises ValueError for a number."""
    if part.wire != BYTES_WIRE_TYPE:
        raise ValueError("a number where a message is expected")
    return part


def _packed(data: bytes, part: Field) -> Iterator[int]:
    at = part.start
    while at < part.end:
        number, at = varint(data, at)
        yield number
