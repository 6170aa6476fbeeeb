"""Evaluation far better than training."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import LANGUAGE_MODELS
from mldebug_mcp.symptoms.statistics import aligned, start_level
from mldebug_mcp.text import figure

FAR_BELOW = 0.65
"""Dropout, augmentation and the lag of a running mean put the training loss above the evaluation loss.

They hardly do so by this factor.
"""
FAR_BELOW_OF_TOKENS, GAP_OF_TOKENS = 0.85, 0.5
"""The losses of language models are in nats on one scale and trained with little dropout: half a nat is a wide gap."""
SHARE_OF_START = 0.08
"""... and of what the loss was at first: of a loss that has nearly gone, half is nothing."""
LEAST_GAP = 0.05
"""Nats: below this both are small."""


@symptom(
    needs=("eval_loss", "loss"),
    sources=("kapoor_leakage",),
    points=2,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.02,
)
def eval_below_train(run: Run) -> Evidence | None:
    """The evaluation loss lies far below the training loss, time after time.

    Not this when: dropout or augmentation explains a modest gap; the training loss is a mean over an epoch of fast
    progress; the training loss is summed over micro-batches (`loss_scale_suspicious`). The factors were chosen by hand.
    """
    steps, train, evaluation = aligned(run["loss"].finite, run["eval_loss"].finite)
    late = slice(len(steps) // 2, None)
    if len(steps[late]) < 1:
        raise CannotTell("no training loss was logged before an evaluation")
    ratio = evaluation[late] / train[late]
    gap = float(np.median(train[late] - evaluation[late]))
    factor = float(np.median(ratio))
    limit, wide = (FAR_BELOW_OF_TOKENS, GAP_OF_TOKENS) if _predicts_tokens(run) else (FAR_BELOW, LEAST_GAP)
    far = factor < limit and gap >= wide
    start = start_level(run["loss"].finite.value)
    least = max(LEAST_GAP, SHARE_OF_START * start)
    if not (0 <= factor < FAR_BELOW or far) or gap < least or (ratio < 1).mean() < 0.9:
        return None
    return Evidence(
        f"eval_loss is {figure(float(np.median(evaluation[late])))} where the training loss is "
        f"{figure(float(np.median(train[late])))} (median over the later half of {len(steps)} evaluations)",
        steps=(float(steps[late][0]),),
        values={"factor": factor, "gap": gap},
    )


def _predicts_tokens(run: Run) -> bool:
    return run.kind in LANGUAGE_MODELS or (run.kind == "unknown" and run.setting("vocab_size") is not None)
