"""Texts that say something of GPU memory → the same numbers as a snapshot's, as far as they go."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.memory.holes import FreeMemory
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot, OutOfMemoryEvent

MAX_TEXT = 16 * 1024 * 1024
"""Characters that are looked at: the end of the text, where an error stands."""
MIB = 1024**2

_UNITS = {
    "bytes": 1,
    "byte": 1,
    "b": 1,
    "kib": 1024,
    "kb": 1024,
    "mib": MIB,
    "mb": MIB,
    "gib": 1024**3,
    "gb": 1024**3,
    "tib": 1024**4,
}
_SIZE = r"(?<!\d)(\d{1,15}(?:\.\d+)?)\s*(bytes?|[KMGT]i?B|B)\b"
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

_SUMMARY_HEAD = re.compile(r"PyTorch CUDA memory summary, device ID (\d{1,4})\b")
_SUMMARY_ROW = re.compile(r"\|[ \t]{0,80}(?P<name>[A-Za-z][\w -]{0,80}?)[ \t]{0,80}\|\s*(?P<cells>[^|\n]*\|[^|\n]*)\|")
_OOMS = re.compile(r"CUDA OOMs:\s*(\d{1,15})\s*\|\s*cudaMalloc retries:\s*(\d{1,15})\b")

_SMI_DEVICE = re.compile(r"^\|\s+(\d{1,4})\s+\S.*?\|\s*[0-9A-Fa-f]{8}:", re.MULTILINE)
_SMI_MEMORY = re.compile(r"(?<!\d)(\d{1,15})\s*MiB\s*/\s*(\d{1,15})\s*MiB")
_SMI_CSV = re.compile(
    r"^[ \t]{0,40}(?:(\d{1,4})[ \t]{0,40},)?(?:[^,\n]{0,200},){0,20}?[ \t]{0,40}"
    r"(\d{1,15})[ \t]{0,40}MiB[ \t]{0,40},[ \t]{0,40}(\d{1,15})[ \t]{0,40}MiB",
    re.MULTILINE,
)


def read_text(path: Path, name: str) -> MemorySnapshot:
    """Read a text file about GPU memory; raises InputError if it says nothing of it."""
    with open_input(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - MAX_TEXT))
        text = file.read(MAX_TEXT).decode("utf-8", errors="replace")
    return parse_text(text, name)


def parse_text(text: str, name: str = "text") -> MemorySnapshot:
    """Return what a text says of GPU memory.

    Args:
        text: An out-of-memory message, `torch.cuda.memory_summary()` or the output of `nvidia-smi`, alone or in a log.
        name: What to call it.

    Raises:
        InputError: it is none of these.
    """
    readers: Sequence[tuple[str, Callable[[str], list[DeviceMemory]]]] = (
        ("text: out-of-memory message", _oom_message),
        ("text: memory_summary", _memory_summary),
        ("text: nvidia-smi", _nvidia_smi),
    )
    for layout, reader in readers:
        devices = reader(text)
        if devices:
            return MemorySnapshot(name, layout, devices, notes=[_NOTE])
    raise InputError(
        f"{name}: neither a memory snapshot nor an out-of-memory message, a torch.cuda.memory_summary() or the "
        "output of nvidia-smi; record a snapshot with torch.cuda.memory._record_memory_history() and "
        "_dump_snapshot('snapshot.pickle')"
    )


def _bytes(match: re.Match[str] | None) -> int | None:
    if match is None:
        return None
    numbers = [group for group in match.groups() if group is not None]
    return int(float(numbers[0]) * _UNITS[numbers[1].lower()])


def _oom_message(text: str) -> list[DeviceMemory]:
    """Read the last message for each device; wordings from torch 0.4 to today, with their misspelt "capacty"."""
    found: dict[int, DeviceMemory] = {}
    matches = list(_TRIED.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    for match, following in zip(matches, ends, strict=False):
        message = text[match.start() : min(match.start() + _OOM_PART, following)]
        device = _GPU.search(message)
        one = _one_message(message, int(device[1]) if device else 0, len(matches))
        found[one.device] = one
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
    others = _others(message, reserved, capacity if this is None else None)
    outside = max(0, this - reserved) if this is not None else 0
    oom = OutOfMemoryEvent(
        requested, free, allocated, reserved, inside, count=count, pieces_known=False, others=others + outside,
        limited=_ALLOWED.search(message) is not None,
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
        others=others,
    )


def _others(message: str, reserved: int, capacity: int | None) -> int:
    """Return what other processes hold.

    In a container this process is listed under its number outside, as if it were another one; it is told by the sum,
    which would exceed the capacity.
    """
    listed = sorted(_bytes(one) or 0 for one in _OTHERS.finditer(message))
    if capacity is not None and sum(listed) + reserved > capacity:
        own = next((one for one in listed if one >= reserved), None)
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
        retries=int(counts[2]) if counts else 0,
    )


def _nvidia_smi(text: str) -> list[DeviceMemory]:
    found: list[DeviceMemory] = []
    if "MiB" in text and ("NVIDIA-SMI" in text or "memory.used" in text or _SMI_MEMORY.search(text)):
        numbers = [int(one) for one in _SMI_DEVICE.findall(text)]
        pairs = [(int(used), int(total)) for used, total in _SMI_MEMORY.findall(text)]
        if not pairs:
            pairs, numbers = _csv_rows(text)
        for place, (used, total) in enumerate(pairs):
            number = numbers[place] if place < len(numbers) else place
            found.append(DeviceMemory(number, reserved=used * MIB, peak_reserved=used * MIB, capacity=total * MIB))
    return found


def _csv_rows(text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Read `nvidia-smi --query-gpu=...,memory.used,memory.total --format=csv`; the larger of the two is the total."""
    rows = _SMI_CSV.findall(text)
    pairs = [(min(int(one), int(two)), max(int(one), int(two))) for _, one, two in rows]
    numbers = [int(index) if index else place for place, (index, _, _) in enumerate(rows)]
    return pairs, numbers
