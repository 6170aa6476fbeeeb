"""Training loss that hardly falls while evaluation improves."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import compared
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

STAYS = 0.75
"""Share of its first level that the training loss keeps."""
BELOW, ALWAYS = 1.17, 1.12
"""The training loss is typically this many times the evaluation loss, and at each later evaluation this many."""
GAP = 0.08
"""How far apart they are, as a share of the first training loss."""
GROWN = 1.2
"""How many times farther apart than at the first evaluation: an easier set is easier from the start."""
LEAST_EVALUATIONS = 8
"""In the first epochs of a detector, or with much dropout, training stays behind: real sound runs do for five."""
MIXED = ("mixup", "mixup_alpha", "cutmix", "cutmix_alpha", "label_smoothing", "label_smoothing_factor", "smoothing")
"""Settings of training, in timm's words and others', that evaluation goes without."""


@symptom(
    needs=("loss", "eval_loss"),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
    background=0.01,
    follows=("loss_scale_suspicious", "loss_falls_back"),
)
def train_lags_eval(run: Run) -> Evidence | None:
    """The training loss stays near where it began, while the evaluation loss falls well below it.

    The evaluation rows are learnt, but the training rows cannot be fitted. Not this when: the training loss falls too
    (`eval_below_train`); labels are mixed or smoothed, as configured; the evaluation set is easier from the first
    evaluation on; the training loss is a multiple (`loss_scale_suspicious`). The numbers were chosen by hand on
    benchmarks/faults: none of its healthy runs has it.
    """
    if any(run.setting(name) for name in MIXED):
        raise CannotTell("labels are mixed or smoothed, which keeps the training loss up")
    both = compared(run, LEAST_EVALUATIONS)
    if not (both.evaluation > 0).all():
        raise CannotTell("an evaluation loss is not above zero, so there is no ratio to judge")
    start, level, reached = both.start, both.train_level, both.eval_level
    times = both.train / both.evaluation
    typical = median(times[both.later])
    apart = typical > BELOW and float(times[both.later].min()) > ALWAYS and level - reached > GAP * start
    if not apart or level < STAYS * start or typical - 1 < GROWN * (float(times[0]) - 1):
        return None
    return Evidence(
        f"loss stays at {figure(level)} of {figure(start)} at first, while eval_loss falls to {figure(reached)} "
        f"(medians of the later half of {len(times)} evaluations)",
        steps=(float(both.steps[both.later][0]),),
        values={"start": start, "train": level, "eval": reached, "factor": typical},
    )
