"""Folders of logs that others labelled: an `index.jsonl` or `labels.jsonl`, one object per line, names each log.

An object has `file`, relative to the folder, or `id`, a folder in `runs`. Its `half` is `open` or `closed`: a closed
log is scored and never looked into, so that its score tells how good an answer is on logs that nobody wrote code for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INDEXES = ("index.jsonl", "labels.jsonl")
OPEN, CLOSED = "open", "closed"


@dataclass(frozen=True)
class Labelled:
    """A log or run folder, and the object that its index has for it."""

    name: str
    path: Path
    folder: str
    half: str
    label: Mapping[str, Any]

    @property
    def column(self) -> str:
        """The column of a table that it counts in: its folder's name, and its half if the index tells one."""
        return f"{self.folder} {self.half}".strip()

    @property
    def shown(self) -> bool:
        """Whether its details may be shown."""
        return self.half != CLOSED


def labelled(folder: Path, *, closed: bool) -> list[Labelled]:
    """Return the labelled logs of a folder, those of the closed half only if asked for.

    Raises:
        SystemExit: the folder has no index, or one that cannot be read; the message says which line.
    """
    index = next((folder / name for name in INDEXES if (folder / name).is_file()), None)
    if index is None:
        raise SystemExit(f"{folder}: no {' or '.join(INDEXES)} in it; name a folder of labelled logs")
    lines = enumerate(index.read_text(encoding="utf-8").splitlines(), 1)
    ones = [_labelled(folder, line, f"{index}, line {number}") for number, line in lines if line.strip()]
    return [one for one in ones if closed or one.shown]


def _labelled(folder: Path, line: str, where: str) -> Labelled:
    try:
        label = json.loads(line)
        name = label["file"] if "file" in label else f"runs/{label['id']}"
        half = label.get("half", "")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"{where}: not an object with `file` or `id` ({error})") from None
    if half not in ("", OPEN, CLOSED):
        raise SystemExit(f"{where}: half is {half!r}; it may be {OPEN!r}, {CLOSED!r} or left out")
    return Labelled(name, folder / name, folder.resolve().name, half, label)


def columns(ones: Sequence[Labelled]) -> list[str]:
    """Return the columns that some logs count in, in the order in which they occur."""
    return list(dict.fromkeys(one.column for one in ones))
