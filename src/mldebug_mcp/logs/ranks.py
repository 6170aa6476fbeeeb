"""How each rank of a job ended, and which of them stands out.

The ends of all show which rank failed first, which is behind, which is slow, and what is missing. Each file is looked
at once, at its end, as there may be thousands.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import median

import numpy as np

from mldebug_mcp.core.access import open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import clean, counted, figure, shorten
from mldebug_mcp.logs.failures import TRACEBACK, Prefixes
from mldebug_mcp.logs.names import role_of

# How a rank ended, from the last of its log: one look at a file of any size, as there may be thousands.
#
# The end of the file is read, and only of one that tells no step there, the whole: what stands behind the last record
# is where a process says why it ended.

ENDS = (4 * 1024, 64 * 1024)
"""Bytes at the end in which steps are looked for, the second where the first tell none."""
MAX_SEARCHED_BYTES = 64 * 1024 * 1024
"""Bytes of a file without steps at its end that are searched for an error, from its beginning."""
READ_RECORDS = 3
"""Last records of a rank whose durations are read."""
ERROR_BYTES = 16 * 1024
"""Bytes behind the first sign of an error in which its exception is looked for: a traceback may be long."""
MAX_ERROR_CHARACTERS = 200
LONGEST_LINE = 4096
MAX_BYTES_TO_TIME = 1024
"""Bytes before a line without a time in which the nearest one is looked for."""

_STEP_IN_BYTES = regex(
    rb"[sSiIuUbB](?:tep|TEP|ter(?:ation)?|TER(?:ATION)?|pdate|PDATE|atch|ATCH)s?[\"']?\s{0,4}[:=]?\s{0,4}\[?\s{0,4}"
    rb"(\d{1,12})\b"
)
_BAR = regex(rb"\b(\d{1,12})/\d{1,12} \[")
"""What a progress bar tells."""
_PAIR = regex(
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
_TIME = regex(
    rb"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?|[EWIF](\d\d)(\d\d) (\d\d:\d\d:\d\d)\.(\d{6})"
)


@dataclass(frozen=True, slots=True)
class RankEnd:
    """How a rank ended.

    Args:
        rank: Its numbers, as its path tells them.
        file: The file that shows an error, else the one with steps, else the first.
        bytes: Of all its files.
        step: The last step that it tells.
        error: The words of an error behind its last record: of a traceback the exception, else the first line; empty
            for none.
        error_time: When that was.
        durations: The medians of the times that its last records tell, in their units, by name.
        has_loss: Whether these tell a loss.
    """

    rank: tuple[str, ...]
    file: Path
    bytes: int = 0
    step: float | None = None
    error: str = ""
    error_time: float | None = None
    durations: dict[str, float] = field(default_factory=dict)
    has_loss: bool = False


def rank_end(rank: tuple[str, ...], files: Sequence[Path]) -> RankEnd:
    """Look at the files of a rank."""
    ends = [_file_end(rank, file) for file in files]
    with_steps = [end for end in ends if end.step is not None]
    failed = [end for end in ends if end.error]
    lead = (with_steps or failed or ends)[0]
    return RankEnd(
        rank=rank,
        file=(failed or [lead])[0].file,
        bytes=sum(end.bytes for end in ends),
        step=lead.step,
        error=failed[0].error if failed else "",
        error_time=failed[0].error_time if failed else None,
        durations=lead.durations,
        has_loss=lead.has_loss,
    )


def _file_end(rank: tuple[str, ...], path: Path) -> RankEnd:
    try:
        with open_input(path, buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            for end in (*ENDS, MAX_SEARCHED_BYTES):
                file.seek(max(0, size - end) if end < MAX_SEARCHED_BYTES else 0)
                tail = file.read(end)
                steps = _steps(tail)
                if steps or end >= size:
                    break
    except (OSError, InputError):
        return RankEnd(rank, path)
    last = steps[-1] if steps else None
    begins = 0 if last is None else last.ends
    error_at = _first_sign(tail, begins)
    durations, has_loss = _durations_in(tail, steps[-READ_RECORDS:])
    return RankEnd(
        rank,
        path,
        size,
        step=None if last is None else last.step,
        error="" if error_at is None else _error_in(tail[error_at : error_at + ERROR_BYTES].decode("utf-8", "replace")),
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
    for match in _STEP_IN_BYTES.finditer(text) if _STEP_IN_BYTES.search(text) else _BAR.finditer(text):
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


def _error_in(text: str) -> str:
    """Return the words of an error: of a traceback the exception, else the first line."""
    lines = [line for line in map(clean, text.splitlines()) if line.strip()]
    traceback = next((at for at, line in enumerate(lines) if TRACEBACK in line), None)
    if traceback is not None:
        prefixes = Prefixes()
        prefixes.learn(lines[traceback])
        below = (prefixes.split(line)[1] for line in lines[traceback + 1 :])
        lines = [line for line in below if line and not line[0].isspace()] or lines
    return shorten(lines[0] if lines else "", MAX_ERROR_CHARACTERS)


def _time(text: bytes, place: int) -> float | None:
    """Return the time of a line, or of the nearest line before it or behind it that bears one."""
    begins = text.rfind(b"\n", 0, place) + 1
    line = text[begins : begins + LONGEST_LINE]
    found = _TIME.search(line.partition(b"\n")[0])
    found = (
        found
        or next(reversed(list(_TIME.finditer(text, max(0, begins - MAX_BYTES_TO_TIME), begins))), None)
        or _TIME.search(line)
    )
    if found is None:
        return None
    year, month, day, clock, part, *logged = (None if group is None else group.decode() for group in found.groups())
    if year is None:  # glog writes no year
        year, (month, day, clock, part) = "2000", logged
    try:
        return datetime.fromisoformat(f"{year}-{month}-{day}T{clock}.{(part or '0')[:6]:0<6}").timestamp()
    except ValueError:
        return None


def _durations_in(text: bytes, steps: Sequence[_Step]) -> tuple[dict[str, float], bool]:
    """Return the medians of the durations in the lines of some steps, and whether they tell a loss."""
    values: dict[str, list[float]] = {}
    has_loss = False
    for step in steps:
        begins = text.rfind(b"\n", 0, step.at) + 1
        for name, number in _PAIR.findall(text[begins : step.ends][:LONGEST_LINE]):
            has_loss = has_loss or b"loss" in name
            if _is_duration(name):
                values.setdefault(clean(name.decode()), []).append(float(number))
    return {name: median(some) for name, some in values.items()}, has_loss


@lru_cache(maxsize=4096)
def _is_duration(name: bytes) -> bool:
    role = role_of(name.decode())
    return role is not None and role.quantity.is_duration and role.is_level


# What the ends of all ranks tell together: which failed first, which is behind, which is slow, and what is missing.

MIN_TIMES_SLOWER = 1.2
"""Times the slowest of the others, as where ranks stand in one log. Chosen: shares of a batch differ by less."""
LEAST_RANKS = 3
"""Ranks from which one can be seen to differ from the rest."""
MAX_SHARE_OF_EXCEPTIONS = 0.05
"""Share of the ranks that may stand out together; more are no exception. Chosen."""
MAX_NAMED_RANKS = 8
"""Ranks that are named."""
READ_WHOLE = 8
"""Ranks of a job whose files are all read as logs, besides the look at their ends: of more, the most informative."""
_ECHO = regex(
    r"NCCL|Watchdog|ProcessGroup|[Cc]onnection (?:closed|reset|refused)|[Bb]roken pipe|by peer|SIGTERM|"
    r"ChildFailedError|[Bb]arrier|TCPStore|timed? ?out|DistBackendError|[Gg]loo|exitcode"
)
"""What ranks say when another one has gone."""


@dataclass(frozen=True, slots=True)
class RankSummary:
    """What the files of a job's ranks tell.

    Args:
        count: Ranks.
        files: Files of all of them.
        failed: Ranks that tell an error.
        first_failed: The rank that failed first, with the file and words of its error; None where none did.
        behind: Ranks that stopped at an earlier step than the others, and its description.
        slow: The rank that takes longer, and its description.
        missing: Numbers that no file has though higher ones do.
        worth_reading: The files that are read as logs of the run.
    """

    count: int
    files: int
    failed: int = 0
    first_failed: RankEnd | None = None
    behind: str = ""
    straggler: str = ""
    slow: str = ""
    missing: tuple[str, ...] = ()
    worth_reading: tuple[Path, ...] = ()

    def lines(self) -> list[str]:
        """Return what stands out, in words."""
        lines = [f"{counted(self.count, 'rank')} in {counted(self.files, 'file')} are one run"]
        first = self.first_failed
        if first is not None:
            lines.append(f"{_called(first)} is the first of {self.failed} to fail: {first.error}")
        lines += [text for text in (self.behind, self.slow) if text]
        if self.missing:
            more = "" if len(self.missing) <= MAX_NAMED_RANKS else f" and {len(self.missing) - MAX_NAMED_RANKS} more"
            lines.append(
                f"no file of rank {', '.join(self.missing[:MAX_NAMED_RANKS])}{more}, though higher ones are there"
            )
        return lines


def rank_summary(ranks: Mapping[tuple[str, ...], Sequence[Path]]) -> RankSummary:
    """Look at the end of each rank's files once, and say what stands out."""
    ends = []
    for rank, files in sorted(ranks.items(), key=lambda item: tuple(map(int, item[0]))):
        ends.append(rank_end(rank, files))
        checkpoint(f"{len(ends):,} of {len(ranks):,} ranks looked at")
    failed = [end for end in ends if end.error]
    first = min(failed, key=_order(failed), default=None)
    late, behind = _first_stopped_rank(ends)
    slow, why_slow = _slow(ends)
    return RankSummary(
        count=len(ends),
        files=sum(map(len, ranks.values())),
        failed=len(failed),
        first_failed=first,
        behind=behind,
        straggler=late or slow,
        slow=why_slow,
        missing=_missing(ends),
        worth_reading=_worth_reading(ranks, ends, first, slow),
    )


