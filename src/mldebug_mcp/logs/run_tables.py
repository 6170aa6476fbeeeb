"""Tables of several runs: each row is a run, or a column names the run or the rank that each record is of.

Where each row is a run with its settings and results, a table holds no curve that can be judged.

W&B, MLflow, Optuna, Ray Tune and ClearML export such tables. They are known by what stands in their columns: a name
of its own in each row, the states of runs, settings that differ, results, and no step that counts on.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.attempts import Recorded
from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, is_known, is_telling
from mldebug_mcp.logs.names.quantities import LOSSES, THROUGHPUTS
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
    needs=("param", "config", "cfg", "args", "setting"),
)
"""How a column of a setting begins, in the tables of all trackers."""
_LETTER = regex(r"[^\W\d_]")
_CLOCK_TIME = regex(r"\s{0,4}(?:\d{4}-\d\d-\d\d|\d{1,2}[/.]\d\d[/.]\d\d|.{0,40}?\d\d:\d\d)")
_MEASURED = regex(r"\s{0,4}[-+]?\d[\d.,]{0,20} [A-Za-z%/]{1,8}\s{0,4}")
"""A number with its unit, as nvidia-smi writes it: "61000 MiB"."""

Cells = Mapping[str, list[object]]
"""The columns of the rows that are looked at, by name."""


def advice_on_runs(rows: Iterable[Mapping[str, object]]) -> str:
    """Return why rows are runs and what to give instead; "" where they may be records."""
    leaves = (dict(_leaves(row)) for row in islice(rows, ROWS_LOOKED_AT))
    first = next(leaves, {})
    if not any(isinstance(cell, str) for cell in first.values()):
        return ""  # nothing names a run: the other rows are not read
    flat = [first, *leaves]
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


# A column of a log names the run, or the rank, that each record is of → which records those of one of them are.
#
# A query over a tracker gives the records of several runs in one table. Ranks that share a file write their number into
# each record. Read as one run, the last value of each step would stand, whoever wrote it.


MAX_START = 0.05
"""Share of all steps within which a run begins. Chosen: what begins later may be a resume under another id."""
MIN_RECORDS = 2
"""Records with a loss or the like that a run needs: one that has but one is a row in a table of runs."""
MAX_RANKS = 64
"""Ranks whose values are kept. Chosen: a comparison of more shows no more."""
MAX_LABEL = 60
"""Characters of a label that are kept."""
_RUN_COLUMN = regex(
    r"(?:run|experiment|exp|seed)(?:[ _.-]?(?:id|name|no|num|number|idx|index))?|(?:trial|job)[ _.-]?(?:id|name)",
    re.IGNORECASE,
    needs=("run", "exp", "seed", "trial", "job"),
)
COMPARED = LOSSES | THROUGHPUTS | {Quantity.GRADIENT_NORM}
"""What ranks are compared by, besides durations."""
COMPARED_IN_WORDS = "losses, gradient norms, times and throughputs"
_TIME_OF_A_PART = regex(r"\w{0,40}[a-z]_(?:time|latency|duration)(?:_m?s)?", re.IGNORECASE)
"""How a time is named that no other name is known for: `compute_time`."""
_RANK_COLUMN = regex(
    r"(?:(?:global|world|process|local)[ _.-]?)?rank|process[ _.-]?(?:index|id)",
    re.IGNORECASE,
    needs=("rank", "process"),
)


class Labels(NamedTuple):
    """What names each row of a log.

    Args:
        of_row: Index of the name of each row, shape (rows,); -1 where nothing names it.
        names: The names.
    """

    of_row: Rows
    names: Sequence[str]


@lru_cache(maxsize=4096)
def names_run(column: str) -> bool:
    """Say whether a column of this name tells which run a record is of."""
    return len(column) <= MAX_LABEL and _RUN_COLUMN.fullmatch(column) is not None


class RunLabels:
    """The texts of a log that name the run of each record, column by column."""

    def __init__(self) -> None:
        self._columns: Columns = {}
        self._codes: dict[str, int] = {}

    def copy(self) -> RunLabels:
        """Return labels of their own with the same content."""
        other = RunLabels()
        other._columns = {name: column.copy() for name, column in self._columns.items()}
        other._codes = dict(self._codes)
        return other

    def take(self, name: str, row: int, labels: Iterable[str | None]) -> None:
        """Take the labels of some rows, from one on, in a column."""
        column = self._columns.setdefault(name, Column())
        for at, label in enumerate(labels, start=row):
            if label:
                column.append(at, self._codes.setdefault(shorten(label, MAX_LABEL), len(self._codes)))

    def among(self, recorded: Recorded) -> Labels:
        """Return what all columns that name runs, of texts or of numbers, say of each row together."""
        parts: dict[str, Labels] = {}
        for name, column in recorded.columns.items():
            if names_run(name):
                parts[name] = _numbered(column, recorded.rows)
        for name, column in self._columns.items():
            at, codes = column.arrays()
            before = parts.get(name, _no_labels(recorded.rows))
            own = _placed(at, codes.astype(np.int64) + len(before.names), recorded.rows)
            parts[name] = Labels(np.where(own < 0, before.of_row, own), [*before.names, *self._codes])
        return _joined_labels(list(parts.values()), recorded.rows)


def _placed(at: Rows, codes: Rows, rows: int) -> Rows:
    placed: Rows = np.full(rows, -1)
    placed[at] = codes
    return placed


def _no_labels(rows: int) -> Labels:
    return Labels(np.broadcast_to(-1, rows), ())


def _numbered(column: Column, rows: int) -> Labels:
    """Return the values of a column as names."""
    at, values = column.arrays()
    numbers, codes = np.unique(values, return_inverse=True)
    return Labels(_placed(at, codes, rows), list(map(_number, numbers.tolist())))


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def _joined_labels(parts: Sequence[Labels], rows: int) -> Labels:
    """Return the labels of several columns as one, "adam, 3" of two; those that never differ say nothing."""
    differ = [part for part in parts if len(distinct(part.of_row[part.of_row >= 0])) > 1]
    if len(differ) < 2:
        return differ[0] if differ else _no_labels(rows)
    table = np.stack([part.of_row for part in differ], axis=1)
    found, of_row = np.unique(table, axis=0, return_inverse=True)
    shown = [[part.names[code] for part, code in zip(differ, codes, strict=True) if code >= 0] for codes in found]
    named = np.array([bool(texts) for texts in shown])
    of_row = of_row.reshape(-1)
    return Labels(np.where(named[of_row], of_row, -1), list(map(", ".join, shown)))


def runs_among(recorded: Recorded, labels: Labels) -> dict[str, int]:
    """Return the runs of a log by their names, each with its records; empty where the labels are those of one run.

    At least two begin where the log begins: a run that was resumed under another id goes on behind the first.
    """
    if len(labels.names) < 2:
        return {}
    measured = _holding(recorded, is_telling) & (labels.of_row >= 0)
    sizes = Counter(labels.of_row[measured].tolist())
    runs = {code: size for code, size in sizes.items() if size >= MIN_RECORDS}
    if len(runs) < 2:
        return {}
    steps = _steps(recorded)
    if steps is not None:
        counted = measured & np.isfinite(steps)
        first, last = np.full(len(labels.names), np.inf), np.full(len(labels.names), -np.inf)
        np.minimum.at(first, labels.of_row[counted], steps[counted])
        np.maximum.at(last, labels.of_row[counted], steps[counted])
        goes_on = first < last
        if not goes_on.any() or int((first <= first.min() + MAX_START * (last.max() - first.min()))[goes_on].sum()) < 2:
            return {}
    return {labels.names[code]: runs[code] for code in sorted(runs)}


class OfRanks(NamedTuple):
    """What a log holds of several ranks.

    Args:
        kept: Which rows are those of the lowest rank or of none, shape (rows,).
        owner: The lowest rank.
        others: Of each loss, gradient norm, duration and throughput the steps and values of the other ranks, by rank.
        left_out: Records of other ranks.
    """

    kept: NDArray[np.bool_]
    owner: int
    others: Mapping[str, Mapping[int, tuple[Floats, Floats]]]
    left_out: int


def ranks_among(recorded: Recorded) -> OfRanks | None:
    """Return what each rank logged where a column tells the rank of a record; None where one rank wrote them all."""
    named = sorted((name for name in recorded.columns if _RANK_COLUMN.fullmatch(name[:MAX_LABEL])), key=_is_local)
    if not named:
        return None
    labels = _numbered(recorded.columns[named[0]], recorded.rows)
    if not all(map(str.isdecimal, labels.names)) or not runs_among(recorded, labels):
        return None
    numbers = np.array([*map(int, labels.names), -1])[labels.of_row]  # the last of them where nothing names a row
    owner = int(numbers[labels.of_row >= 0].min())
    kept = (numbers == owner) | (numbers < 0)
    steps = _steps(recorded)
    others: dict[str, dict[int, tuple[Floats, Floats]]] = {}
    for name, column in recorded.columns.items():
        if steps is None or not is_compared(name):
            continue
        at, values = column.arrays()
        for rank in distinct(numbers[~kept])[: MAX_RANKS - 1].tolist():
            own = (numbers[at] == rank) & np.isfinite(steps[at])
            if own.any():
                others.setdefault(name, {})[rank] = steps[at[own]], values[own]
    return OfRanks(kept, owner, others, int(np.count_nonzero(~kept)))


def is_compared(name: str) -> bool:
    """Say whether ranks are compared by a metric: a loss, the norm of the gradients, a duration or a throughput."""
    role = role_of(name)
    if role is None:
        return _TIME_OF_A_PART.fullmatch(name[:MAX_LABEL]) is not None
    return role.quantity in COMPARED or role.quantity.is_duration


def _is_local(name: str) -> bool:
    return name.lower().startswith("local")


def _holding(recorded: Recorded, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Return which rows hold a metric of a wanted name, shape (rows,)."""
    holding = np.zeros(recorded.rows, dtype=np.bool_)
    for name, column in recorded.columns.items():
        if wanted(name):
            column.mark(holding)
    return holding


def _steps(recorded: Recorded) -> Floats | None:
    """Return the finest counter of each row, shape (rows,), NaN for none; None where nothing counts."""
    for counter in COUNTERS:
        column = next((column for name, column in recorded.columns.items() if canonical(name) == counter), None)
        if column is not None and len(column):
            if len(column) == recorded.rows:
                return column.values()
            at, values = column.arrays()
            steps: Floats = np.full(recorded.rows, np.nan)
            steps[at] = values
            return steps
    return None
