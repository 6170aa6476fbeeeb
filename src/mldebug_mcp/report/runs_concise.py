"""The short form of many runs: those that need attention, and how many there are of the rest."""

from __future__ import annotations

from mldebug_mcp.diagnose.swept import LEVEL
from mldebug_mcp.models.runs import Runs, Sweep
from mldebug_mcp.report.runs_terminal import headline

MOST_ROWS = 25
MOST_SEEN = 3
MOST_SETTINGS = 6
"""Settings that are shown of a sweep, and of those that the sick ones share: the clearest."""


def concise_runs(answer: Runs) -> Runs:
    """Return the first rows, with the count of all in front of the notes, and the settings that matter."""
    rows = [one.model_copy(update={"seen": one.seen[:MOST_SEEN], "settings": {}}) for one in answer.rows[:MOST_ROWS]]
    return answer.model_copy(
        update={
            "rows": rows,
            "shared": answer.shared[:MOST_SETTINGS],
            "sweep": None if answer.sweep is None else _concise_sweep(answer.sweep),
            "notes": [headline(answer), *answer.notes],
        }
    )


def _concise_sweep(sweep: Sweep) -> Sweep:
    clear = [one for one in sweep.settings if one.p <= LEVEL]
    return sweep.model_copy(update={"settings": clear[:MOST_SETTINGS]})