def _order(failed: Sequence[RankEnd]) -> Callable[[RankEnd], tuple[bool, float, float, tuple[int, ...]]]:
    """Return what sorts failures: real ones before echoes of others, then by time where all tell it, then by step."""
    timed = all(end.error_time is not None for end in failed)

    def order(end: RankEnd) -> tuple[bool, float, float, tuple[int, ...]]:
        when = end.error_time if timed and end.error_time is not None else 0.0
        return is_echo(end.error), when, end.step if end.step is not None else np.inf, tuple(map(int, end.rank))

    return order


def is_echo(error: str) -> bool:
    """Say whether an error is what a rank says when another one has gone."""
    return _ECHO.search(error) is not None


def _first_stopped_rank(ends: Sequence[RankEnd]) -> tuple[str, str]:
    """Return the rank that stopped first where few stopped before the others, and its description."""
    steps = {end.rank: end.step for end in ends if end.step is not None}
    if len(steps) < LEAST_RANKS:
        return "", ""
    usual, _ = Counter(steps.values()).most_common(1)[0]
    late = [end for end in ends if end.step is not None and end.step < usual]
    if not late or len(late) > max(1, MAX_SHARE_OF_EXCEPTIONS * len(steps)):
        return "", ""
    least = min(late, key=lambda end: (end.step, tuple(map(int, end.rank))))
    named = ", ".join(_number(end) for end in late[:MAX_NAMED_RANKS])
    return _number(least), f"rank {named} stopped at step {figure(least.step or 0.0)}, most others at {figure(usual)}"


