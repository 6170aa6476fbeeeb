"""Rotated logs: `train.log.2.gz`, `train.log.1` and `train.log` are one log, as are parts named by their date.

Source: https://docs.python.org/3/library/logging.handlers.html (RotatingFileHandler: the higher the number, the older;
TimedRotatingFileHandler: the date is the ending) and logrotate(8), whose `dateext` writes -YYYYMMDD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mldebug_mcp.logs.decoding.unpack import plain_name

_NUMBERED = re.compile(r"(?P<log>.+\.[a-z]+)\.(?P<number>[1-9]\d{0,2})")
_DATED = re.compile(r"(?P<log>.+\.[a-z]+)[.-](?P<date>(?:19|20)\d\d-?\d\d-?\d\d(?:[T_-]?\d\d(?:[-:]?\d\d){0,2})?)")


def log_name(name: str) -> str:
    """Return the name that a log had before it was rotated or compressed."""
    name = plain_name(name)
    part = _NUMBERED.fullmatch(name) or _DATED.fullmatch(name)
    return part["log"] if part else name


def rotated(files: Iterable[Path]) -> dict[Path, list[Path]]:
    """Return the logs among files that have rotated parts beside them, each with its parts, oldest first.

    A part without the log that it was rotated from, as the logs of several ranks can be named, is a log by itself.
    """
    whole = {path.parent / plain_name(path.name): path for path in files}
    parts: dict[Path, list[Path]] = {}
    for path in whole.values():
        name = log_name(path.name)
        log = whole.get(path.parent / name)
        if log is not None and log != path and path.parent / f"{name}.0" not in whole:
            parts.setdefault(log, []).append(path)
    return {log: sorted(older, key=_order) for log, older in parts.items()}


def _order(path: Path) -> tuple[int, str]:
    """Return what sorts parts by time: numbers count backwards, dates forwards."""
    name = plain_name(path.name)
    numbered = _NUMBERED.fullmatch(name)
    return (-int(numbered["number"]), "") if numbered else (0, name)
