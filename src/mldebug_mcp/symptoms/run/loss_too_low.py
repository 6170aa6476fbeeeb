"""Is the loss of a language model lower than text allows?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.beginning import PASSES, epoch_at
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import end_level, median
from mldebug_mcp.measure.token_level import LEAST_LN_OF_CHARACTERS, LEAST_LN_OF_TEXT, from_scratch, token_level
from mldebug_mcp.measure.unknown import all_known
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

SOON, STEPS = 0.1, 1000
"""Share of ln(vocabulary), and steps within which no model comes there. Chosen: with batches of a million tokens the
best have 3 nats on prose by then, 1.5 on code."""
LOW, LOW_OF_ANSWERS, LOW_OF_TEXT = 0.1, 0.02, 0.4
"""Nats per token, of tuning on answers, and of text from scratch. Chosen: the best models have 0.5 on running text;
labels and calls of functions may come to 0.05."""
SHARE_OF_CHARACTERS = 0.04
"""Of ln(vocabulary). Chosen: the best have some 0.6 on prose and 0.3 on code, byte by byte."""


@symptom(
    needs=("loss",),
    sources=("axolotl_stability", "karpathy_recipe"),
    not_for=("grpo", "ppo", "rl", "preference", "diffusion", "supervised"),
    background=0.01,
)
def loss_too_low(run: Run) -> Evidence | None:
    """The loss of a language model over rows that are new to it is lower than text allows, or than so few steps give.

    Not this when: only rows that come again are that low; answers are a word or a label; few tokens; a scaled loss.
    """
    uniform = from_scratch(run) or 0.0
    if not predicts_tokens(run) and uniform < LEAST_LN_OF_TEXT:
        raise CannotTell("it is not known that this run trains a language model")
    return _too_soon(run) or _too_low(run, uniform)


def _too_soon(run: Run) -> Evidence | None:
    level = token_level(run, all_known(evaluation_losses, run)) if predicts_tokens(run) else None
    below = level.below(SOON) if level is not None and run.step_name == "step" else None
    if level is None or below is None or below > STEPS or level.end <= 0:
        return None
    return Evidence(
        f"{level.loss.name} is {figure(level.end)} at the end and below {figure(SOON * level.uniform)} from step "
        f"{figure(below)} on, {figure(level.share)} of the {figure(level.uniform)} of a uniform guess",
        steps=(below,),
        values={"end": level.end, "share": level.share, "uniform_guess": level.uniform},
    )


def _too_low(run: Run, uniform: float) -> Evidence | None:
    losses = _over_new_rows(run, uniform)
    if not losses:
        raise CannotTell("no evaluation loss was logged twice")
    lowest = min(losses, key=lambda series: end_level(series.value))
    end, low = end_level(lowest.value), _bound(run, uniform)
    if not 0 <= end < low or median(lowest.value) == 0:
        return None
    onset = float(lowest.step[int(np.argmax(lowest.value < low))])
    said = f"{lowest.name} is {figure(end)} nats per token at the end and below {low:g} from {run.place(onset)} on"
    return Evidence(said, steps=(onset,), values={"end": end, "bound": low})


def _bound(run: Run, uniform: float) -> float:
    """Return the nats per token that no language model of this kind comes below on rows that are new to it."""
    if run.kind == "sft":
        return LOW_OF_ANSWERS
    if uniform >= LEAST_LN_OF_TEXT:
        return LOW_OF_TEXT
    return max(LOW, SHARE_OF_CHARACTERS * uniform) if uniform >= LEAST_LN_OF_CHARACTERS else LOW


def _over_new_rows(run: Run, uniform: float) -> list[Series]:
    """Return the evaluation losses or, where a run of pretraining has none, its training loss in the first pass."""
    pretrains = run.kind == "pretraining" or (run.kind == "unknown" and uniform >= LEAST_LN_OF_TEXT)
    if any(name.startswith("eval_") for name in run.series) or not pretrains:
        return [one for one in (series.finite for series in all_known(evaluation_losses, run)) if len(one) > 1]
    loss = run["loss"].finite
    return [loss] if (epoch_at(run, run.last_step) or 0.0) <= PASSES and len(loss) > 1 else []