def _slow(ends: Sequence[RankEnd]) -> tuple[str, str]:
    """Return the rank whose records tell a clearly longer time than those of all others."""
    names = Counter(name for end in ends for name in end.durations)
    for name, count in names.most_common():
        timed = [end for end in ends if name in end.durations]
        if count < max(LEAST_RANKS, len(ends) // 2):
            break
        *_, second, slowest = sorted(timed, key=lambda end: end.durations[name])
        level, others = slowest.durations[name], second.durations[name]
        usual = median([end.durations[name] for end in timed])
        if level >= MIN_TIMES_SLOWER * others > 0 and level - others > others - usual:
            return _number(slowest), (
                f"{_called(slowest)} is slow: {shorten(name, 40)} {figure(level)} in its last records, "
                f"{figure(usual)} in the median of all"
            )
    return "", ""


def _missing(ends: Sequence[RankEnd]) -> tuple[str, ...]:
    numbers = {int(end.rank[-1]) for end in ends}
    if any(len(end.rank) > 1 for end in ends) or max(numbers) > 2 * len(numbers):
        return ()
    return tuple(str(number) for number in range(max(numbers)) if number not in numbers and number > 0)


def _worth_reading(
    ranks: Mapping[tuple[str, ...], Sequence[Path]], ends: Sequence[RankEnd], first: RankEnd | None, slow: str
) -> tuple[Path, ...]:
    """Return the files of the first rank, of the first with a loss, of the one that tells most, and the first error.

    Those of a slow rank come with some of others, by which it is judged.
    """
    if len(ends) <= READ_WHOLE:
        return tuple(path for end in ends for path in ranks[end.rank])
    with_loss = [end for end in ends if end.has_loss]
    chosen = [(with_loss or ends)[0], max(ends, key=lambda end: (end.step is not None, end.bytes))]
    chosen += [end for end in ends if _number(end) == slow] + list(ends[:LEAST_RANKS]) if slow else []
    paths = [path for end in chosen for path in ranks[end.rank]]
    return tuple(dict.fromkeys([*paths, *([] if first is None else [first.file])]))


def _number(end: RankEnd) -> str:
    return ".".join(end.rank)


def _called(end: RankEnd) -> str:
    return f"rank {_number(end)} ({shorten(end.file.name, 60)})"
