"""The short form of many runs: those that need attention, and how many there are of the rest."""

from __future__ import annotations

from mldebug_mcp.models.runs import Runs
from mldebug_mcp.report.runs_terminal import headline

MOST_ROWS = 25
MOST_SEEN = 3


def concise_runs(answer: Runs) -> Runs:
    """Return the first rows, with the count of all in front of the notes."""
    rows = [one.model_copy(update={"seen": one.seen[:MOST_SEEN]}) for one in answer.rows[:MOST_ROWS]]
    return answer.model_copy(update={"rows": rows, "notes": [headline(answer), *answer.notes]})
