"""First loss far below that of a uniform guess."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.symptoms.beginning import is_late
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

SHARE = 0.5
"""Of ln(classes): a new classifier's first losses lie near ln(classes); half of it takes training."""
LANGUAGE = {"pretraining": 0.7, "sft": 0.1}
"""Nats per token. No language model predicts fresh text better than about 0.7; chat fine-tuning runs at 0.5 to 2."""
EARLY = 0.005


def initial_loss_low(run: Run) -> Evidence | None:
    """The first training loss lies far below what a model can have before it has seen the data.

    Not this when: the model comes trained on this task; the first record is a mean over many steps; the loss is
    not a cross-entropy; it is zero (`loss_zero`). The share and the bounds for language models were chosen by hand.
    """
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    step, first = float(loss.step[0]), float(loss.value[0])
    if run.step_name == "epoch" or is_late(run, step, EARLY, 10):
        raise CannotTell(f"the first loss is logged at {run.step_name} {figure(step)}, too late to speak of the start")
    bound, beside = _bound(run)
    if first >= bound or first <= 0:
        return None
    return Evidence(
        f"the first loss is {figure(first)} at {run.step_name} {figure(step)}; {beside}",
        steps=(step,),
        values={"first": first, "bound": bound},
    )


def _bound(run: Run) -> tuple[float, str]:
    """Return the least credible first loss, and what it is compared with."""
    if run.kind in LANGUAGE:
        bound = LANGUAGE[run.kind]
        return bound, f"before training on them, {run.kind} data give a language model more than {figure(bound)}"
    uniform = uniform_loss(run) if run.facts.classes is not None else None
    if uniform is None:
        raise CannotTell("the number of classes is not known")
    return SHARE * uniform, f"a uniform guess has {figure(uniform)} = ln({math.exp(uniform):,.0f})"
