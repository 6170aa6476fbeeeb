"""Is a table one of runs? Or does a column name the run that each record is of?

Where each row is a run with its settings and results, it holds no curve that can be judged.

W&B, MLflow, Optuna, Ray Tune and ClearML export such tables. They are known by what stands in their columns: a name
of its own in each row, the states of runs, settings that differ, results, and no step that counts on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

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
    words = [cell for cell in cells if isinstance(cell, str) and _LETTER.search(cell) and not _CLOCK_TIME.match(cell)]
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


# Records of several runs in one file, each with the name of its run.

_RUN = regex(r"(?:run|experiment|exp|trial|job)(?:[ _-]?(?:id|name))?", re.IGNORECASE)
"""What the column is called that names the run of a record."""
MIN_RECORDS_OF_RUN = 3
"""Records of each run. Chosen: with fewer the column may name something else."""


def run_column(names: Iterable[str]) -> str:
    """Return the column that names the run of each record; "" where none does."""
    return next((name for name in names if _RUN.fullmatch(name.strip())), "")


def records_by_run(records: Iterable[tuple[object, float | None]]) -> dict[str, int]:
    """Return how many records each of several runs has; none where they are of one run, or of one that goes on.

    A record is given by its run and its step.
    """
    count: Counter[str] = Counter()
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for run, step in records:
        if run is None or run == "":
            continue
        name = str(run)
        count[name] += 1
        if step is not None:
            first.setdefault(name, step)
            last[name] = step
    if len(count) < 2 or min(count.values()) < MIN_RECORDS_OF_RUN:
        return {}
    spans = list(zip(first.values(), last.values(), strict=True))
    goes_on = len(spans) == len(count) and all(begun > end for (_, end), (begun, _) in pairwise(spans))
    return {} if goes_on else dict(count)


def lines_of_one_run(
    lines: Callable[[], Iterator[str]],
    run_of: Callable[[str], tuple[object, float | None]],
    choose: Callable[[Mapping[str, int]], str],
) -> Iterator[str] | None:
    """Return the lines of one of several runs; None where they are of one.

    Args:
        lines: Yields the lines, each time that it is called.
        run_of: Returns the run of a line and its step, None for each that it does not tell.
        choose: Returns the run to read, of several by the number of their records.
    """
    points = records_by_run(map(run_of, lines()))
    if not points:
        return None
    chosen = choose(points)
    return (line for line in lines() if str(run_of(line)[0]) == chosen)
