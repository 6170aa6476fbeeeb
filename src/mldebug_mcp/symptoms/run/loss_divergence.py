"""Loss rises and does not come back."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rise import Rise, rise_for_good
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import aligned, end_level, monotone, start_level
from mldebug_mcp.symptoms.terms import term_set_in
from mldebug_mcp.text import figure

SHORT = 8
"""Records of step time and loss without which their order says nothing."""
LONGER, TOGETHER = 1.5, 0.8
"""Steps take so many times as long at the end, and come in this order with the loss (Spearman): batches that grow cost
more of both where a loss is a sum over their length. Chosen by hand."""


@symptom(
    needs=("loss",),
    sources=("bekman_mle",),
    points=5,
    not_for=("grpo", "ppo", "rl"),
    background=0.01,
    follows=("accuracy_below_chance", "loss_falls_back", "loss_pattern_by_epoch"),
    instead=("logits_grow",),
)
def loss_divergence(run: Run) -> Evidence | None:
    """The training loss rises well above its best level and is still there at the end of the log.

    Not this when: it comes back (`loss_spike`); the rise is within the noise; the loss of an RL policy rises, which
    means nothing by itself. Unknown where the steps take longer just as the loss rises, as over samples that are sorted
    by their length, or a term of it sets in. The factors were chosen on synthetic curves with normal and
    heavy-tailed noise.
    """
    loss = run["loss"].finite
    rise = rise_for_good(run)
    if rise is None:
        return None
    if _takes_longer(run, loss):
        raise CannotTell("the steps take longer just as the loss rises: their batches may be longer")
    if (term := term_set_in(run, float(loss.step[rise.at]))) is not None:
        raise CannotTell(f"{term.name} sets in at {run.step_name} {figure(term.step)}, and the loss rises with it")
    return _evidence(run, loss, rise)


def _takes_longer(run: Run, loss: Series) -> bool:
    """Say whether the time of a step rises with the loss."""
    if "step_time" not in run:
        return False
    _, time, value = aligned(run["step_time"].finite, loss)
    if len(value) < SHORT or end_level(time) < LONGER * start_level(time):
        return False
    return monotone(value[np.argsort(time, kind="stable")]) >= TOGETHER


def _evidence(run: Run, loss: Series, rise: Rise) -> Evidence:
    onset, start = float(loss.step[rise.at]), start_level(loss.value)
    lr = run["learning_rate"].at(onset) if "learning_rate" in run else None
    beside = f"; the learning rate at that {run.step_name} is {figure(lr)}" if lr is not None else ""
    return Evidence(
        f"loss rises from {figure(rise.lowest)} to {figure(rise.end)} from {run.step_name} {figure(onset)} on "
        f"and stays up to the end (it began around {figure(start)}){beside}",
        steps=(onset,),
        values={"best": rise.lowest, "end": rise.end, "start": start, "rise": rise.end - rise.lowest},
    )
