"""NaN or Inf loss."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.names import canonical, is_training_loss
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(needs=(), sources=("axolotl_stability",), background=0.001, instead=("logits_grow",))
def loss_nonfinite(run: Run) -> Evidence | None:
    """The training loss is NaN or infinite.

    Not this when: a counter such as "number of nan iterations: 0" is logged, or an evaluation metric is NaN by
    definition. The Hugging Face Trainer hides NaN by default (`logging_nan_inf_filter=True` puts the mean so far in
    its place): absence of NaN in its log proves little. Where no total is logged, as of a GAN, its parts are judged.
    """
    bad_ones = [one for one in _training_losses(run) if not np.isfinite(one.value).all()]
    if not bad_ones:
        return None
    loss = min(bad_ones, key=lambda one: float(one.step[int(np.argmin(np.isfinite(one.value)))]))
    bad = ~np.isfinite(loss.value)
    count = int(bad.sum())
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


def _training_losses(run: Run) -> list[Series]:
    """Return the total loss by its names, else its parts, else all of a log in which nothing is ever finite.

    Raises CannotTell if there is nothing of the kind.
    """
    totals = [one for name, one in run.series.items() if canonical(name) == "loss"]
    if totals:
        return totals
    parts = [one for name, one in run.series.items() if is_training_loss(name)]
    if parts:
        return parts
    measured = [one for one in run.series.values() if not np.array_equal(one.value, np.round(one.value))]
    if len(measured) < 2 or any(np.isfinite(one.value).any() for one in measured):
        raise CannotTell("not logged: loss")
    return measured
