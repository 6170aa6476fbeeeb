"""How a rank ended, from the last of its log: one look at a file of any size, as there may be thousands.

The end of the file is read, and only of one that tells no step there, the whole: what stands behind the last record is
where a process says why it ended.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import median

from mldebug_mcp.access import EmptyFileError, open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.roles import role_of
from mldebug_mcp.text import clean, shorten

ENDS = (4 * 1024, 64 * 1024)
"""Bytes at the end in which steps are looked for, the second where the first tell none."""
LARGEST = 64 * 1024 * 1024
"""Bytes of a file without steps at its end that are searched for an error, from its beginning."""
READ_RECORDS = 3
"""Last records of a rank whose durations are read."""
ERROR_BYTES = 2048
"""Of an error that are kept."""
LONGEST_LINE = 4096
NEAR = 1024
"""Bytes before a line without a time in which the nearest one is looked for."""

_STEP = re.compile(
    rb"[sSiIuUbB](?:tep|TEP|ter(?:ation)?|TER(?:ATION)?|pdate|PDATE|atch|ATCH)s?[\"']?\s{0,4}[:=]?\s{0,4}\[?\s{0,4}"
    rb"(\d{1,12})\b"
)
_BAR = re.compile(rb"\b(\d{1,12})/\d{1,12} \[")
"""What a progress bar tells."""
_PAIR = re.compile(
    rb"([A-Za-z][\w./]{0,60}(?: [A-Za-z][\w./]{0,60}){0,2})[\"']?\s{0,4}[:=]?\s{0,4}"
    rb"(\d{1,15}(?:\.\d{0,20})?(?:e[+-]?\d{1,3})?)\b",
    re.ASCII,
)
"""A name and its number: units do not matter where ranks are compared with each other."""
_SIGNS = (
    b"Traceback (most recent call last)", b"Error", b"FATAL", b"Fatal", b"Segmentation fault", b"Killed",
    b"core dumped", b"Watchdog caught", b"CRITICAL", b"terminate called", b"error:", b"ERROR",
)  # fmt: skip
"""What a process that fails writes; few and literal, so that a megabyte is searched in less time than it is read in."""
_TIME = re.compile(
    rb"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?|[EWIF](\d\d)(\d\d) (\d\d:\d\d:\d\d)\.(\d{6})"
)


@dataclass(frozen=True, slots=True)
class RankEnd:
    """How a rank ended.

    Args:
        rank: Its numbers, as its path tells them.
        file: The file that tells of an error, else the one with steps, else the first.
        bytes: Of all its files.
        step: The last step that it tells.
        time: When it was there, in seconds; None where its lines bear no time.
        error: What it says of an error behind its last record; empty for nothing.
        error_time: When that was.
        durations: The medians of the times that its last records tell, in their units, by name.
        has_loss: Whether these tell a loss.
        unread: Why a file could not be read.
    """

    rank: tuple[str, ...]
    file: Path
    bytes: int = 0
    step: float | None = None
    time: float | None = None
    error: str = ""
    error_time: float | None = None
    durations: dict[str, float] = field(default_factory=dict)
    has_loss: bool = False
    unread: str = ""

    def words(self) -> str:
        """Return the words of its error: of a traceback the exception, else the first line."""
        lines = [line for line in self.error.splitlines() if line.strip()]
        traceback = next((at for at, line in enumerate(lines) if "Traceback" in line), None)
        if traceback is not None:
            lines = [line for line in lines[traceback + 1 :] if not line[:1].isspace()] or lines
        return shorten(lines[0] if lines else "", 200)


def rank_end(rank: tuple[str, ...], files: Sequence[Path]) -> RankEnd:
    """Look at the files of a rank."""
    ends = [_file_end(rank, file) for file in files]
    told = [one for one in ends if one.step is not None]
    failed = [one for one in ends if one.error]
    lead = (told or failed or ends)[0]
    return RankEnd(
        rank=rank,
        file=(failed or [lead])[0].file,
        bytes=sum(one.bytes for one in ends),
        step=lead.step,
        time=lead.time,
        error=failed[0].error if failed else "",
        error_time=failed[0].error_time if failed else None,
        durations=lead.durations,
        has_loss=lead.has_loss,
        unread=next((one.unread for one in ends if one.unread), "") if not told and not failed else "",
    )


def _file_end(rank: tuple[str, ...], path: Path) -> RankEnd:
    try:
        with open_input(path, buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            for end in (*ENDS, LARGEST):
                file.seek(max(0, size - end) if end < LARGEST else 0)
                tail = file.read(end)
                steps = _steps(tail)
                if steps or end >= size:
                    break
    except EmptyFileError:
        return RankEnd(rank, path)
    except (OSError, InputError) as error:
        return RankEnd(rank, path, unread=str(error))
    last = steps[-1] if steps else None
    begins = 0 if last is None else last.ends
    error_at = _first_sign(tail, begins)
    durations, has_loss = _told(tail, steps[-READ_RECORDS:])
    return RankEnd(
        rank,
        path,
        size,
        step=None if last is None else last.step,
        time=None if last is None else _time(tail, last.at),
        error="" if error_at is None else clean(tail[error_at : error_at + ERROR_BYTES].decode("utf-8", "replace")),
        error_time=None if error_at is None else _time(tail, error_at),
        durations=durations,
        has_loss=has_loss,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """A step in the tail: its number, the place of it, and the end of its line."""

    step: float
    at: int
    ends: int


def _steps(text: bytes) -> list[_Step]:
    """Return the lines that tell steps."""
    found: list[_Step] = []
    end = 0
    for match in _STEP.finditer(text) if _STEP.search(text) else _BAR.finditer(text):
        if match.start() < end:
            continue  # of the same line
        end = text.find(b"\n", match.end())
        end = len(text) if end < 0 else end
        found.append(_Step(float(match[1]), match.start(), end))
    return found


def _first_sign(text: bytes, begins: int) -> int | None:
    """Return where the line begins that is the first to read like an error."""
    places = [place for sign in _SIGNS if (place := text.find(sign, begins)) >= 0]
    return text.rfind(b"\n", 0, min(places)) + 1 if places else None


def _time(text: bytes, place: int) -> float | None:
    """Return the time of a line, or of the nearest line before it or behind it that bears one."""
    begins = text.rfind(b"\n", 0, place) + 1
    line = text[begins : begins + LONGEST_LINE]
    found = _TIME.search(line.partition(b"\n")[0])
    found = (
        found or next(reversed(list(_TIME.finditer(text, max(0, begins - NEAR), begins))), None) or _TIME.search(line)
    )
    if found is None:
        return None
    year, month, day, clock, part, *logged = (None if one is None else one.decode() for one in found.groups())
    if year is None:  # glog writes no year
        year, (month, day, clock, part) = "2000", logged
    try:
        return datetime.fromisoformat(f"{year}-{month}-{day}T{clock}.{(part or '0')[:6]:0<6}").timestamp()
    except ValueError:
        return None


def _told(text: bytes, steps: Sequence[_Step]) -> tuple[dict[str, float], bool]:
    """Return the medians of the durations in the lines of some steps, and whether they tell a loss."""
    values: dict[str, list[float]] = {}
    has_loss = False
    for one in steps:
        begins = text.rfind(b"\n", 0, one.at) + 1
        for name, number in _PAIR.findall(text[begins : one.ends][:LONGEST_LINE]):
            has_loss = has_loss or b"loss" in name
            if _is_duration(name):
                values.setdefault(clean(name.decode()), []).append(float(number))
    return {name: median(some) for name, some in values.items()}, has_loss


@lru_cache(maxsize=4096)
def _is_duration(name: bytes) -> bool:
    role = role_of(name.decode())
    return role is not None and role.quantity.is_duration and role.is_level
