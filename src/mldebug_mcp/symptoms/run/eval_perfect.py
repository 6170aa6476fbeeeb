"""Evaluation loss of next to nothing."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import end_level, start_level
from mldebug_mcp.text import figure

SHARE_OF_START = 0.007
"""Of the training loss at first. Of the healthy runs of benchmarks/faults none comes below 0.04. Chosen by hand."""
LEAST_EVALUATIONS = 3


@symptom(
    needs=("loss",),
    sources=("domingos_2012", "karpathy_recipe"),
    points=6,
    not_for=("grpo", "ppo", "rl", "preference", "diffusion"),
    whole_run=True,
    background=0.01,
    follows=("loss_zero", "initial_loss_high"),
)
def eval_perfect(run: Run) -> Evidence | None:
    """The evaluation loss comes down to less than a hundredth of what the training loss was at first.

    Held-out rows are hardly ever predicted so surely, unless the answer is among the inputs. Not this when: only the
    training loss is that low (`eval_gap_at_zero`); it is zero from the start, where nothing is scored (`loss_zero`).
    """
    losses = [one for one in (series.finite for series in evaluation_losses(run)) if len(one) >= LEAST_EVALUATIONS]
    if not losses:
        raise CannotTell(f"no evaluation loss has {LEAST_EVALUATIONS} finite values")
    start = start_level(run["loss"].finite.value)
    lowest = min(losses, key=lambda one: end_level(one.value))
    end = end_level(lowest.value)
    if start <= 0 or not 0 <= end < SHARE_OF_START * start:
        return None
    onset = float(lowest.step[int(np.argmax(lowest.value < SHARE_OF_START * start))])
    return Evidence(
        f"{lowest.name} is {figure(end)} at the end, {end / start:.2%} of the {figure(start)} that training began "
        f"with, and below {SHARE_OF_START:.1%} from {run.step_name} {figure(onset)} on",
        steps=(onset,),
        values={"end": end, "start": start, "share": end / start},
    )
