"""What is said of an attempt at a run: how it ended, the error lines in it, and what it logged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "noise"]
"""How much an error line weighs by its words.

error: it may have ended its attempt (`fatal`); warning: the program itself calls it one, was stopped, or goes on by its
plan; noise: a retry, telemetry, or an exception that was ignored.
"""
How = Literal["finished", "error", "interrupted", "silence", "cut", "open"]
"""How a log ends.

finished: by its own words, its closing record, or at its plan; error: in a fatal error; interrupted: by a signal or a
user; silence: its clock runs on without records; cut: inside of a line; open: in none of these ways, as one that is
still being written.
"""

SURVIVED = 2
"""More records than this after an error show that training went on; a record or two may only have been printed late."""

_NOISE = re.compile(
    r"\bretrying\b|\bwill (?:be )?retr|\breconnecting\b|\battempt \d+ ?(?:of|/) ?\d+|\btelemetry\b|"
    r"\b(?:exception|error)s? (?:was |were )?ignored\b|\bignoring (?:the )?(?:exception|error)|\bnon-?fatal\b|"
    r"DeprecationWarning|FutureWarning",
    re.IGNORECASE,
)
_LEVEL = re.compile(r"\b(?:(?P<severe>ERROR|CRITICAL|FATAL|NCCL WARN)|WARN(?:ING)?|warning|\w{1,40}Warning)\b")
"""The level that a logging library writes; NCCL has none above its warning, which stands for errors."""
_SKIPPED = re.compile(r"\bOVERFLOW!|\bskipping (?:this )?(?:step|batch|sample|update)\b", re.IGNORECASE)
"""A step that is left out, as a dynamic loss scaler does: the program goes on by its own plan."""
_NAME = re.compile(r"attempt[ _-]?([1-9]\d{0,4})", re.IGNORECASE)
_IN_FRONT = 100
"""Characters of a line in which the level stands."""


@dataclass(frozen=True, slots=True)
class Message:
    """A line of the log that reads like an error.

    Args:
        line: Its line number, from 1.
        text: The line, cleaned and shortened.
        records: Log records of its attempt read before it.
        code: The line of code that raised it, where a traceback above shows it.
        severity: How much it weighs by its words.
    """

    line: int
    text: str
    records: int = 0
    code: str = ""
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a log, or an attempt in it, ends.

    Args:
        how: See `How`.
        text: The line or the fact that shows it, cleaned and shortened; empty where nothing does.
        line: Line number of that line, 0 where it has none.
    """

    how: How = "open"
    text: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a training program, with everything up to its end.

    Args:
        first_step: Where it began by its finest counter; None if it logged no record.
        last_step: Where it stopped.
        records: Log records of it.
        ending: How it ended.
        judged: Whether the run is this attempt: the one that was asked for, else the last one with substance.
    """

    first_step: float | None
    last_step: float | None
    records: int
    ending: Ending
    judged: bool = False


def named_attempt(wanted: str) -> int:
    """Return the number of the attempt that a run is asked for by, from 1; 0 where it is no name of one."""
    found = _NAME.fullmatch(wanted.strip())
    return int(found[1]) if found else 0


def severity_of(text: str) -> Severity:
    """Return how much an error line weighs by its words."""
    if _NOISE.search(text):
        return "noise"
    if _SKIPPED.search(text) or text.startswith("KeyboardInterrupt"):
        return "warning"
    level = _LEVEL.search(text[:_IN_FRONT])
    return "warning" if level and not level["severe"] else "error"


def fatal(messages: Iterable[Message], records: int, *, finished: bool) -> tuple[Message, ...]:
    """Return the error lines that ended an attempt: training did not go on after them, and had not ended before.

    Args:
        messages: The error lines of the attempt.
        records: Its log records.
        finished: Whether it ended by itself.
    """
    if finished:
        return ()
    return tuple(one for one in messages if one.severity == "error" and records - one.records <= SURVIVED)
