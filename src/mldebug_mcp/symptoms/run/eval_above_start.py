"""Evaluation worse than where training began."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.eval_gap_wide import eval_gap_wide
from mldebug_mcp.text import figure

ABOVE = 1.25
"""Times the loss at the beginning. Chosen by hand."""


@symptom(
    needs=("loss", "eval_loss"),
    sources=("slavv_37",),
    # A fine-tuned model knows something already, and may forget it; the first tree has fitted the training rows.
    not_for=("grpo", "ppo", "rl", "preference", "sft", "boosting"),
    whole_run=True,
    background=0.005,
    follows=(
        "loss_divergence",
        "loss_nonfinite",
        "loss_scale_suspicious",
        "loss_never_below_first",
        "eval_learns_nothing",
    ),
    instead=("eval_gap_steady", "eval_bad_from_start"),
)
def eval_above_start(run: Run) -> Evidence | None:
    """The evaluation loss lies far above the training loss, and above what the training loss was at first.

    Training makes held-out rows worse than no training at all, although the training rows are not memorised.
    Not this when: the training loss is near zero; the evaluation loss stays below where training began
    (`eval_gap_wide`).
    """
    wide = eval_gap_wide(run)
    if wide is None or wide.values["eval"] < ABOVE * wide.values["start"]:
        return None
    return Evidence(
        f"the evaluation loss is {figure(wide.values['eval'])} in the later half, where training began at "
        f"{figure(wide.values['start'])} and has come to {figure(wide.values['train'])}",
        steps=wide.steps,
        values=wide.values,
    )
