"""Evaluation loss that never changes."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.quality import quality_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 3
SAME = 1e-6
"""Share of the loss: what rounding does to one model that is evaluated again."""
DIGITS = 5
"""Fewer digits may hide small changes. Where every other metric of evaluation stands still too, theirs count."""


@symptom(
    sources=("karpathy_recipe",),
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
    background=0.002,
    follows=("loss_constant", "loss_negative", "loss_nonfinite", "loss_zero", "loss_at_clip"),
)
def eval_loss_constant(run: Run) -> Evidence | None:
    """The evaluation loss is the same number at every evaluation, to all its digits.

    The model that is evaluated is one and the same: its weights do not change, or it is not the one that is trained.
    Not this when: it changes however little, as under a rate that is too low; it is logged with too few digits to tell;
    answers of probability 0 or 1 are scored, which stay what they are while weights change (`loss_at_clip`).
    """
    losses = [one for one in (series.finite for series in evaluation_losses(run)) if len(one) >= LEAST]
    if not losses:
        raise CannotTell(f"no evaluation loss has {LEAST} finite values")
    evaluation = losses[0]
    level, spread = float(evaluation.value[0]), float(np.ptp(evaluation.value))
    if spread > SAME * abs(level):
        return None
    if _digits(level) + sum(map(_digits, _also_constant(run))) < DIGITS:
        raise CannotTell(f"{evaluation.name} is always {figure(level)}, and so few digits may hide a change")
    first, last = float(evaluation.step[0]), float(evaluation.step[-1])
    return Evidence(
        f"{evaluation.name} is {level:.8g} at all {len(evaluation)} evaluations from {run.step_name} "
        f"{figure(first)} to {figure(last)}",
        steps=(first,),
        values={"value": level, "evaluations": float(len(evaluation))},
    )


def _digits(value: float) -> int:
    return len(f"{abs(value):.12g}".replace(".", "").lstrip("0"))


def _also_constant(run: Run) -> list[float]:
    """Return the values of the other metrics of evaluation if all of them stand still."""
    try:
        others = [one for one in (series.finite for series in quality_metrics(run)) if len(one) >= LEAST]
    except CannotTell:
        return []
    still = all(float(np.ptp(one.value)) <= SAME * abs(float(one.value[0])) for one in others)
    return [float(one.value[0]) for one in others] if still else []
