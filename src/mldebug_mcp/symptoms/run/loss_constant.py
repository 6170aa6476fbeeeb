"""Loss does not change at all."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import last_decimal
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.quality import as_share
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 5
ROUNDED = 3e-4
"""Where the accuracy is the same number in every record too, a loss that moves by no more than this share of itself, a
unit of the fourth digit, does not change. Chosen by hand."""
UNITS = 1
"""Of the last decimal: what comes down to a number by so little may still move by less. Chosen by hand."""
SATURATED = 0.85
"""From here on an accuracy is near its best, as in `eval_metric_constant`."""


@symptom(
    needs=("loss",),
    points=LEAST,
    not_for=("grpo", "ppo", "rl"),
    background=0.002,
    follows=("loss_at_clip", "loss_negative"),
    instead=NO_PROGRESS,
)
def loss_constant(run: Run) -> Evidence | None:
    """The training loss is the same number in every record, or from some step on to the end.

    Not this when: the loss is zero (`loss_zero`), or moves within its noise (`loss_plateau`); it comes to rest by the
    last decimal that is printed. The share of the run
    that has to be constant, a third and five records, was chosen so that rounding to two digits near convergence does
    not count.
    """
    loss = run["loss"].finite
    last = float(loss.value[-1])
    same = np.abs(loss.value - last) <= (ROUNDED if _accuracy_stands(run) else 1e-9) * abs(last)
    tail = len(same) if same.all() else int(np.argmin(same[::-1]))
    if last == 0 or tail < LEAST or tail * 3 < len(same):
        return None
    if tail < len(same) and abs(float(loss.value[-tail - 1]) - last) < (UNITS + 0.5) * last_decimal(loss.value):
        return None  # it comes to rest, by the last decimal that is printed
    first = float(loss.step[len(same) - tail])
    return Evidence(
        f"loss is {figure(last)} in all {tail} records from {run.step_name} {figure(first)} to the end",
        steps=(first,),
        values={"value": last, "records": tail, "share": tail / len(same)},
    )


def _accuracy_stands(run: Run) -> bool:
    """Say whether the training accuracy is one and the same number throughout, and not that of a model that is done."""
    accuracy = run["accuracy"].finite.value if "accuracy" in run else np.empty(0)
    return len(accuracy) >= LEAST and float(np.ptp(accuracy)) == 0 and as_share(float(accuracy[0])) < SATURATED
