"""Which files of a folder are those of the ranks of one job, by the structure of their paths and by what they hold.

Such paths differ in numbers alone. That a number is a rank, and not that of a run in a sweep, is told by the word in
front of it (`rank0.log`, `worker-3/stdout`, `node3/gpu5.log`), by the folder of an attempt above it (torchelastic's
`attempt_0/7/stderr.log`), or by the file itself, which calls its rank by that number. Runs whose folders hold different
configurations are runs, whatever they are called.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mldebug_mcp.access import is_file, open_input, read_bytes
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.rotation import log_name
from mldebug_mcp.logs.settings.files import FILE_NAMES

HEAD_BYTES = 16 * 1024
"""Bytes at the beginning of a file in which its rank is looked for."""
LEAST_UNNAMED = 4
"""Files that differ in one number before they are opened to see whether that is a rank."""
LOOKED_AT = 3
LARGEST_SETTINGS = 256 * 1024

Key: TypeAlias = tuple[Path, str]
"""A job: the folder that holds its ranks, and the paths below it without ranks and streams."""
_NUMBER = re.compile(r"\d{1,9}")
_RANK_WORD = re.compile(
    r"(?:^|[^a-z])(?:global|local)?[-_]?(?:rank|worker|node|host|gpu|device|proc|process|replica|machine|pod)s?[-_.=]?$",
    re.IGNORECASE,
)
_NOT_TEXT = frozenset({".parquet", ".wandb", ".db", ".sqlite", ".npz", ".ipynb", ".md"})
_ATTEMPT = re.compile(r"attempt[-_]?\d+", re.IGNORECASE)
_STREAM = re.compile(r"\b(?:stdout|stderr|out|err)\b|(?<=_)(?:stdout|stderr)", re.IGNORECASE)
_OWN_RANK = re.compile(
    rb"(?:\b(?:global[_ ]|local[_ ])?rank[\"']?\s{0,2}[:= ]?\s{0,2}|\[rank|\[default)(\d{1,6})\b", re.I
)


@dataclass(slots=True)
class Job:
    """A job of several ranks.

    Args:
        home: The folder that holds its ranks.
        shape: The paths below it, "#" for each rank.
        ranks: The files of each rank, by its numbers: ("3",), or ("1", "3") of the third one of a first node.
    """

    home: Path
    shape: str
    ranks: dict[tuple[str, ...], list[Path]] = field(default_factory=dict)


def jobs_in(folder: Path, paths: Sequence[Path]) -> list[Job]:
    """Return the jobs whose ranks wrote some of the files of a folder, at least two ranks each."""
    jobs: dict[Key, Job] = {}
    unnamed: dict[Key, dict[str, Path]] = defaultdict(dict)
    for path in filter(_is_text, paths):
        numbers = _rank_numbers(path.relative_to(folder).parts)
        if numbers:
            _take(jobs, folder, path, numbers)
        elif len(every := _numbers(path.relative_to(folder).parts)) == 1:
            key, rank = _key(folder, path, every)
            unnamed[key][rank[0]] = path
    for files in unnamed.values():
        if len(files) >= LEAST_UNNAMED and _call_themselves(files):
            for path in files.values():
                _take(jobs, folder, path, _numbers(path.relative_to(folder).parts))
    return [job for job in jobs.values() if len(job.ranks) > 1 and not _differ_in_settings(job)]


Place: TypeAlias = tuple[int, int, int]
"""Where a number stands: part of the path, first character, end."""


def _is_text(path: Path) -> bool:
    return "tfevents" not in path.name and path.suffix.lower() not in _NOT_TEXT


def _numbers(parts: Sequence[str]) -> list[Place]:
    return [(at, one.start(), one.end()) for at, part in enumerate(parts) for one in _NUMBER.finditer(part)]


def _rank_numbers(parts: Sequence[str]) -> list[Place]:
    found = []
    for at, start, end in _numbers(parts):
        part, above = parts[at], parts[at - 1] if at else ""
        whole = start == 0 and part[end:] in ("", Path(part).suffix)
        if _RANK_WORD.search(part[:start]) or (whole and (_ATTEMPT.fullmatch(above) or _RANK_WORD.search(above))):
            found.append((at, start, end))
    return found


def _key(folder: Path, path: Path, places: Sequence[Place]) -> tuple[Key, tuple[str, ...]]:
    """Return the job that a file belongs to, and the numbers of its rank."""
    parts = list(path.relative_to(folder).parts)
    rank = tuple(parts[at][start:end] for at, start, end in places)
    first = places[0][0]
    for at, start, end in reversed(places):
        parts[at] = f"{parts[at][:start]}#{parts[at][end:]}"
    parts[-1] = _STREAM.sub("@", log_name(parts[-1]))
    return (folder.joinpath(*parts[:first]), "/".join(parts[first:])), rank


def _take(jobs: dict[Key, Job], folder: Path, path: Path, places: Sequence[Place]) -> None:
    key, rank = _key(folder, path, places)
    inside = "#" not in key[1].rpartition("/")[2]  # the files in the folder of a rank are its own, whatever their names
    shape = key[1].rpartition("/")[0] if inside else key[1]
    job = jobs.setdefault((key[0], shape), Job(key[0], shape))
    job.ranks.setdefault(tuple(one.lstrip("0") or "0" for one in rank), []).append(path)


def _call_themselves(files: dict[str, Path]) -> bool:
    """Say whether the first, a middle and the last file each call their own rank by the number in their name."""
    numbers = sorted(files, key=int)
    asked = {numbers[0], numbers[len(numbers) // 2], numbers[-1]}
    return all(_own_rank(files[number]) == int(number) for number in asked)


def _own_rank(path: Path) -> int | None:
    try:
        with open_input(path) as file:
            found = {int(one) for one in _OWN_RANK.findall(file.read(HEAD_BYTES))}
    except (OSError, InputError):
        return None
    return found.pop() if len(found) == 1 else None


def _differ_in_settings(job: Job) -> bool:
    """Say whether the folders of ranks hold configurations of their own that differ, as those of runs do."""
    ranks = list(job.ranks.values())
    looked_at = (ranks[0][0], ranks[len(ranks) // 2][0], ranks[-1][0])
    places = {path.parent for path in looked_at if path.parent != job.home}
    return len(set(_settings(places))) > 1


def _settings(places: Iterable[Path]) -> list[bytes]:
    found = []
    for place in places:
        for name in FILE_NAMES:
            if is_file(place / name):
                try:
                    found.append(read_bytes(place / name, LARGEST_SETTINGS))
                except (OSError, InputError):
                    found.append(b"")
                break
    return found
