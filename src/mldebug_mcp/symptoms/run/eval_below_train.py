"""Evaluation far better than training."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import beside_training
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import predicts_tokens
from mldebug_mcp.symptoms.statistics import start_level
from mldebug_mcp.text import figure

FAR_BELOW = 0.65
"""Dropout, augmentation and the lag of a running mean put the training loss above the evaluation loss.

They hardly do so by this factor.
"""
FAR_BELOW_OF_TOKENS, GAP_OF_TOKENS = 0.85, 0.5
"""The losses of language models are in nats on one scale and trained with little dropout: half a nat is a wide gap."""
LEAST_GAP = 0.05
"""Nats: below this both are small."""
SHARE_OF_START = 0.08
"""... and below this share of what the loss was at first: of a loss that has nearly gone, half is nothing."""


@symptom(
    needs=("eval_loss", "loss"),
    sources=("kapoor_leakage",),
    points=2,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.02,
    follows=("loss_falls_back", "loss_scale_suspicious", "train_lags_eval"),
)
def eval_below_train(run: Run) -> Evidence | None:
    """The evaluation loss lies far below the training loss, time after time.

    Not this when: dropout or augmentation explains a modest gap; the training loss is a mean over an epoch of fast
    progress; the training loss is summed over micro-batches (`loss_scale_suspicious`). The factors were chosen by hand.
    """
    steps, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    late = slice(len(steps) // 2, None)
    if len(steps[late]) < 1:
        raise CannotTell("no training loss was logged before an evaluation")
    ratio = evaluation[late] / train[late]
    gap = float(np.median(train[late] - evaluation[late]))
    factor = float(np.median(ratio))
    wide_for_tokens = predicts_tokens(run) and gap >= GAP_OF_TOKENS
    limit = FAR_BELOW_OF_TOKENS if wide_for_tokens else FAR_BELOW
    least = max(LEAST_GAP, SHARE_OF_START * start_level(run["loss"].finite.value))
    if not 0 <= factor < limit or gap < least or (ratio < 1).mean() < 0.9:
        return None
    return Evidence(
        f"eval_loss is {figure(float(np.median(evaluation[late])))} where the training loss is "
        f"{figure(float(np.median(train[late])))} (median over the later half of {len(steps)} evaluations)",
        steps=(float(steps[late][0]),),
        values={"factor": factor, "gap": gap},
    )
