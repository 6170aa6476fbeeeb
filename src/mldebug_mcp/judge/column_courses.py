"""Courses that look like a fault and are none: cycles of the learning rate, and batches of few rows that scatter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from mldebug_mcp.checks.learning_rate import rate_comes_back
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.judge.column_pairs import (
    LEAST_PAIRS,
    MIN_RECORDS_FOR_LEVEL,
    NOT_BY_LOSS,
    both_losses,
    named,
    training_loss,
)
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.models.diagnosis import DerivedFact

MIN_RESTARTS = 2
"""Times that a learning rate comes back, for its cycles to be compared. Chosen: two ends of cycles are no course."""
NO_LOWER = 1.02
"""Times the end of the cycle before, within which evaluation ends. Chosen: what is learnt slowly scatters so much."""
FEW_ROWS = 8.0
"""Rows of a batch from which on one batch tells little of the next. Chosen: shares of right answers go in eighths."""
WELL = 0.25
"""Share of its first value at which an evaluation loss ends where much is learnt. Chosen: by hand."""
MOST_RISE = 1.1
"""Times the evaluation before, at most, where evaluation is steady. Chosen: by hand."""

_RESTARTS = regex(r"restart|cyclic|sgdr|triangular|(?:^|[_/.])t_0$|cycle_(?:len|steps)", re.IGNORECASE)
_SCHEDULE = regex(r"sched|(?:^|[_/.])(?:lr|learning_rate|rate)(?:$|[_/.])|polic", re.IGNORECASE)
"""What settings are called that say how the learning rate goes, and what they say where it comes back."""


def cycles_end_lower(run: Run) -> Iterator[DerivedFact]:
    """Yield that each cycle of the learning rate ends with a lower loss than the one before, in evaluation too."""
    back, loss = rate_comes_back(run), training_loss(run, MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
    if len(back) < MIN_RESTARTS or loss is None:
        return
    rate = run["learning_rate"].finite.value
    at = [*back, run.last_step] if rate[-1] < rate.max() / 2 else back
    ends, held_out = _ends(loss, at), _ends(run["eval_loss"].finite, at) if "eval_loss" in run else []
    if len(ends) <= MIN_RESTARTS or not _each_within(ends, 1.0) or not _each_within(held_out, NO_LOWER):
        return
    yield DerivedFact.model_construct(
        fact="set_cycles_end_lower" if _are_set(run) else "cycles_end_lower",
        text=(
            f"the learning rate comes back {len(back)} times, first at {run.place(back[0])}, and {named(loss)} is "
            f"{', '.join(map(figure, ends))} at the ends of its cycles. A loss that rises with the rate and ends each "
            "cycle lower follows its schedule."
        ),
        values={"restarts": float(len(back)), "first": ends[0], "last": ends[-1]},
        steps=back,
    )


def _are_set(run: Run) -> bool:
    """Say whether settings have the learning rate come back: restarts that nobody set are a fault of the schedule."""
    return any(
        _RESTARTS.search(setting.key) or (_RESTARTS.search(str(setting.value)) and _SCHEDULE.search(setting.key))
        for setting in run.settings.values()
        if setting.value
    )


def _ends(series: Series, steps: Sequence[float]) -> list[float]:
    """Return the level of the last records up to each step that has as many."""
    until = [int(at) for at in np.searchsorted(series.step, steps, side="right")]
    return [median(series.value[at - LEAST_PAIRS : at]) for at in until if at >= LEAST_PAIRS]


def _each_within(levels: Sequence[float], times: float) -> bool:
    return all(later < times * before for before, later in pairwise(levels) if before > 0)


def few_rows_learn(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation improves steadily to far below its start, though batches are of few rows."""
    rows, losses = run.facts.effective_batch, both_losses(run, MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
    if rows is None or not rows <= FEW_ROWS or losses is None:
        return
    value = losses[1].value
    if not 0 < float(value[-1]) <= WELL * float(value[0]) or not _each_within(value.tolist(), MOST_RISE):
        return
    yield DerivedFact.model_construct(
        fact="few_rows_learn",
        text=(
            f"{named(losses[1])} goes from {figure(value[0])} to {figure(value[-1])} in {len(value)} evaluations and "
            f"never rises by a tenth. So batches of {figure(rows)} rows are enough, and their scatter is that of few "
            "rows."
        ),
        values={"rows": rows, "first": float(value[0]), "last": float(value[-1])},
    )
