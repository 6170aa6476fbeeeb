"""A fault of a script, and the table of all kinds: the cause, what it shows in a log, the fix."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.roles import Roles


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a script that is wrong, or may be.

    Args:
        rule: Its id.
        line: The line, from 1.
        certainty: "certain", "likely", or "depends" on what the script does not show.
        cause: The cause of PLAYBOOK.md that it is.
        says: What stands there, and why that is wrong.
        shows: What it would show in a log.
        fix: What to write instead.
        lines: Other lines that take part in it, such as that of the setting which decides.
    """

    rule: str
    line: int
    certainty: Certainty
    cause: str
    says: str
    shows: str
    fix: str
    lines: tuple[int, ...] = ()


MAX_JUDGED = 20
"""Calls or assignments that a rule judges where each takes long. Chosen: a script has a few."""
FAULTS_FILE = Path(__file__).parent / "faults.csv"


@lru_cache(maxsize=1)
def kinds() -> dict[str, tuple[str, str, str]]:
    """Return, by the id of a rule, the cause of what it finds, what that would show in a log, and the fix."""
    with FAULTS_FILE.open(encoding="utf-8", newline="") as file:
        return {row["rule"]: (row["cause"], row["shows"], row["fix"]) for row in csv.DictReader(file)}


def fault(
    rule: str, line: int, certainty: Certainty, says: str, *, cause: str = "", fix: str = "", lines: Iterable[int] = ()
) -> Fault:
    """Return a fault of a rule; what it shows comes from `faults.csv`, and cause and fix where none is given."""
    usual_cause, shows, usual_fix = kinds()[rule]
    return Fault(rule, line, certainty, cause or usual_cause, says, shows, fix or usual_fix, tuple(lines))


Rule = Callable[[Roles], Iterator[Fault]]
"""What looks for one kind of fault in a script."""
