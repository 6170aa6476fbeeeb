"""A language model's loss below what text allows."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import predicts_tokens
from mldebug_mcp.symptoms.statistics import end_level, median
from mldebug_mcp.text import figure

LOW = 0.1
"""Nats per token on data that is not trained on; the best language models have 0.5 and more on running text."""


@symptom(
    needs=("loss",),
    sources=("axolotl_stability", "karpathy_recipe"),
    not_for=("grpo", "ppo", "rl", "preference", "supervised", "diffusion"),
    background=0.01,
)
def loss_too_low(run: Run) -> Evidence | None:
    """The evaluation loss of a language model ends below a tenth of a nat per token.

    Not this when: only the training loss is that low, by memorising (`eval_gap_grows`); answers are a word or a label,
    or written by a template; the loss is scaled. The bound was chosen by hand.
    """
    if not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    losses = [series.finite for series in evaluation_losses(run)]
    losses = [series for series in losses if len(series) >= 2]
    if not losses:
        raise CannotTell("no evaluation loss was logged twice")
    lowest = min(losses, key=lambda series: end_level(series.value))
    end = end_level(lowest.value)
    if not 0 <= end < LOW or median(lowest.value) == 0:
        return None
    onset = float(lowest.step[int(np.argmax(lowest.value < LOW))])
    return Evidence(
        f"{lowest.name} is {figure(end)} nats per token at the end and below {LOW:g} from {run.step_name} "
        f"{figure(onset)} on",
        steps=(onset,),
        values={"end": end, "bound": LOW},
    )
