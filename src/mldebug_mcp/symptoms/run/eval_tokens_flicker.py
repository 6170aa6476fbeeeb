"""A language model's evaluation loss jumps up and down."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.eval_metric_flickers import flicker
from mldebug_mcp.symptoms.scale import predicts_tokens
from mldebug_mcp.text import figure

LEAST = 8
SHARE = 0.08
"""Typical change from one evaluation to the next, of the level: means over thousands of tokens of a random subset move
by 1 or 2 %. Chosen by hand."""
RANDOM = 0.5


@symptom(
    needs=("eval_loss",),
    not_for=("grpo", "ppo", "rl", "preference", "supervised", "diffusion", "boosting"),
    background=0.003,
    as_chosen=True,  # few of the healthy runs that were counted train language models
    follows=(
        "eval_gap_at_zero",
        "eval_gap_grows",
        "eval_gap_wide",
        "eval_metric_swings",
        "loss_divergence",
        "loss_nonfinite",
    ),
)
def eval_tokens_flicker(run: Run) -> Evidence | None:
    """The evaluation loss of a language model changes by 8 % and more from one evaluation to the next, at random.

    In evaluation mode, on a fixed set, the loss per token has hardly any noise. Not this when: it has a trend; training
    itself jumps (`loss_divergence`); training rows are known by heart, and held-out ones are met by chance. The shares
    were chosen by hand.
    """
    if not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    evaluation = run["eval_loss"].finite
    if len(evaluation) < LEAST:
        raise CannotTell(f"{len(evaluation)} finite evaluation losses; {LEAST} are needed")
    typical, chance = flicker(evaluation)
    if typical < SHARE or chance < RANDOM:
        return None
    return Evidence(
        f"eval_loss changes by {typical:.0%} of its level from one evaluation to the next (median of "
        f"{len(evaluation) - 1}), between {figure(float(evaluation.value.min()))} and "
        f"{figure(float(evaluation.value.max()))}",
        steps=(float(evaluation.step[0]),),
        values={"typical_change": typical, "randomness": chance},
    )
