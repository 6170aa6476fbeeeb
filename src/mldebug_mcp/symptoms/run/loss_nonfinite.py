"""NaN or Inf loss."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure


@symptom(needs=("loss",), sources=("axolotl_stability",), background=0.001)
def loss_nonfinite(run: Run) -> Evidence | None:
    """The training loss is NaN or infinite.

    Not this when: a counter such as "number of nan iterations: 0" is logged, or an evaluation metric is NaN by
    definition. The Hugging Face Trainer hides NaN by default (`logging_nan_inf_filter=True` puts the mean so far in
    its place): absence of NaN in its log proves little.
    """
    loss = run["loss"]
    bad = ~np.isfinite(loss.value)
    count = int(bad.sum())
    if not count:
        return None
    at = int(np.argmax(bad))
    first = float(loss.step[at])
    kind = "NaN" if np.isnan(loss.value[at]) else "infinite"
    after = len(bad) - at
    before = (
        f"; the last finite value before it is {figure(float(loss.value[at - 1]))}"
        if at
        else ", from the first record on"
    )
    stays = count == after
    return Evidence(
        f"loss is {kind} at {run.step_name} {figure(first)}{before}; "
        f"{count} of the {after} values from there on are not finite",
        steps=(first,),
        values={"count": count, "share": count / len(bad), "stays": float(stays), "first_index": at},
    )
