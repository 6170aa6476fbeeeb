"""A path becomes what it says about memory.

A snapshot's pickle is read without importing or calling anything, a text for some of the numbers.
"""

from __future__ import annotations

import gc
import gzip
import io
import os
import pickle
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

import numpy as np

from mldebug_mcp.core.access import head_of, open_input
from mldebug_mcp.core.conventions import ZIP_MAGIC
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint, reading
from mldebug_mcp.core.paths import expanded, unreadable
from mldebug_mcp.core.text import shorten
from mldebug_mcp.memory.categories import tables_of
from mldebug_mcp.memory.profiles import MAX_PROFILE, RECORD, read_json, read_pprof, what_it_is
from mldebug_mcp.memory.replay import FreeMemory
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot, OutOfMemoryEvent, printed_numbers, snapshot_of
from mldebug_mcp.memory.tables import MIB, SnapshotTables, bytes_of

# Texts that say something of GPU memory → the same numbers as a snapshot's, as far as they go.


MAX_TEXT = 16 * 1024 * 1024
"""Characters that are looked at: the end of the text, where an error stands."""
_SIZE = r"(?<!\d)(\d{1,15}(?:\.\d+)?)\s*(bytes?|[KMGT]i?B|B)\b"
_SPOKEN = re.compile(r"\w[:=]?\s+" + _SIZE)
"""What a line about memory holds and hardly the name of a file: a word, and behind it a size."""
_TRIED = re.compile(r"[Tt]ried to allocate\s+" + _SIZE)
_CAPACITY = re.compile(r"(?:total capac(?:i)?ty of\s+" + _SIZE + r"|" + _SIZE + r"\s+total capacity)")
_FREE = re.compile(r"(?:of which\s+" + _SIZE + r"\s+is free|" + _SIZE + r"\s+free\b)")
_ALLOCATED = re.compile(
    r"(?:Of the allocated memory\s+"
    + _SIZE
    + r"\s+is allocated by|"
    + _SIZE
    + r"\s+already allocated|"
    + _SIZE
    + r"\s+is allocated by PyTorch)"
)
_UNALLOCATED = re.compile(_SIZE + r"\s+is reserved by PyTorch but unallocated")
_RESERVED = re.compile(_SIZE + r"\s+(?:reserved in total by PyTorch|cached)")
_OTHERS = re.compile(r"Process \d+ has\s+" + _SIZE + r"\s+memory in use")
_THIS = re.compile(r"this process has\s+" + _SIZE + r"\s+memory in use")
_ALLOWED = re.compile(_SIZE + r"\s+allowed")
_GPU = re.compile(r"GPU (\d{1,4})\b")
_NOTE = (
    "a text holds totals only: who holds the memory is not in it; record a snapshot with "
    "torch.cuda.memory._record_memory_history()"
)
_OOM_PART = 1500
"""Characters of a message; the next one in the text is not part of it."""
_SUMMARY_HEAD = re.compile(r"PyTorch \w{1,10} memory summary, device ID (\d{1,4})\b")
_SUMMARY_ROW = re.compile(r"\|[ \t]{0,80}(?P<name>[A-Za-z][\w -]{0,80}?)[ \t]{0,80}\|\s*(?P<cells>[^|\n]*\|[^|\n]*)\|")
_OOMS = re.compile(r"CUDA OOMs:\s*(\d{1,15})\s*\|\s*cudaMalloc retries:\s*\d{1,15}\b")
_SMI_DEVICE = re.compile(r"^\|\s+(\d{1,4})\s+\S.*?\|\s*[0-9A-Fa-f]{8}:", re.MULTILINE)
_SMI_MEMORY = re.compile(r"(?<!\d)(\d{1,15})\s*MiB\s*/\s*(\d{1,15})\s*MiB")
_GPUSTAT = re.compile(
    r"^\[(\d{1,4})\] [^|\n]{1,200}\|[^|\n]{0,200}\|[ \t]{0,10}(\d{1,9})[ \t]{0,10}/[ \t]{0,10}(\d{1,9})[ \t]{0,10}MB",
    re.MULTILINE,
)
_ROCM_SMI = re.compile(r"GPU\[(\d{1,4})\][ \t]{0,20}:[ \t]{0,20}VRAM Total (Used )?Memory \(B\): (\d{1,15})")
_SMI_CSV = re.compile(
    r"^[ \t]{0,40}(?:(\d{1,4})[ \t]{0,40},)?(?:[^,\n]{0,200},){0,20}?[ \t]{0,40}"
    r"(\d{1,15})[ \t]{0,40}MiB[ \t]{0,40},[ \t]{0,40}(\d{1,15})[ \t]{0,40}MiB",
    re.MULTILINE,
)


