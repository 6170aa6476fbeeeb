"""A loss that is not finite now and then, while training goes on."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

LEAST_AFTER = 3
"""Finite records after the first that is not: the last of them stand no higher than those before it. Chosen by hand."""


@symptom(needs=("loss",), not_for=("grpo", "ppo", "rl"), whole_run=True, background=0.001)
def loss_nonfinite_passes(run: Run) -> Evidence | None:
    """The training loss is NaN or infinite in some records, and finite in later ones that are no worse than before.

    The weights are sound: those batches alone have such a loss, and no update is made of it, or one that does no harm.
    Not this when: it never comes back (`loss_nonfinite`), or comes back higher; or a loss of evaluation is not finite
    either. That is unknown, for the weights are spoilt then, whatever it came from.
    """
    loss = run["loss"]
    finite = np.isfinite(loss.value)
    if finite.all() or not finite.any():
        raise CannotTell("the loss is finite in every record, or in none")
    if any(not np.isfinite(run[name].value).all() for name in run.series if name.endswith("loss") and name != "loss"):
        raise CannotTell("another loss is not finite either: it is not these batches alone")
    first = int(np.argmin(finite))
    before, after = loss.value[:first][finite[:first]], loss.value[first:][finite[first:]]
    if not len(before):
        raise CannotTell("the loss is not finite from the first record on")
    if len(after) < LEAST_AFTER or median(after[-LEAST_AFTER:]) > median(before[-LEAST_AFTER:]):
        raise CannotTell("the loss does not come back: the update that was made of it took the weights with it")
    lost = int(np.count_nonzero(~finite))
    step = float(loss.step[first])
    return Evidence(
        f"loss is not finite in {lost} of {len(loss)} records, the first at {run.step_name} {figure(step)}, and comes "
        f"back: from {figure(float(before[-1]))} before it to {figure(float(after[-1]))} in the last finite record",
        steps=(step,),
        values={"lost": float(lost), "before": float(before[-1]), "last": float(after[-1])},
    )
