"""A loss that is NaN or Inf at the very first step, before any update."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(needs=("loss",), not_for=("grpo", "ppo", "rl"), whole_run=True, background=0.03, as_chosen=True)
def loss_nonfinite_at_first(run: Run) -> Evidence | None:
    """The loss of the first step is NaN or infinite: no update had been made, so none can have brought it about.

    What is left is the batch, the labels, the weights as loaded or initialised, and the arithmetic. Not this when: the
    first record is a mean over several steps, of which a later one may be at fault. Judged only where the loss is not
    finite and each step is logged. The background was chosen by hand.
    """
    loss = run["loss"]
    bad = ~np.isfinite(loss.value)
    if not bad.any():
        raise CannotTell("the loss is finite")
    step = loss.step
    if run.step_name != "step" or step[0] > 1 or len(step) < 2 or step[1] - step[0] > 1:
        raise CannotTell("the first step is not logged by itself")
    if not bad[0]:
        return None
    return Evidence(
        f"loss is {'NaN' if np.isnan(loss.value[0]) else 'infinite'} at {run.step_name} {figure(float(step[0]))}, "
        f"the first",
        steps=(float(step[0]),),
        values={"not_finite": float(bad.sum()), "records": float(len(loss))},
    )
