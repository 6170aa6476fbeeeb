"""Evaluation far better than training."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import beside_training, refuse_sums_of_epochs
from mldebug_mcp.symptoms.quality import all_zero
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import predicts_tokens
from mldebug_mcp.symptoms.statistics import median, start_level
from mldebug_mcp.text import figure

FAR_BELOW, FROM_THE_START, GROWN = 0.65, 0.35, 0.7
"""The evaluation loss lies far below the training loss if its share of that is under the first number, and under the
third times its share at the first evaluation; or under the second number in any case.

Dropout, augmentation, the lag of a running mean and an easier set put the training loss above the evaluation loss from
the start; memorised rows, or labels that cannot be learnt, do so as training goes on.
"""
FAR_BELOW_OF_TOKENS, GAP_OF_TOKENS = 0.85, 0.5
"""The losses of language models are in nats on one scale and trained with little dropout: half a nat is a wide gap."""
LEAST_GAP = 0.05
"""Nats: below this both are small."""
SHARE_OF_START = 0.08
"""... and below this share of what the loss was at first: of a loss near zero, half is nothing."""


@symptom(
    needs=("eval_loss", "loss"),
    sources=("kapoor_leakage",),
    points=2,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.05,  # regularisation and a curriculum do it too
    as_chosen=True,
    follows=(
        "eval_solved_from_start",
        "loss_falls_back",
        "loss_scale_suspicious",
        "train_far_above_eval",
        "train_lags_eval",
    ),
)
def eval_below_train(run: Run) -> Evidence | None:
    """The evaluation loss falls far below the training loss, and stays there.

    Not this when: dropout, augmentation or an easier set put it there from the first evaluation on; the training loss
    is a mean over an epoch of fast progress; it is summed over micro-batches (`loss_scale_suspicious`), or perhaps over
    the batches of an epoch. The factors were chosen by hand.
    """
    if all_zero(run["eval_loss"]):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    refuse_sums_of_epochs(run)
    steps, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    late = slice(len(steps) // 2, None)
    if len(steps[late]) < 1:
        raise CannotTell("no training loss was logged before an evaluation")
    ratio = evaluation[late] / train[late]
    gap = median(train[late] - evaluation[late])
    factor = median(ratio)
    first = float(evaluation[0] / train[0]) if train[0] > 0 else 0.0
    limit = max(min(FAR_BELOW, GROWN * first), FROM_THE_START)
    if predicts_tokens(run) and gap >= GAP_OF_TOKENS:
        limit = FAR_BELOW_OF_TOKENS
    least = max(LEAST_GAP, SHARE_OF_START * start_level(run["loss"].finite.value))
    if not 0 <= factor < limit or gap < least or (ratio < 1).mean() < 0.9:
        return None
    return Evidence(
        f"eval_loss is {figure(median(evaluation[late]))} where the training loss is "
        f"{figure(median(train[late]))} (median over the later half of {len(steps)} evaluations)",
        steps=(float(steps[late][0]),),
        values={"factor": factor, "gap": gap},
    )
