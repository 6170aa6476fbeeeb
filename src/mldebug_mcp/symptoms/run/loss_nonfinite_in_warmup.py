"""A loss that becomes NaN or Inf while warmup still raises the learning rate."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

RISE = 1.5
"""How much higher the rate must be where the loss is lost than in the first record."""
AT_PEAK = 0.99
"""Share of its highest value at which the rate counts as being at its peak."""
AFTER = 0.1
"""If the last finite loss stands no farther behind the peak, as a share of the warmup, the loss is lost at its end."""


@symptom(
    needs=("loss", "learning_rate"),
    sources=("bekman_mle",),
    points=2,
    not_for=("grpo", "ppo", "rl"),
    background=0.1,
    as_chosen=True,
)
def loss_nonfinite_in_warmup(run: Run) -> Evidence | None:
    """The loss becomes NaN or infinite while the learning rate still climbs to its peak, or just as it is there.

    Trouble that has nothing to do with the rate comes in that part of a run no more often than its length says: a
    tenth, as warmups go, which is the background. Not this when: there is no warmup in the log. Judged only where the
    loss is lost after finite records. The shares were chosen by hand.
    """
    loss, rate = run["loss"], run["learning_rate"].finite
    bad = ~np.isfinite(loss.value)
    at = int(np.argmax(bad))
    if not at or not bad.any():
        raise CannotTell("the loss is not seen to become NaN or infinite after finite records")
    before, lost, first = float(loss.step[at - 1]), float(loss.step[at]), float(rate.step[0])
    peak = float(rate.step[int(np.argmax(rate.value >= AT_PEAK * rate.value.max()))])
    there, beginning = rate.at(lost), float(rate.value[0])
    if peak <= first or there is None or rate.value.max() < RISE * beginning:
        raise CannotTell("no warmup is logged")
    if before > peak + AFTER * (peak - first) or there < RISE * beginning:
        return None
    return Evidence(
        f"loss is not finite from {run.step_name} {figure(lost)} on, where the learning rate had climbed from "
        f"{figure(beginning)} to {figure(there)}; its peak is {figure(float(rate.value.max()))} at {run.step_name} "
        f"{figure(peak)}",
        steps=(lost,),
        values={"first_rate": beginning, "rate": there, "peak": float(rate.value.max())},
    )
