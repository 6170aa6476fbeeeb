"""Evaluation loss rises while training loss falls."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import aligned, noise
from mldebug_mcp.text import figure

LEAST_RISE = 0.01
"""A lasting rise of 1 % is a rise: evaluation on a fixed set is nearly free of sampling noise from time to time."""


@symptom(
    needs=("eval_loss",),
    sources=("axolotl_stability", "goodfellow_ch11"),
    points=3,
    not_for=("grpo", "ppo", "rl"),
    background=0.05,
)
def eval_gap_grows(run: Run) -> Evidence | None:
    """The evaluation loss rises from its minimum while the training loss goes on falling.

    Not this when: both rise (`loss_divergence`); the rise is one noisy evaluation. The least rise, 1 %, was chosen by
    hand.
    """
    evaluation = run["eval_loss"].finite
    best = int(np.argmin(evaluation.value))
    lowest, last = float(evaluation.value[best]), float(np.median(evaluation.value[-2:]))
    after = evaluation.value[best + 1 :]
    rise = last - lowest
    if rise < max(LEAST_RISE * abs(lowest), 2 * noise(evaluation.value)) or len(after) < 2:
        return None
    train = ""
    if "loss" in run:
        _, before, _ = aligned(run["loss"].finite, evaluation)
        if len(before) >= len(after) + 1:
            at_best, at_end = float(before[-len(after) - 1]), float(before[-1])
            if at_end > at_best + 0.5 * rise:
                return None
            train = f", while the training loss goes from {figure(at_best)} to {figure(at_end)}"
    elif best == 0:
        raise CannotTell("the training loss is not logged beside an evaluation loss that only rises")
    onset = float(evaluation.step[best])
    return Evidence(
        f"eval_loss rises from its minimum {figure(lowest)} at {run.step_name} {figure(onset)} to {figure(last)}"
        f"{train}",
        steps=(onset,),
        values={
            "minimum": lowest,
            "last": last,
            "relative_rise": rise / abs(lowest) if lowest else float("nan"),
        },
    )
