"""NaN or Inf loss."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(needs=(), sources=("axolotl_stability",), background=0.001)
def loss_nonfinite(run: Run) -> Evidence | None:
    """The training loss is NaN or infinite.

    Not this when: a counter such as "number of nan iterations: 0" is logged, or an evaluation metric is NaN by
    definition. The Hugging Face Trainer hides NaN by default (`logging_nan_inf_filter=True` puts the mean so far in
    its place): absence of NaN in its log proves little.
    """
    loss = _loss(run)
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
        f"{loss.name} is {kind} at {run.step_name} {figure(first)}{before}; "
        f"{count} of the {after} values from there on are not finite",
        steps=(first,),
        values={"count": count, "share": count / len(bad), "stays": float(stays), "first_index": at},
    )


def _loss(run: Run) -> Series:
    """Return the training loss; the first that is not finite where it goes by several names or only parts are logged.

    A part of a loss that is finite may be NaN by design, where it does not apply.
    """
    known = [name for name in run.series if canonical(name) == "loss"]
    parts = [name for name in run.series if "loss" in name.lower() and not canonical(name).startswith("eval_")]
    losses = [run[name] for name in known or parts if name not in ("loss_scale", "loss_scaler")]
    if not losses:
        raise CannotTell("not logged: loss")
    return next((one for one in losses if not np.isfinite(one.value).all()), losses[0])
