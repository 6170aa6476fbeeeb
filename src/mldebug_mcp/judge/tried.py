"""The record of what was tried on a run, read: what was ruled out, confirmed and is open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from pydantic import ValidationError

from mldebug_mcp.core.access import is_file, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.read import existing_record
from mldebug_mcp.models.diagnosis import Tried

MAX_RECORD_BYTES = 16 * 1024 * 1024
"""Bytes of a record that are read: some ten thousand entries."""
MAX_DAMAGED = 5
"""Damaged lines that are named."""


def tried_on(run: Run) -> tuple[list[Tried], list[str]]:
    """Return the record of a run that has been read, and notes on what in it cannot be read; nothing without one."""
    file = existing_record(run)
    return ([], []) if file is None else tried_in(file)


def tried_in(file: Path) -> tuple[list[Tried], list[str]]:
    """Return the entries of a record, and notes on what in it cannot be read; nothing without such a file."""
    try:
        return entries_of(file)
    except InputError as error:
        return [], [f"the record of what was tried is not read: {error}"]


def verdicts(tried: Sequence[Tried]) -> dict[str, Tried]:
    """Return the last verdict on each cause."""
    return {entry.cause: entry for entry in tried if entry.outcome != "open"}


def refuting(leader: str, tried: Sequence[Tried], counted: Collection[str] = ()) -> Tried | None:
    """Return the recorded verdict that refutes the leading cause; None without one, or where its check is `counted`."""
    last = verdicts(tried).get(leader)
    return last if last is not None and last.outcome == "refutes" and last.check not in counted else None


def still_open(tried: Sequence[Tried]) -> list[Tried]:
    """Return the checks and changes that have no verdict yet."""
    last = {(entry.cause, entry.check or entry.done): entry for entry in tried}
    return [entry for entry in last.values() if entry.outcome == "open"]


def tried_lines(tried: Sequence[Tried]) -> list[str]:
    """Return what was ruled out, what was confirmed and what is open, a line each, for people."""
    return [*(verdict.line() for verdict in verdicts(tried).values()), *(entry.line() for entry in still_open(tried))]


def entries_of(file: Path) -> tuple[list[Tried], list[str]]:
    """Return the entries of a record, and a note on lines that are damaged; raises InputError if it cannot be read."""
    try:
        if not is_file(file) or not file.stat().st_size:
            return [], []
        text = read_bytes(file, MAX_RECORD_BYTES, "move the record away to begin a new one").decode(
            "utf-8", errors="replace"
        )
    except OSError as error:
        raise InputError(f"{shorten(str(file), 200)}: cannot be read ({error.strerror or error})") from None
    tried: list[Tried] = []
    damaged: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tried.append(Tried.model_validate_json(line))
        except (ValidationError, ValueError, RecursionError):
            damaged.append(number)
    if not damaged:
        return tried, []
    named = ", ".join(map(str, damaged[:MAX_DAMAGED])) + (", …" if len(damaged) > MAX_DAMAGED else "")
    lines = "1 damaged line is" if len(damaged) == 1 else f"{len(damaged)} damaged lines are"
    return tried, [f"{lines} left out of {file.name}: line {named}"]
