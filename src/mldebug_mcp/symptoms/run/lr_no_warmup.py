"""Peak learning rate from the first step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.beginning import is_late
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

NEAR_PEAK = 0.95
EARLY = 0.01


@symptom(
    needs=("learning_rate",),
    sources=("goyal_2017", "tuning_playbook"),
    points=5,
    not_for=("rl",),
    background=0.3,
    as_chosen=True,
)
def lr_no_warmup(run: Run) -> Evidence | None:
    """The learning rate is at its peak from the first steps on.

    Not this when: the log begins after warmup, or is too coarse to show it. Many healthy fine-tunes have no warmup:
    by itself this says little. The shares were chosen by hand.
    """
    rate = run["learning_rate"].finite
    peak = float(rate.value.max())
    if peak <= 0:
        return None
    first = float(rate.step[0])
    warmup = max(run.setting("warmup_steps") or 0.0, run.setting("warmup_ratio") or 0.0)
    if warmup > 0:
        return None
    if is_late(run, first, EARLY, 2.0) and run.setting("warmup_steps") is None:
        raise CannotTell(
            f"the first learning rate is logged at {run.step_name} {figure(first)}: a warmup before it would not show"
        )
    if float(rate.value[0]) < NEAR_PEAK * peak or int(np.argmax(rate.value)) > len(rate) // 20 + 1:
        return None
    return Evidence(
        f"learning_rate is {figure(float(rate.value[0]))} at {run.step_name} {figure(first)}; "
        f"its peak is {figure(peak)}",
        steps=(first,),
        values={"first": float(rate.value[0]), "peak": peak},
    )
