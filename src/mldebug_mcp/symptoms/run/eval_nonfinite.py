"""NaN or Inf evaluation loss."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure


@symptom(needs=(), sources=("axolotl_stability",), background=0.003, follows=("loss_nonfinite", "loss_drops_to_zero"))
def eval_nonfinite(run: Run) -> Evidence | None:
    """The evaluation loss is NaN or infinite.

    Not this when: a metric is NaN by definition, such as the average precision of a class without samples.
    """
    bad = [(one, ~np.isfinite(one.value)) for one in evaluation_losses(run)]
    bad = [(one, flags) for one, flags in bad if flags.any()]
    if not bad:
        return None
    series, flags = min(bad, key=lambda pair: float(pair[0].step[int(np.argmax(pair[1]))]))
    at = int(np.argmax(flags))
    first = float(series.step[at])
    kind = "NaN" if np.isnan(series.value[at]) else "infinite"
    more = f"; {len(bad)} evaluation losses are not finite at some time" if len(bad) > 1 else ""
    train = run["loss"].at(first) if "loss" in run else None
    beside = f"; the training loss there is {figure(train)}" if train is not None else ""
    return Evidence(
        f"{series.name} is {kind} at {run.step_name} {figure(first)} and not finite in {int(flags.sum())} of "
        f"{len(flags)} evaluations{more}{beside}",
        steps=(first,),
        values={"count": int(flags.sum()), "share": float(flags.mean())},
    )
