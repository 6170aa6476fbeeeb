"""A training loss that is NaN from the beginning, and weights that it does no harm."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 3
"""Records without a finite loss, and evaluations with one. Chosen by hand."""


@symptom(needs=("loss",), not_for=("grpo", "ppo", "rl"), whole_run=True, background=0.0005)
def loss_nan_alone(run: Run) -> Evidence | None:
    """No training loss is finite, from the first record on, while every evaluation loss is.

    Weights that a NaN had reached would spoil the evaluation too: either no update is made of such a loss, or it has no
    gradient, as the mean over no label at all has none. Not this when: the loss was finite first, which is a failure on
    the way (`loss_nonfinite`); evaluation fails too.
    """
    loss = run["loss"].value
    if bool(np.isfinite(loss).any()):
        return None
    evaluation = evaluation_losses(run)[0]
    if len(loss) < LEAST or len(evaluation) < LEAST:
        raise CannotTell(f"{len(loss)} records and {len(evaluation)} evaluations; {LEAST} of each are needed")
    if not bool(np.isfinite(evaluation.value).all()):
        return None
    first, last = float(evaluation.value[0]), float(evaluation.value[-1])
    return Evidence(
        f"loss is not finite in any of {len(loss)} records, while {evaluation.name} is {figure(first)} at first and "
        f"{figure(last)} at the end, finite in all {len(evaluation)} evaluations",
        steps=(float(run["loss"].step[0]),),
        values={"first": first, "last": last},
    )
