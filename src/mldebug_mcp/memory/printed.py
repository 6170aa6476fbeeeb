"""Lines that a script prints with allocated, reserved and free memory → the same numbers as a snapshot's."""

from __future__ import annotations

import re

from mldebug_mcp.memory.replay import FreeMemory
from mldebug_mcp.memory.snapshot import DeviceMemory

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_NUMBER = r"(?P<number>\d{1,15}(?:[.,_]\d{1,15}){0,4})\s{0,4}(?P<unit>[KMGTkmgt]i?[Bb]?|[Bb]ytes|B)?(?![\w.])"
_NAMES = (
    (
        "peak_allocated",
        r"(?:max|peak)(?:imum)?[_ ](?:memory[_ ])?allocated|peak memory|allocated_bytes\.all\.peak|peak_bytes_in_use|"
        r"(?-i:Max_MA)",
    ),
    (
        "peak_reserved",
        r"(?:max|peak)(?:imum)?[_ ](?:memory[_ ])?(?:reserved|cached)|reserved_bytes\.all\.peak|(?-i:Max_CA)",
    ),
    (
        "reserved",
        r"(?:memory[_ ])?(?:reserved|cached)(?:[_ ]memory)?|reserved_bytes\.all\.current|driver_allocated_memory|"
        r"(?-i:CA)",
    ),
    (
        "allocated",
        r"(?:memory[_ ])?alloc(?:ated)?(?:[_ ]memory)?|allocated_bytes\.all\.current|bytes_in_use|(?-i:MA)",
    ),
    ("free", r"(?<!largest_)(?:memory[_ ])?free(?:[_ ]memory)?"),
    ("capacity", r"total(?:[_ ](?:memory|capacity))?|capacity"),
    ("limit", r"bytes_limit"),
)
"""A number → the names that PyTorch's, JAX's and DeepSpeed's functions, and those who print them, give it; the longer
name first."""
_BETWEEN = r"[\"'()\[\]\w ]{0,24}?\s{0,4}[:=]\s{0,8}|(?:\(\))?\s{1,8}"
"""What stands between a name and its number: a unit in brackets, a colon, an equals sign."""
_NAMED = r"(?i:(?<![a-z])(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _NAMES) + r"))"
_PRINTED_PAIR = re.compile(
    _NAMED + r"(?:[_ ]?[(\[]?(?P<named_unit>[KMGT]i?B|[MG]i?b|bytes)[)\]]?)?(?:" + _BETWEEN + ")" + _NUMBER
)
_NUMBER_FIRST = re.compile(
    r"(?<![\w.])(?P<number>\d{1,15}(?:[.,_]\d{1,15}){0,4})\s{0,4}(?P<unit>[KMGTkmgt]i?[Bb]|[Bb]ytes)\s{1,4}(?:is |of )?"
    + _NAMED
    + r"(?![a-z_])"
)
"""A number with its unit, then its name: 2.47 GB allocated."""
_LINE_UNIT = re.compile(r"[Mm]em(?:ory)? ?[(\[]([KMGT]i?B)[)\]] ?[|:]")
"""The unit of all numbers of a line, as Megatron writes it: memory (MB) | allocated: 2529.3 | ..."""
_DEVICE = re.compile(r"(?:cuda:|GPU |device |[Rr]ank ?)(\d{1,4})\b")
MIN_BYTES = 2**20
"""A smaller sum is a count of something else: no GPU's memory is below one MiB."""


def printed_numbers(text: str) -> list[DeviceMemory]:
    """Return the last numbers that lines of a text print for each device, in bytes; nothing without "allocated".

    A number without a unit counts as bytes where it is at least one MiB; another one is left out.
    """
    found: dict[int, dict[str, int]] = {}
    device = 0
    for line in text.splitlines():
        if (named := _DEVICE.search(line[:400])) is not None:
            device = int(named[1])
        unit = heading[1] if (heading := _LINE_UNIT.search(line[:400])) is not None else ""
        for pair in _pairs(line[:2_000]):
            size = _bytes(pair["number"], pair["unit"] or pair.groupdict().get("named_unit") or unit)
            if size is not None:
                name = next(name for name, _ in _NAMES if pair[name])
                found.setdefault(device, {})[name] = size
    return [_device(number, sizes) for number, sizes in sorted(found.items()) if _can_be_judged(sizes)]


def _pairs(line: str) -> list[re.Match[str]]:
    """Return the names with their numbers, in the order that pairs more of them."""
    named, numbered = list(_PRINTED_PAIR.finditer(line)), list(_NUMBER_FIRST.finditer(line))
    return numbered if len(numbered) > len(named) else named


def _can_be_judged(sizes: dict[str, int]) -> bool:
    """Return whether there is what PyTorch holds, and something to compare it with."""
    names = sizes.keys()
    return bool(names & {"allocated", "peak_allocated"}) and bool(
        names & {"reserved", "peak_reserved", "free", "limit"}
    )


def _bytes(number: str, unit: str) -> int | None:
    plain = number.replace("_", "")
    # A comma groups digits by three; before fewer or more of them it begins the decimals.
    plain = plain.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", plain) else plain.replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        return None
    if not unit and value < MIN_BYTES:
        return None
    return int(value * _UNITS["" if unit[:1] in ("B", "b") else unit[:1].lower()])


def _device(number: int, sizes: dict[str, int]) -> DeviceMemory:
    allocated = sizes.get("allocated", sizes.get("peak_allocated", 0))
    reserved = max(sizes.get("reserved", sizes.get("peak_reserved", allocated)), allocated)
    capacity = sizes.get("capacity", sizes.get("limit"))
    used = capacity - sizes["free"] if capacity is not None and "free" in sizes else reserved
    unused = reserved - allocated
    return DeviceMemory(
        number,
        allocated=allocated,
        reserved=reserved,
        peak_allocated=max(sizes.get("peak_allocated", 0), allocated),
        peak_reserved=max(sizes.get("peak_reserved", 0), reserved),
        free=FreeMemory(total=unused, split_known=False),
        capacity=capacity,
        others=max(0, used - reserved),
    )
