"""What a recording tells of the rows of batches: JSON lines, one file for each rank, with its rotated parts beside it.

Heads `{"recorder": 1, "rows_kind": "index" or "hash", "data_length": N, "sampler": {…}}` tell what is known; one with a
`time` that is not `continued` is a start of the recorder. A record may carry `"step": n, "rows": [ids…]`. A later start
replaces what an earlier one told of the same step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from mldebug_mcp.access import is_file, is_folder, open_input, require
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import entries
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

RowId = int | str
MAX_LINE = 4 * 1024 * 1024
MAX_FILES = 512
"""Files of ranks, and rotated parts of them."""
MOST_ROWS = 4096
"""Rows of a step that a recorder keeps, of one rank; a step with as many may have had more."""
_HEAD = b'{"recorder"'
_NAME = re.compile(r".*\.jsonl(?:\.(?P<part>[1-9]\d{0,2}))?")
_RANK = re.compile(r"rank[_-]?(\d{1,6})")
_KEY = re.compile(r"[0-9a-f]{16}")


@dataclass(slots=True)
class Recording:
    """What a recording tells of some steps.

    Args:
        kind: "index": ids are numbers of rows in the data set; "hash": keys of the rows' tokens.
        head: What the heads say, later ones over earlier ones.
        ranks: The ranks that recorded.
        fed: Rows by step and rank, in the order in which they were fed.
        steps: How many steps have their rows in the recording, and the first and last of them.
        broken: Lines that could not be used.
    """

    kind: str = "index"
    head: dict[str, object] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    fed: dict[int, dict[int, list[RowId]]] = field(default_factory=dict)
    steps: int = 0
    first: int | None = None
    last: int | None = None
    broken: int = 0

    @property
    def sampler(self) -> Mapping[str, object]:
        """What the head says of the sampler."""
        told = self.head.get("sampler")
        return told if isinstance(told, dict) else {}


def recordings_in(path: Path) -> list[list[Path]]:
    """Return the files of a recording, those of one rank together, oldest first; none where there is no recording.

    Those in the folder itself, else in the one folder below it that has some.

    Raises:
        InputError: several folders below have some, which are of different runs.
    """
    require(path)
    if not is_folder(path):
        return _by_rank(one for one in _listed(path.parent) if one.name.startswith(path.name))
    found = [_by_rank(_listed(path))]
    if not found[0]:
        found = [ranks for place in _listed(path) if is_folder(place) and (ranks := _by_rank(_listed(place)))] or [[]]
    if len(found) > 1:
        names = ", ".join(ranks[0][0].parent.name for ranks in found)
        raise InputError(
            f"{shorten(str(path), 200)}: several folders in it have recordings ({shorten(names, 200)}); name one"
        )
    return found[0]


def _by_rank(files: Iterable[Path]) -> list[list[Path]]:
    """Return those of some files that are recordings, the parts of each rank together, oldest first."""
    ranks: dict[Path, list[Path]] = {}
    named = (one for one in files if _NAME.fullmatch(one.name) and is_file(one))
    for file in islice(named, MAX_FILES):
        if _is_recording(file):
            ranks.setdefault(file.with_name(re.sub(r"\.\d+$", "", file.name)), []).append(file)
    return [sorted(parts, key=_age, reverse=True) for parts in ranks.values()]


def read_recording(files: Sequence[Sequence[Path]], wanted: range) -> Recording:
    """Read what the files of a recording tell of the rows of some steps.

    Raises:
        InputError: two of them are of the same rank, so of different runs; or one cannot be read.
    """
    found = Recording()
    for parts in files:
        _read_rank(parts, wanted, found)
    return found


def fed_before(files: Sequence[Sequence[Path]], step: int, rows: Iterable[RowId]) -> dict[RowId, list[int]]:
    """Return the earlier steps in which rows were fed, in order; those that were fed in none are left out."""
    sought = set(rows)
    found: dict[RowId, set[int]] = {}
    for parts in files:
        for record in _records(parts):
            number = _step_of(record)
            if number is not None and number < step:
                for row in sought.intersection(_ids(record)):
                    found.setdefault(row, set()).add(number)
    return {row: sorted(steps) for row, steps in found.items()}


def _read_rank(parts: Sequence[Path], wanted: range, found: Recording) -> None:
    named = _RANK.search(parts[0].name)
    rank, start = int(named[1]) if named else 0, 0
    starts: dict[int, int] = {}
    before = None
    for record in _records(parts, found):
        if "recorder" in record:
            found.head |= record
            found.kind = "hash" if found.head.get("rows_kind") == "hash" else "index"
            told = found.sampler.get("rank", record.get("rank"))
            rank = told if isinstance(told, int) and not named else rank
            start += "time" in record and "continued" not in record
            continue
        step, rows = _step_of(record), _ids(record)
        if step is None or not rows:
            continue
        start += before is not None and step < before
        if before is None and rank in found.ranks:
            raise InputError(
                f"{shorten(str(parts[-1]), 200)}: another recording of rank {rank} lies beside it; name the one meant"
            )
        found.ranks.add(rank)
        found.first = step if found.first is None else min(found.first, step)
        found.last = step if found.last is None else max(found.last, step)
        found.steps += step != before
        before = step
        if step in wanted:
            if starts.get(step) != start:
                starts[step] = start
                found.fed.setdefault(step, {})[rank] = []
            found.fed[step][rank] += rows


def _records(parts: Sequence[Path], found: Recording | None = None) -> Iterator[dict[str, object]]:
    """Yield the heads and the records with rows."""
    for part in parts:
        with open_input(part) as file:
            while line := file.readline(MAX_LINE):
                if not line.startswith(_HEAD) and b'"rows"' not in line:
                    continue
                record = _parsed(line)
                if record is None:
                    if found is not None:
                        found.broken += 1
                    continue
                yield record
        checkpoint(f"reading {part.name[:60]}")


def _parsed(line: bytes) -> dict[str, object] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _step_of(record: Mapping[str, object]) -> int | None:
    step = record.get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < 2**53 else None


def _ids(record: Mapping[str, object]) -> list[RowId]:
    """Return the ids of a record; micro-batches may be lists of their own. What is no id is left out."""
    rows = record.get("rows")
    parts = rows if isinstance(rows, list) else []
    flat = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    return [one for one in flat if _is_index(one) or (isinstance(one, str) and _KEY.fullmatch(one))]


def _is_index(one: object) -> bool:
    return isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**53


def _listed(folder: Path) -> list[Path]:
    try:
        return entries(folder)
    except (OSError, InputError):
        return []


def _is_recording(file: Path) -> bool:
    try:
        with open_input(file) as opened:
            return opened.read(len(_HEAD)) == _HEAD
    except (OSError, InputError):
        return False


def _age(file: Path) -> int:
    matched = _NAME.fullmatch(file.name)
    return int(matched["part"] or 0) if matched else 0
