"""Evaluation far worse than training, although the training loss is still well above zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.beginning import PASSES, epoch_at
from mldebug_mcp.symptoms.evaluation import begins_late, compared, refuse_another_scale
from mldebug_mcp.symptoms.quality import as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

FACTOR = 1.4
SHARE_OF_START = 0.1
"""The evaluation loss is this many times the training loss, and both the gap and the training loss are at least this
share of the first loss. No healthy run of benchmarks/faults comes near. Chosen by hand."""
IMPROVED, STILL_LOW, FACTOR_OF_IMPROVED = 0.85, 1.05, 1.9
"""... or this many times where evaluation has come below the first share of the first loss, and is within the second of
its lowest: what is learnt serves held-out rows too, and training rows are known better, as in most sound runs on tables
and with boosted trees. Chosen on small runs of Keras and XGBoost."""
MUCH_IMPROVED, FACTOR_OF_MUCH_IMPROVED = 0.35, 3.0
"""... or this many times where it has come below this share: so classifiers of pictures end. Chosen by hand."""
GAINED, AT_BEST, GOOD = 0.02, 0.005, 0.85
"""... or where the accuracy of evaluation is so much above the first one, so near to its best, and good. By hand."""
LEAST_EVALUATIONS = 4


@symptom(
    needs=("loss", "eval_loss"),
    sources=("slavv_37",),
    not_for=("grpo", "ppo", "rl", "preference", "boosting"),  # trees always know their own rows better
    whole_run=True,
    background=0.01,
    follows=(
        "eval_above_start",
        "loss_divergence",
        "loss_nonfinite",
        "loss_scale_suspicious",
        "loss_never_below_first",
        "eval_learns_nothing",
    ),
    instead=("eval_gap_steady", "eval_bad_from_start"),
)
def eval_gap_wide(run: Run) -> Evidence | None:
    """The evaluation loss lies far above a training loss that is not near zero, throughout the later half.

    The training rows are not memorised, and held-out ones are far worse nevertheless. Not this when: the training
    loss is near zero, as when a small set is memorised (`eval_gap_grows`, `loss_zero`); both losses fall by the same
    factor all the way, as sums over different numbers of rows do; evaluation has improved, stays at its best, and is
    less than 1.9 times the training loss, or three times if it has improved much.
    """
    both = compared(run, LEAST_EVALUATIONS)
    refuse_another_scale(both.train, both.evaluation)
    begin = epoch_at(run, float(run["loss"].finite.step[0]))
    if begin is not None and begin > PASSES:
        raise CannotTell(f"the log begins at epoch {figure(begin)}: what training began with is not known")
    if begin is None and begins_late(run["loss"]) and begins_late(run["eval_loss"]):
        raise CannotTell(
            f"the log begins at {run.step_name} {figure(run.first_step)}: what training began with is not known"
        )
    start, level, reached = both.start, both.train_level, both.eval_level
    if start > 0 and not (both.evaluation[both.later] > 0).all():
        raise CannotTell("an evaluation loss is not above zero, so there is no ratio to judge")
    improved = start > 0 and level > 0 and both.evaluation[-2:].mean() <= STILL_LOW * both.evaluation.min()
    much = reached < MUCH_IMPROVED * start or _accuracy_grows(run)
    factor = FACTOR_OF_MUCH_IMPROVED if much else FACTOR_OF_IMPROVED
    if improved and reached < min(IMPROVED * start, factor * level):
        return None
    far = (both.evaluation > FACTOR * both.train) & (both.evaluation - both.train > SHARE_OF_START * start)
    if start <= 0 or level < SHARE_OF_START * start or not far[both.later].all():
        return None
    first = float(both.steps[len(far) - int(np.argmin(far[::-1])) if not far.all() else 0])
    return Evidence(
        f"from {run.step_name} {figure(first)} on the evaluation loss is far above the training loss: "
        f"{figure(reached)} and {figure(level)} in the later half of {len(far)} evaluations; training began at "
        f"{figure(start)}",
        steps=(first,),
        values={"eval": reached, "train": level, "start": start, "factor": reached / level},
    )


def _accuracy_grows(run: Run) -> bool:
    """Say whether the accuracy of evaluation has grown and is at its best at the end."""
    accuracy = run["eval_accuracy"].finite.value if "eval_accuracy" in run else np.empty(0)
    if not len(accuracy):
        return False
    shares = as_shares(accuracy)
    first, best, last = float(shares[0]), float(shares.max()), float(shares[-1])
    return last >= max(best - AT_BEST, first + GAINED, GOOD)