def parse_text(text: str, name: str = "text") -> MemorySnapshot:
    """Return what a text says of GPU memory, alone or in a log: see `read_memory`.

    Raises:
        InputError: it is none of these.
    """
    layout, devices = _devices(text)
    if devices:
        return MemorySnapshot(name, layout, devices, notes=[_NOTE])
    raise InputError(
        f"{name}: neither a memory snapshot nor an out-of-memory message, a torch.cuda.memory_summary(), the "
        "output of nvidia-smi or lines with allocated and reserved memory and their units; record a snapshot with "
        "torch.cuda.memory._record_memory_history() and "
        "_dump_snapshot('snapshot.pickle')"
    )


def _devices(text: str) -> tuple[str, list[DeviceMemory]]:
    """Return what kind of text it is, and what it says of each device; nothing where it is of no kind."""
    readers: Sequence[tuple[str, Callable[[str], list[DeviceMemory]]]] = (
        ("text: out-of-memory message", _oom_message),
        ("text: memory_summary", _memory_summary),
        ("text: nvidia-smi", _nvidia_smi),
        ("text: gpustat", _gpustat),
        ("text: rocm-smi", _rocm_smi),
        ("text: printed numbers", printed_numbers),
    )
    found = ((layout, reader(text)) for layout, reader in readers)
    return next(((layout, devices) for layout, devices in found if devices), ("", []))


def _bytes(match: re.Match[str] | None) -> int | None:
    if match is None:
        return None
    numbers = [group for group in match.groups() if group is not None]
    return bytes_of(float(numbers[0]), numbers[1])


