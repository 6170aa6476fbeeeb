"""What a known error message at the end of a log says about the causes, in bits."""

from __future__ import annotations

from collections.abc import Sequence

from mldebug_mcp.diagnose.ranking import Evidence
from mldebug_mcp.knowledge.errors import KnownError, Role, match
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding
from mldebug_mcp.models.base import OTHER

FIRST, LESS = 6.0, 1.5
"""Bits for the first cause that a row of errors.jsonl names, and how many fewer for each further one.

Sixty-four to one: a message usually is what its row says. Chosen by hand.
"""
STANDS = 7.0
"""Bits for every cause of the row because there is a known message at all: one healthy run in 130 has one."""


def told_by_errors(run: Run) -> list[Evidence]:
    """Return what the error that ended a run says about each cause; nothing if no known error ended it.

    The first error counts, before the echoes of other ranks. One that no cause of the catalogue explains speaks for
    `unknown`.
    """
    known = [
        (message, row) for message in run.fatal if (row := _row(match(message.text, code=message.code))) is not None
    ]
    if not known:
        return []
    message, row = min(known, key=lambda one: one[1].role is Role.ECHO)
    return _told(row, f"the error in line {message.line} ({row.id})")


def told_by_error(text: str) -> list[Evidence]:
    """Return what an error message that ended a run says about each cause; nothing if it is not a known one."""
    row = _row(match(text))
    return [] if row is None else _told(row, f"the error that ended it ({row.id})")


def beside(findings: Sequence[Finding], evidence: Sequence[Evidence]) -> list[Finding]:
    """Return the findings to judge: without `error_message`, if a known error has spoken for its own causes.

    That finding would speak for the causes of all other messages too.
    """
    known = any(one.kind == "error" for one in evidence)
    return [finding for finding in findings if not known or finding.symptom != "error_message"]


def _told(row: KnownError, said: str) -> list[Evidence]:
    causes = row.causes or (OTHER,)
    return [
        Evidence(cause, STANDS + max(FIRST - LESS * place, LESS), said, "error") for place, cause in enumerate(causes)
    ]


def _row(rows: Sequence[KnownError]) -> KnownError | None:
    return min(rows, key=lambda row: row.role is Role.ECHO, default=None)
