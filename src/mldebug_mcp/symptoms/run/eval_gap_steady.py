"""A language model's evaluation loss lies above the training loss by the same amount all the way."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.beginning import PASSES, epoch_at
from mldebug_mcp.symptoms.evaluation import compared
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import predicts_tokens
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.symptoms.tokens import uniform_of_tokens
from mldebug_mcp.text import figure

GAP = 0.5
"""Nats per token at every evaluation. Held-out rows of the same data differ by hundredths from rows of a first pass."""
STEADY = 0.35
"""Of the median gap: how far the gaps of both halves may lie apart. What is learnt by heart widens it. By hand."""
LEAST_EVALUATIONS = 4


@symptom(
    needs=("loss", "eval_loss"),
    sources=("slavv_37",),
    not_for=("grpo", "ppo", "rl", "preference", "supervised", "diffusion", "boosting"),
    whole_run=True,
    background=0.006,
    as_chosen=True,
    follows=("eval_bad_from_start", "eval_gap_wide", "loss_divergence", "loss_nonfinite"),
)
def eval_gap_steady(run: Run) -> Evidence | None:
    """A language model's evaluation loss is half a nat or more above its training loss, at every evaluation alike.

    Not this when: the gap begins small and widens (`eval_gap_grows`); the training loss is the smaller part, as of rows
    that are learnt by heart (`eval_gap_wide`); evaluation is on another kind of text on purpose, which looks the same.
    The bounds were chosen by hand.
    """
    if not predicts_tokens(run):
        uniform_of_tokens(run)  # raises where the first loss does not show it either
    both = compared(run, LEAST_EVALUATIONS)
    epoch = epoch_at(run, float(both.steps[0]))
    if epoch is not None and epoch > PASSES:
        raise CannotTell(f"the first evaluation stands at epoch {figure(epoch)}: by then rows may be memorised")
    gap = both.evaluation - both.train
    if not np.isfinite(gap).all():
        raise CannotTell("a loss is not finite")
    middle = len(gap) // 2
    early, late = median(gap[:middle]), median(gap[middle:])
    if float(gap.min()) < GAP or abs(late - early) > STEADY * median(gap) or both.train_level < late:
        return None
    first = float(both.steps[0])
    return Evidence(
        f"the evaluation loss is {figure(float(gap.min()))} to {figure(float(gap.max()))} nats above the training loss "
        f"at all {len(gap)} evaluations, from {run.step_name} {figure(first)} on",
        steps=(first,),
        values={"least": float(gap.min()), "most": float(gap.max()), "evaluations": len(gap)},
    )