def _oom_message(text: str) -> list[DeviceMemory]:
    """Read the last message for each device; wordings from torch 0.4 to today, with their misspelt "capacty"."""
    found: dict[int, DeviceMemory] = {}
    matches = list(_TRIED.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    for match, following in zip(matches, ends, strict=False):
        message = text[match.start() : min(match.start() + _OOM_PART, following)]
        device = _GPU.search(message)
        device_memory = _one_message(message, int(device[1]) if device else 0, len(matches))
        found[device_memory.device] = device_memory
    return [found[number] for number in sorted(found)]


def _one_message(message: str, device: int, count: int) -> DeviceMemory:
    requested = _bytes(_TRIED.search(message)) or 0
    allocated = _bytes(_ALLOCATED.search(message)) or 0
    reserved = _bytes(_RESERVED.search(message))
    if reserved is None:
        reserved = allocated + (_bytes(_UNALLOCATED.search(message)) or 0)
    free = _bytes(_FREE.search(message)) or 0
    inside = FreeMemory(total=max(0, reserved - allocated), split=max(0, reserved - allocated))
    capacity, this = _bytes(_CAPACITY.search(message)), _bytes(_THIS.search(message))
    others = _other_processes_bytes(message, reserved, capacity if this is None else None)
    outside = max(0, this - reserved) if this is not None else 0
    oom = OutOfMemoryEvent(
        requested, free, allocated, reserved, inside, count=count, pieces_known=False, others=others,
        own=outside, limit=_bytes(_ALLOWED.search(message)),
    )  # fmt: skip
    return DeviceMemory(
        device,
        allocated=allocated,
        reserved=reserved,
        peak_allocated=allocated,
        peak_reserved=reserved,
        free=inside,
        capacity=capacity,
        oom=oom,
    )


def _other_processes_bytes(message: str, reserved: int, capacity: int | None) -> int:
    """Return what other processes hold.

    In a container this process is listed under its number outside, as if it were another one; the sum identifies it,
    which would exceed the capacity.
    """
    listed = sorted(_bytes(match) or 0 for match in _OTHERS.finditer(message))
    if capacity is not None and sum(listed) + reserved > capacity:
        own = next((number for number in listed if number >= reserved), None)
        return sum(listed) - (own or 0)
    return sum(listed)


def _memory_summary(text: str) -> list[DeviceMemory]:
    heads = list(_SUMMARY_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    found = {
        int(head[1]): _one_summary(int(head[1]), text[head.end() : end]) for head, end in zip(heads, ends, strict=False)
    }
    return [found[number] for number in sorted(found)]


def _one_summary(device: int, text: str) -> DeviceMemory:
    rows: dict[str, tuple[int, int]] = {}
    for match in _SUMMARY_ROW.finditer(text):
        cells = [_bytes(re.search(_SIZE, cell)) for cell in match["cells"].split("|")]
        if None not in cells[:2]:
            rows.setdefault(match["name"].strip(), (cells[0] or 0, cells[1] or 0))
    allocated, peak = rows.get("Allocated memory", (0, 0))
    reserved, peak_reserved = rows.get("GPU reserved memory", (0, 0))
    split = rows.get("Non-releasable memory", (0, 0))[0]
    counts = _OOMS.search(text)
    free = FreeMemory(total=max(0, reserved - allocated), split=split)
    oom = None
    if counts and int(counts[1]):
        oom = OutOfMemoryEvent(0, 0, allocated, reserved, free, count=int(counts[1]), pieces_known=False)
    return DeviceMemory(
        device,
        allocated=allocated,
        reserved=reserved,
        requested=rows.get("Requested memory", (0, 0))[0],
        peak_allocated=peak,
        peak_reserved=peak_reserved,
        free=free,
        oom=oom,
    )


def _nvidia_smi(text: str) -> list[DeviceMemory]:
    found: list[DeviceMemory] = []
    if "MiB" in text and ("NVIDIA-SMI" in text or "memory.used" in text or _SMI_MEMORY.search(text)):
        numbers = [int(index) for index in _SMI_DEVICE.findall(text)]
        pairs = [(int(used), int(total)) for used, total in _SMI_MEMORY.findall(text)]
        if not pairs:
            pairs, numbers = _csv_rows(text)
        for place, (used, total) in enumerate(pairs):
            number = numbers[place] if place < len(numbers) else place
            found.append(DeviceMemory(number, reserved=used * MIB, peak_reserved=used * MIB, capacity=total * MIB))
    return found


def _gpustat(text: str) -> list[DeviceMemory]:
    return [
        DeviceMemory(int(number), reserved=int(used) * MIB, peak_reserved=int(used) * MIB, capacity=int(total) * MIB)
        for number, used, total in _GPUSTAT.findall(text)
    ]


def _rocm_smi(text: str) -> list[DeviceMemory]:
    """Read `rocm-smi --showmeminfo vram`: two lines for each device, in bytes."""
    sizes: dict[int, dict[str, int]] = {}
    for number, used, size in _ROCM_SMI.findall(text):
        sizes.setdefault(int(number), {})["used" if used else "total"] = int(size)
    return [
        DeviceMemory(number, reserved=device["used"], peak_reserved=device["used"], capacity=device["total"])
        for number, device in sorted(sizes.items())
        if len(device) == 2
    ]


def _csv_rows(text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Read `nvidia-smi --query-gpu=...,memory.used,memory.total --format=csv`; the larger of the two is the total."""
    rows = _SMI_CSV.findall(text)
    pairs = [(min(int(first), int(second)), max(int(first), int(second))) for _, first, second in rows]
    numbers = [int(index) if index else place for place, (index, _, _) in enumerate(rows)]
    return pairs, numbers


# Reading a pickle's opcodes before anything is built: what a snapshot cannot hold is refused here.
#
# A snapshot is dictionaries, lists, strings, numbers and pairs of numbers. Every opcode that could import or call
# something is refused by its name and place; so are those that make the C unpickler allocate, recurse or collide
# without bound: a memo index far beyond what the file can fill, lengths beyond its end, integers wider than nine bytes
# (which 2^64 - 1 takes, the line of a frame without one), deeply nested tuples (whose hash recurses in C), and floods
# of empty containers. What passes costs memory in proportion to the file.
#
# Nearly all of a snapshot is one run of short opcodes, which one regular expression walks at about 200 MB/s, in half of
# the time that the C unpickler takes. A second interpreter with a memory limit would start no faster and would not work
# on every system.


CHUNK_BYTES = 4 * 1024 * 1024
MAX_STRING = 16 * 1024 * 1024
MAX_TUPLES = 5_000
"""Tuples other than pairs of integers; a snapshot has none. If they all nest, the C stack still holds."""
MAX_DENSITY = 4
"""Of this many bytes at most one may create a container or None; a snapshot needs fifty bytes for each."""
SPARE_EMPTY_CONTAINERS = 100_000
_TEXT_LINES = {ord(letter) for letter in "IFLVSgp"}
_STRING_LENGTH = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x54: 4, 0x55: 1}
_TUPLES = frozenset(b"t)\x85\x86\x87")
_FIXED = frozenset(b"KMJhjqrG\x8a\x95\x80")
"""Opcodes with an argument that the pattern knows: where it stopped at one, its argument is missing or out of
bounds."""
_EMPTY_CONTAINER_OPCODES = b"}](N)"
_STOP_OPCODE = 0x2E
MAX_LINE = 1024 * 1024
_OF_CLASSES = frozenset(b"c\x93\x81\x92Rbio\x82\x83\x84PQ")
"""Opcodes that name or build objects of classes."""


def _walk(size: int) -> re.Pattern[bytes]:
    """Return the pattern of a run of harmless opcodes in a pickle of this many bytes."""
    # A pickle that puts objects into its memo by index spends four bytes on each, so higher indices are never reached.
    highest = (size // 4 + 256) >> 16
    index = b"..[\\x00-\\x%02x]\\x00" % min(highest, 255) if highest < 256 else b"...[\\x00-\\x%02x]" % (highest >> 8)
    get, marks, small = b"h.", rb"[\](}\x94seau]++", rb"K.(?:(?:K.|M..)\x86|)"
    number = rb"J....|\x8a\x06.{6}|\x8a\x07.{7}|" + small
    # Stacks are runs of references into the memo, events are references each followed by another, a number or a mark.
    # Each turn of the outer loop costs as much as ten characters, so one turn takes as many opcodes as it can.
    argument = number + rb"|" + marks + rb"|"
    second = get * 14 + rb"|" + get * 3 + rb"|" + get + rb"(?:" + number + rb"|)|" + argument
    references = get + rb"(?:" + get + rb"(?:" + second + rb")|" + argument + rb")"
    return re.compile(
        rb"(?:"
        + references
        + rb"|"
        + b"j...." * 4
        + rb"|j....|"
        + marks
        + rb"|"
        + number
        + rb"|M..|q.|r"
        + index
        + rb"|\x8a(?:\x05.{5}|\x08.{8}|\x09.{9}|\x04.{4}|\x03...|\x02..|\x01.|\x00)"
        + rb"|[N\x88\x89ld]|G.{8}|\x95.{8}|\x80[\x00-\x05])*+",
        re.DOTALL,
    )


class _Window:
    """The stretch of the stream that is being looked at."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream = stream
        self.size = size
        self.data = b""
        self.position = 0
        self.before = 0
        self.dense = 0

    @property
    def offset(self) -> int:
        return self.before + self.position

    def need(self, count: int) -> bool:
        """Make `count` bytes available from the position on; False where the file has no more."""
        while len(self.data) - self.position < count:
            more = self.stream.read(CHUNK_BYTES)
            if not more:
                return False
            octets = np.frombuffer(more, np.uint8)
            self.dense += sum(int(np.count_nonzero(octets == opcode)) for opcode in _EMPTY_CONTAINER_OPCODES)
            self.before += self.position
            self.data = self.data[self.position :] + more
            self.position = 0
            checkpoint(f"{self.before:,} bytes of the snapshot looked through")
        return True


def scan(stream: BinaryIO, size: int, name: str) -> tuple[int, int]:
    """Walk the opcodes of a pickle of at most `size` bytes; return its bytes and how many containers it has at most.

    Raises:
        InputError: it is truncated, or holds what no snapshot holds.
    """
    window = _Window(stream, size)
    pattern = _walk(size)
    tuples = 0
    while window.need(16) or window.position < len(window.data):
        end = pattern.match(window.data, window.position)
        assert end is not None  # the pattern matches the empty string  # noqa: S101
        window.position = end.end()
        if len(window.data) - window.position < 16 and window.need(16):
            continue
        if window.position >= len(window.data):
            break
        opcode = window.data[window.position]
        if opcode in _FIXED and len(window.data) - window.position < 11:
            break
        if opcode == _STOP_OPCODE:
            return _checked_density(window, name)
        if opcode in _TUPLES:
            tuples += 1
            window.position += 1
            if tuples > MAX_TUPLES:
                raise InputError(f"{name}: more tuples than a memory snapshot has; refused at byte {window.offset:,}")
        else:
            _skip(window, opcode, name)
    raise InputError(
        f"{name}: the pickle ends at byte {window.offset:,} before it is complete: the dump was cut off; copy "
        "or record it again"
    )


def _checked_density(window: _Window, name: str) -> tuple[int, int]:
    length = window.offset + 1
    if window.dense > (window.before + len(window.data)) // MAX_DENSITY + SPARE_EMPTY_CONTAINERS:
        raise InputError(f"{name}: a flood of empty containers, not a memory snapshot; refused")
    return length, window.dense


def _skip(window: _Window, opcode: int, name: str) -> None:
    """Step over one opcode that the pattern does not know: a string or a line of text, or refuse it."""
    if opcode in _STRING_LENGTH:
        width = _STRING_LENGTH[opcode]
        window.need(1 + width)
        length = int.from_bytes(window.data[window.position + 1 : window.position + 1 + width], "little")
        if length > MAX_STRING:
            raise InputError(f"{name}: a string of {length:,} bytes at byte {window.offset:,}; refused")
        if not window.need(1 + width + length):
            raise InputError(f"{name}: the file ends inside a string at byte {window.offset:,}; it was cut off")
        window.position += 1 + width + length
    elif opcode in _TEXT_LINES:
        _skip_line(window, opcode, name)
    else:
        raise InputError(
            f"{name}: {_opcode_name(opcode)} at byte {window.offset:,}; {_pickle_kind(opcode)}; a memory snapshot "
            "holds only dictionaries, lists, strings and numbers; nothing in it was run"
        )


def _pickle_kind(opcode: int) -> str:
    """Return what a pickle is that has such an opcode."""
    if opcode in _OF_CLASSES:
        return "the pickle holds objects of classes, as checkpoints and saved models do"
    return "it is not a pickle that torch writes for a snapshot"


def _skip_line(window: _Window, opcode: int, name: str) -> None:
    """Step over an opcode of the oldest protocols, whose argument is a line of text."""
    limit = 24 if chr(opcode) in "ILgp" else MAX_LINE
    window.need(limit)
    end = window.data.find(b"\n", window.position, window.position + limit)
    argument = window.data[window.position + 1 : end].strip(b"L")
    if end < 0 or (chr(opcode) in "gp" and not (argument.isdigit() and int(argument) <= window.size // 4 + 256)):
        raise InputError(
            f"{name}: {_opcode_name(opcode)} with an impossible argument at byte {window.offset:,}; refused"
        )
    window.position = end + 1


def _opcode_name(opcode: int) -> str:
    import pickletools

    known = {ord(opcode_info.code): opcode_info.name for opcode_info in pickletools.opcodes}
    return f"the opcode {known[opcode]}" if opcode in known else f"the byte {opcode:#04x}, which is not an opcode,"


# Pickle → plain objects, with nothing imported, nothing called and memory in proportion to the file.


MAX_SNAPSHOT_BYTES = 16 * 1024**3
"""Bytes of an uncompressed pickle."""
MEMORY_PER_BYTE = 2
"""Bytes of memory per byte of pickle, at least: with deep stacks; short ones take up to six."""
FREE_BYTES = 64 * 1024 * 1024
TIMES_UNPACKED = 300
"""Above `FREE_BYTES` a compressed pickle is at most so many times as large. Chosen by hand: small snapshots come to
twelve, and nothing that gzip writes to more than 1,032."""
TIMES_TYPICAL = 30
"""A compressed pickle may use the time and memory of one that is so many times as large. Chosen by hand."""
MEMORY_PER_CONTAINER = 72
"""Bytes of an empty list or dictionary, and of the reference to it."""
_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER = 1024 * 1024
"""Bytes that are unpacked at a time."""


class _GuardedReader(io.BufferedReader):
    """A reader that does not try to read beyond the end of a pickle, whatever length an opcode claims."""

    def __init__(self, raw: io.RawIOBase, left: int) -> None:
        super().__init__(raw, _BUFFER)
        self.left = self.reported = left

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0 or size > self.left:
            raise pickle.UnpicklingError("an opcode claims more bytes than the file has")
        data = super().read(size)
        self.left -= len(data)
        if self.reported - self.left > _BUFFER:
            self.reported = self.left
            checkpoint(f"{self.left:,} bytes of the snapshot left to read")
        return data


class _SafeUnpickler(pickle.Unpickler):
    """An unpickler that cannot reach any class or function: the second defence, behind the scan."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"refused to import {shorten(module_name, 60)}.{shorten(global_name, 60)}")

    def persistent_load(self, pid: object, /) -> NoReturn:
        del pid
        raise pickle.UnpicklingError("refused a persistent id")


def _unzipped_size(path: Path, packed: int, name: str) -> int:
    """Return how many bytes a compressed file holds: how much memory a pickle may claim depends on it."""
    with _open(path, compressed=True) as stream:
        size = 0
        while piece := stream.read(_BUFFER):
            size += len(piece)
            if size > max(FREE_BYTES, TIMES_UNPACKED * packed):
                raise InputError(f"{name}: {packed:,} bytes that unpack to more than {size:,}, as no snapshot does")
            if size > MAX_SNAPSHOT_BYTES:
                raise InputError(
                    f"{name}: unpacks to more than {MAX_SNAPSHOT_BYTES // 2**30} GiB; record fewer entries"
                )
    reading(min(size, TIMES_TYPICAL * packed))
    return size


class _Unzipped(gzip.GzipFile):
    """A compressed file that closes the file below it, which `gzip` leaves open."""

    def __init__(self, below: BinaryIO) -> None:
        super().__init__(fileobj=below, mode="rb")
        self._below = below

    def close(self) -> None:
        """Close both."""
        super().close()
        self._below.close()


def load(path: Path, size: int) -> tuple[object, int]:
    """Return the object in a pickle (or in a gzip of one) and the bytes of the pickle.

    Raises:
        InputError: it is truncated, corrupt, larger than memory, or holds anything but plain data.
    """
    name = shorten(str(path), 200)
    compressed = head_of(path, len(_GZIP_MAGIC)) == _GZIP_MAGIC
    try:
        with _open(path, compressed=compressed) as stream:
            length, containers = scan(stream, _unzipped_size(path, size, name) if compressed else size, name)
        _check_memory(length, containers, name)
        with _GuardedReader(cast("io.RawIOBase", _open(path, compressed=compressed)), length) as reader:
            return _SafeUnpickler(reader).load(), length
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: the compressed file is cut off or corrupt ({shorten(str(error), 100)})") from None
    except (
        pickle.UnpicklingError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        OverflowError,
        AttributeError,
    ) as error:
        raise InputError(f"{name}: the pickle is corrupt ({shorten(str(error), 100)}); record it again") from None
    except MemoryError:
        raise InputError(f"{name}: not enough memory to read it; record fewer entries (max_entries=)") from None


def _open(path: Path, *, compressed: bool) -> BinaryIO:
    return cast("BinaryIO", _Unzipped(open_input(path))) if compressed else open_input(path, buffering=0)


def _check_memory(length: int, containers: int, name: str) -> None:
    """Refuse a pickle that this machine cannot hold, before memory runs out."""
    try:
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    # Free pages exclude the page cache, which can be dropped; a quarter of all memory counts as available in any case.
    available = max(available, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)
    needed = length * MEMORY_PER_BYTE + containers * MEMORY_PER_CONTAINER
    if needed > available:
        raise InputError(
            f"{name}: a pickle of {length / 2**30:.1f} GiB needs about {needed / 2**30:.0f} "
            f"GiB of memory and {available / 2**30:.0f} GiB are free; record fewer entries "
            "(_record_memory_history(max_entries=200_000))"
        )


# A path → what it says about memory: a snapshot's pickle, a gzip of one, or a text with some of the numbers.


HEAD_BYTES = 4096
_PPROF_FIRST_BYTE = b"\x0a"
"""The first byte of a pprof profile: the types of its values."""


def read_memory(path: str | Path) -> MemorySnapshot:
    """Read a memory snapshot, or a text about memory.

    Args:
        path: The pickle of `torch.cuda.memory._dump_snapshot()` (or of `torch.xpu.memory`), a gzip of it; JAX's device
            memory profile, a memory timeline of `torch.profiler` (JSON, raw or not); or a text file with
            `torch.cuda.memory_summary()`, a CUDA out-of-memory message, the output of `nvidia-smi` or printed numbers;
            or such a text itself, of several lines or with its numbers.

    Raises:
        InputError: it is none of these (the message says what it is), cut off, corrupt, or larger than the machine can
            hold.
    """
    if isinstance(path, str) and ("\n" in path.strip() or _devices(path[-MAX_TEXT:])[1]):
        return parse_text(path[-MAX_TEXT:], "text")
    file = expanded(path)
    name = shorten(str(path), 200)
    try:
        with open_input(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            head = opened.read(HEAD_BYTES)
        if head.startswith(ZIP_MAGIC):
            raise InputError(
                f"{name}: saved by torch.save (a zip archive); write the snapshot with "
                "torch.cuda.memory._dump_snapshot() or pickle.dump"
            )
        compressed = head.startswith(_GZIP_MAGIC)
        head = _unpacked_head(file, head) if compressed else head
        if kind := what_it_is(head):
            raise InputError(f"{name}: {kind}{', compressed with gzip' if compressed else ''}; {RECORD}")
        if _is_json(head) or head.startswith(_PPROF_FIRST_BYTE):
            try:
                return _profile(file, size, head, str(path), compressed=compressed)
            except InputError:
                # A log may begin as a profile does: with a bracket or an empty line.
                if _is_text(head):
                    with suppress(InputError):
                        return parse_text(_end_of_text(file, size, name, compressed=compressed), name)
                raise
        if _is_text(head):
            return parse_text(_end_of_text(file, size, name, compressed=compressed), name)
        with _no_collector():
            tables = _tables(file, size, str(path))
    except OSError as error:
        if isinstance(path, str) and _SPOKEN.search(path) and not isinstance(error, PermissionError):
            return parse_text(path, "text")
        raise InputError(f"{unreadable(file, error)}; check the path") from None
    return snapshot_of(tables)


def _unpacked_head(file: Path, packed: bytes) -> bytes:
    """Return the first bytes of what a file compresses; those of the file where it is damaged."""
    try:
        with _open(file, compressed=True) as stream:
            return stream.read(HEAD_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return packed


def _is_json(head: bytes) -> bool:
    return head.lstrip()[:1] in (b"[", b"{")


def _profile(file: Path, size: int, head: bytes, path: str, *, compressed: bool) -> MemorySnapshot:
    """Return a timeline in JSON or a profile of JAX; raises InputError where the file is neither."""
    name = shorten(path, 200)
    length = _unzipped_size(file, size, name) if compressed else size
    if length > MAX_PROFILE:
        raise InputError(f"{name}: a profile of {length:,} bytes; at most {MAX_PROFILE:,} are read")
    with _open(file, compressed=compressed) as stream:
        data = b"".join(iter(lambda: stream.read(_BUFFER), b""))
    return read_json(data, path) if _is_json(head) else read_pprof(data, path)


def _end_of_text(file: Path, size: int, name: str, *, compressed: bool) -> str:
    length = _unzipped_size(file, size, name) if compressed else size
    with _open(file, compressed=compressed) as stream:
        stream.seek(max(0, length - MAX_TEXT))
        return stream.read(MAX_TEXT).decode("utf-8", errors="replace")


def _tables(file: Path, size: int, path: str) -> SnapshotTables:
    # The tree is several times the size of the tables, and is freed with this frame.
    tree, length = load(file, size)
    return tables_of(tree, path, length)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector from walking the tree again and again while it grows: nothing in it is garbage.

    A plain `pickle.load` spends most of its time on that.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _is_text(head: bytes) -> bool:
    """Tell text from a pickle; those of protocol 0 are printable too, but begin with a mark and an opcode."""
    if head[:1] in (b"\x80", b"\x1f") or b"\0" in head or head[:2] in (b"(d", b"(l"):
        return False
    control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
    return control * 50 < len(head)
