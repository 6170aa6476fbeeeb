"""Loss does not change at all."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure


@symptom(
    needs=("loss",),
    points=5,
    not_for=("grpo", "ppo", "rl"),
    background=0.002,
    follows=("loss_at_clip", "loss_negative"),
)
def loss_constant(run: Run) -> Evidence | None:
    """The training loss is the same number in every record, or from some step on to the end.

    Not this when: the loss is zero (`loss_zero`), or moves within its noise (`loss_plateau`). The share of the run
    that has to be constant, a third and five records, was chosen so that rounding to two digits near convergence does
    not count.
    """
    loss = run["loss"].finite
    last = float(loss.value[-1])
    same = np.abs(loss.value - last) <= 1e-9 * abs(last)
    tail = len(same) if same.all() else int(np.argmin(same[::-1]))
    if last == 0 or tail < 5 or tail * 3 < len(same):
        return None
    first = float(loss.step[len(same) - tail])
    return Evidence(
        f"loss is exactly {figure(last)} in all {tail} records from {run.step_name} {figure(first)} to the end",
        steps=(first,),
        values={"value": last, "records": tail, "share": tail / len(same)},
    )
