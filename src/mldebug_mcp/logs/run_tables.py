"""Is a table one of runs?

Where each row is a run with its settings and results, it holds no curve that can be judged.

W&B, MLflow, Optuna, Ray Tune and ClearML export such tables. They are known by what stands in their columns: a name
of its own in each row, the states of runs, settings that differ, results, and no step that counts on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, is_known, is_telling
from mldebug_mcp.logs.names.settings import settings_of
from mldebug_mcp.logs.numbers import to_number

LEAST_RUNS = 3
"""Rows that show what a table lists where no column is called a setting's. Chosen: in two any word names each row."""
ROWS_LOOKED_AT = 200
"""Rows that are looked at. Chosen."""
MOST_NESTED = 3
"""Objects within the object of a run that are looked into: its configuration and its results."""
_STATES = frozenset(
    {"finished", "crashed", "failed", "failure", "fail", "running", "killed", "completed", "complete", "pruned",
     "terminated", "error", "errored", "stopped", "queued", "pending", "scheduled", "aborted", "canceled",
     "cancelled", "preempted", "preempting", "published", "success", "succeeded", "waiting", "in_progress"}
)  # fmt: skip
_OF_SETTINGS = regex(
    r"(?:params?|parameters|config|cfg|args|h(?:yper)?_?param(?:eter)?s|settings?|hyperparameters)[ ./:_-]++\w",
    re.IGNORECASE,
)
"""How a column of a setting begins, in the tables of all trackers."""
_LETTER = regex(r"[^\W\d_]")
_CLOCK_TIME = regex(r"\s{0,4}(?:\d{4}-\d\d-\d\d|\d{1,2}[/.]\d\d[/.]\d\d|.{0,40}?\d\d:\d\d)")
_MEASURED = regex(r"\s{0,4}[-+]?\d[\d.,]{0,20} [A-Za-z%/]{1,8}\s{0,4}")
"""A number with its unit, as nvidia-smi writes it: "61000 MiB"."""

Cells = Mapping[str, list[object]]
"""The columns of the rows that are looked at, by name."""


def advice_on_runs(rows: Sequence[Mapping[str, object]]) -> str:
    """Return why rows are runs and what to give instead; "" where they may be records."""
    flat = [dict(_leaves(row)) for row in rows[:ROWS_LOOKED_AT]]
    if len(flat) < 2:
        return ""
    columns = {name: [row.get(name) for row in flat] for name in flat[0]}
    texts = {name: cells for name, cells in columns.items() if _is_text(cells)}
    names = next((name for name, cells in texts.items() if _names_each(cells)), "")
    states = next((name for name, cells in texts.items() if _are_states(cells)), "")
    listed = any(map(_OF_SETTINGS.match, columns))
    if not (names or states) or _counts_on(columns) or (len(flat) < LEAST_RUNS and not listed):
        return ""
    varied = next((name for name, cells in columns.items() if name != names and _is_setting(name, cells)), "")
    if not ((names and (states or varied)) or (states and varied and listed)):
        return ""
    shown = {"names each row": names, "holds states of runs": states, "is a setting that differs": varied}
    signs = ", ".join(f"{shorten(name, 40)!r} {what}" for what, name in shown.items() if name)
    return (
        f"each row is a run, not a record ({signs}): give the history of one run, or the folder that holds those of "
        "all to `mldebug-mcp runs FOLDER` (diagnose_runs)"
    )


def _leaves(row: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, Mapping) and depth < MOST_NESTED:
            yield from _leaves(value, f"{prefix}{name}/", depth + 1)
        else:
            yield f"{prefix}{name}", value


def _is_text(cells: Sequence[object]) -> bool:
    """Say whether most cells hold words: an identifier in hexadecimal digits may read as a number."""
    texts = [cell for cell in cells if isinstance(cell, str) and not _MEASURED.fullmatch(cell)]
    words = [text for text in texts if _LETTER.search(text) and not _CLOCK_TIME.match(text)]
    return len(words) == len(cells) and 2 * sum(to_number(word) is not None for word in words) <= len(words)


def _names_each(cells: Sequence[object]) -> bool:
    return len(set(map(str, cells))) == len(cells)


def _are_states(cells: Sequence[object]) -> bool:
    return all(str(cell).strip().lower().rpartition(".")[2] in _STATES for cell in cells)  # "TrialState.COMPLETE"


def _counts_on(columns: Cells) -> bool:
    """Say whether a counter never falls from row to row, and rises: the rows are records of one run."""
    for name, cells in columns.items():
        if canonical(name) in COUNTERS and not _OF_SETTINGS.match(name):
            numbers = [number for cell in cells if (number := to_number(cell)) is not None]
            if numbers and numbers == sorted(numbers) and numbers[0] < numbers[-1]:
                return True
    return False


def _is_setting(name: str, cells: Sequence[object]) -> bool:
    """Say whether a column is a setting that differs between rows; of a schedule the learning rate does, too."""
    if len(set(map(str, cells))) < 2 or is_telling(name):
        return False
    if _OF_SETTINGS.match(name) is not None:
        return not is_known(name)
    known = {match.name for match in settings_of(name) if not match.weak}
    return bool(known) and "learning_rate" not in known and canonical(name) not in COUNTERS and not is_known(name)
