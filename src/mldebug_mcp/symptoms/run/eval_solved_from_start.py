"""Evaluation is nearly perfect before training is any good."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import beside_training
from mldebug_mcp.symptoms.quality import all_zero
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

FACTOR, ALWAYS = 5.0, 2.0
"""How many times the evaluation loss the training loss is at first, and at every later evaluation."""
SOLVED = 2.0
"""The first evaluation loss is no more than so many times the lowest: there is nothing left to learn ..."""
FALLS = 2.0
"""... while training learns by this factor more: summed losses fall in step with those of evaluation."""
LEAST = 3


@symptom(
    needs=("eval_loss", "loss"),
    sources=("kapoor_leakage",),
    points=LEAST,
    not_for=("grpo", "ppo", "rl", "preference", "diffusion"),
    background=0.003,
    follows=("loss_falls_back", "loss_scale_suspicious"),
)
def eval_solved_from_start(run: Run) -> Evidence | None:
    """The evaluation loss is near its best from the first evaluation on, far below a training loss that still falls.

    Not this when: the evaluation loss falls along with training, however far below it dropout or augmentation put it;
    the training loss is as low soon after, as in a mean over a first epoch of fast progress. The factors were chosen by
    hand: an easy task is solved in the first epoch by training and evaluation alike.
    """
    if all_zero(run["eval_loss"]):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    steps, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    if len(steps) < LEAST:
        raise CannotTell(f"{LEAST} evaluations after a training loss are needed")
    first, lowest, begun = float(evaluation[0]), float(evaluation.min()), float(train[0])
    solved = lowest >= 0 and first <= SOLVED * lowest and begun >= FACTOR * first
    if not solved or begun * lowest < FALLS * first * float(train.min()) or (train < ALWAYS * evaluation).any():
        return None
    return Evidence(
        f"eval_loss is {figure(first)} at the first of {len(steps)} evaluations, {figure(lowest)} at its lowest, while "
        f"the training loss goes from {figure(begun)} to {figure(float(train[-1]))}",
        steps=(float(steps[0]),),
        values={"first": first, "lowest": lowest, "training_first": begun},
    )
