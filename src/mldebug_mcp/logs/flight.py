"""Dumps of PyTorch's flight recorder → which rank is behind, in which collective operation, at which line.

Each rank dumps the collective operations that it has entered, `nccl_trace_rank_N`, as a pickle of plain values or as
JSON. Ranks enter the operations of a group in one order, so the one that has entered fewest keeps the others waiting.

Source: https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import entries
from mldebug_mcp.logs.settings.pickled import MAX_FILE, read_pickled
from mldebug_mcp.text import clean, shorten

MAX_RANKS = 256
MAX_OPCODES = 2_000_000
"""Opcodes of a dump: two thousand operations with their stacks take half of them."""
SHOWN = 4
_NAME = re.compile(r"(?:.*[_.-])?rank[_.-]?(\d{1,5})")
_OURS = re.compile(r"torch|c10d|distributed|recorder")
"""Words in the path of a frame that is none of the user's."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last operation of a group that a rank has entered."""

    number: int
    name: str
    state: str
    line: str


def flight_lines(folder: Path) -> list[str]:
    """Return what the dumps in a folder say of ranks that wait for each other, a line per group; none without dumps."""
    groups: dict[str, dict[int, _Last]] = defaultdict(dict)
    for file in _dumps(folder):
        rank = int(found[1]) if (found := _NAME.fullmatch(file.name)) else 0
        for group, last in _last_of(_read(file)).items():
            groups[group][rank] = last
    return [line for group, ranks in sorted(groups.items()) if (line := _told(group, ranks))]


def _dumps(folder: Path) -> list[Path]:
    try:
        found = [one for one in entries(folder) if one.name.startswith("nccl_trace") and _NAME.fullmatch(one.name)]
    except (OSError, InputError):
        return []
    return found[:MAX_RANKS]


def _read(file: Path) -> object:
    """Return a dump as plain values; nothing where it cannot be read."""
    try:
        with open_input(file) as stream:
            data = stream.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            return None
        return json.loads(data) if data[:1] == b"{" else read_pickled(file, MAX_OPCODES)
    except (OSError, ValueError, RecursionError, InputError):
        return None


def _last_of(dump: object) -> dict[str, _Last]:
    """Return the last operation of each group in a dump."""
    found: dict[str, _Last] = {}
    listed = dump.get("entries") if isinstance(dump, dict) else None
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or entry.get("is_p2p"):
            continue
        number = entry.get("collective_seq_id")
        group = _group(entry.get("process_group"))
        if isinstance(number, int) and (group not in found or number > found[group].number):
            name = _clean(entry.get("profiling_name")).partition(":")[2] or "an operation"
            found[group] = _Last(number, name, _clean(entry.get("state")), _line(entry.get("frames")))
    return found


def _group(named: object) -> str:
    return _clean(named[1] or named[0]) if isinstance(named, list | tuple) and len(named) > 1 else ""


def _line(frames: object) -> str:
    """Return the innermost line that is the user's own."""
    for frame in frames if isinstance(frames, list) else []:
        if isinstance(frame, dict) and not _OURS.search(str(frame.get("filename", "")).lower()):
            return f"{PurePath(_clean(frame.get('filename'))).name}:{_clean(frame.get('line'))}"
    return ""


def _told(group: str, ranks: Mapping[int, _Last]) -> str:
    """Say which ranks have entered fewer operations than the others, or another one; "" where all are as far."""
    if len(ranks) < 2:
        return ""
    farthest = max(one.number for one in ranks.values())
    behind = {rank: one for rank, one in ranks.items() if one.number < farthest}
    waiting = next(one for one in ranks.values() if one.number == farthest)
    if behind:
        some = next(iter(behind.values()))
        its = f", its last is {some.name} {some.number}{_at(some)}"
        return (
            f"{_ranks(behind)} behind in group {group}: not in {waiting.name} {farthest}, in which "
            f"{len(ranks) - len(behind)} of {len(ranks)} wait{_at(waiting)}{its}"
        )
    names = {one.name for one in ranks.values()}
    if len(names) > 1:
        told = ", ".join(f"rank {rank} in {one.name}{_at(one)}" for rank, one in list(ranks.items())[:SHOWN])
        return f"ranks of group {group} are in different operations at number {farthest}: {told}"
    return ""


def _ranks(behind: Mapping[int, _Last] | Sequence[int]) -> str:
    numbers = [str(rank) for rank in behind]
    shown = ", ".join(numbers[:SHOWN]) + (f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else "")
    return f"rank {shown} is" if len(numbers) == 1 else f"ranks {shown} are"


def _at(one: _Last) -> str:
    return f" at {one.line}" if one.line else ""


def _clean(value: object) -> str:
    return shorten(clean(str(value if value is not None else "")), 120)
