"""What a Trainer logs beside its losses, against the plan by which its rows are drawn again."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.rows.plan import Plan
from mldebug_mcp.text import counted, figure

SURE = 0.4
"""Rows by which an estimate may be off that is rounded to whole rows. Chosen: below one half."""
EPOCH_SLACK = 1e-6
"""By how much an epoch that was logged with all its digits may differ from the plan's. Chosen: rounding is less."""
MOST_CHECKED = 2000


class Pace(NamedTuple):
    """Rows of the data as a summary tells them, and by how many that may be off."""

    rows: float
    slack: float

    @property
    def is_sure(self) -> bool:
        """Whether it is one whole number of rows: the summary of a resumed run counts a part of them."""
        return self.slack < SURE and abs(self.rows - round(self.rows)) <= self.slack + EPOCH_SLACK


def rows_by_pace(run: Run, passes: object) -> Pace | None:
    """Return the rows of the data as the Trainer's summary tells: its samples are rows times passes.

    It rounds samples per second to 3 digits behind the point and the runtime to 4 (`speed_metrics` of Transformers).
    """
    told = [run.series.get(f"summary/train_{one}") for one in ("samples_per_second", "runtime")]
    pace, seconds = [None if one is None or not len(one) else float(one.value[-1]) for one in told]
    if not isinstance(passes, int | float) or passes <= 0 or not pace or not seconds:
        return None
    return Pace(pace * seconds / passes, (0.0005 * seconds + 0.00005 * pace) / passes)


def checked(plan: Plan, run: Run | None, passes: object) -> list[str]:
    """Return what of the log agrees with a plan; raises InputError where something does not."""
    if run is None:
        return []
    pace = rows_by_pace(run, passes)
    if pace is not None and abs(plan.rows - pace.rows) > pace.slack + SURE and _as_many_batches(plan, pace.rows):
        raise InputError(
            f"the log does not agree: by its samples per second and its runtime the data have "
            f"{round(pace.rows):,} rows, not {plan.rows:,}; say rows, or name the data as the Trainer saw them"
        )
    epochs = run.series.get("epoch") if run.step_name == "step" else None
    if epochs is None:
        return []
    steps, logged = _by_step(epochs)
    for step, epoch in zip(steps, logged, strict=True):
        expected = plan.passed_at(step)
        if abs(expected - epoch) > _slack(epoch):
            raise InputError(
                f"the log does not agree: at step {step} it has epoch {epoch:.6g}, and by these settings "
                f"({counted(plan.rows, 'row')}, batches of {plan.batch_size}, accumulation {plan.accumulation}, world "
                f"{plan.world}) it would be {figure(expected)}; check rows and world, and say resumed_at if it was "
                "resumed with ignore_data_skip"
            )
    return [f"the epochs that the log has at {counted(len(steps), 'step')} agree"]


def _as_many_batches(plan: Plan, rows: float) -> bool:
    """Return whether so many rows make as many batches, which the part of a resumed run does not."""
    return round(rows) > 0 and replace(plan, rows=round(rows)).batches == plan.batches


def _by_step(epochs: Series) -> tuple[list[int], list[float]]:
    """Return the whole steps from 1 up with the epochs logged there, the last of each."""
    found = {int(step): float(value) for step, value in zip(epochs.step, epochs.value, strict=True) if step >= 1}
    chosen = list(found)[:: -(-len(found) // MOST_CHECKED) or 1]
    return chosen, [found[step] for step in chosen]


def _slack(epoch: float) -> float:
    """Return how far a logged epoch may be off: half of its last digit."""
    digits = len(f"{epoch:.10g}".partition(".")[2])
    return max(EPOCH_SLACK, 0.500001 * 10.0**-digits)
