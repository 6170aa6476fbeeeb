"""Accuracy of evaluation below that of a guess."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import ACCURACIES, as_share
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import uniform_loss
from mldebug_mcp.symptoms.statistics import end_level, median, start_level
from mldebug_mcp.text import figure

SHARE_OF_CHANCE = 0.6
"""Of 1 / classes: below it the model is wrong more often than a random guess. Chosen by hand."""
LEARNT = 0.7
"""Of its first level: the training loss must have fallen to this share, so that something was learnt."""
LEAST_EVALUATIONS = 4


@symptom(
    needs=("loss",),
    sources=("slavv_37",),
    points=10,
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
    background=0.004,
    follows=("loss_constant", "loss_nonfinite", "loss_zero"),
)
def eval_below_chance(run: Run) -> Evidence | None:
    """Evaluation is right far less often than a uniform guess would be, though the training loss has fallen.

    The model is evaluated on other inputs, or against other labels, than it was trained on. Not this when: nothing is
    learnt, and the accuracy is about that of a guess (`loss_at_chance`). Needs the number of classes.
    """
    uniform = uniform_loss(run)
    if uniform is None:
        raise CannotTell("the number of classes is not known")
    name = next((one for one in ACCURACIES if one in run), None)
    accuracy = run[name].finite if name is not None else None
    if accuracy is None or len(accuracy) < LEAST_EVALUATIONS:
        raise CannotTell(f"no accuracy of evaluation has {LEAST_EVALUATIONS} values")
    loss = run["loss"].finite.value
    later = slice(len(accuracy) // 2, None)
    reached, chance = as_share(median(accuracy.value[later])), math.exp(-uniform)
    if reached >= SHARE_OF_CHANCE * chance or end_level(loss) > LEARNT * start_level(loss):
        return None
    return Evidence(
        f"{accuracy.name} is {figure(reached)} in the later half of {len(accuracy)} evaluations; a guess among "
        f"{math.exp(uniform):.0f} is right in {figure(chance)}, and the training loss went from "
        f"{figure(start_level(loss))} to {figure(end_level(loss))}",
        steps=(float(accuracy.step[later][0]),),
        values={"accuracy": reached, "chance": chance},
    )
