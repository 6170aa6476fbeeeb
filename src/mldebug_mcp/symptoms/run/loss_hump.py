"""Loss climbs far above its start and comes back."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, end_level, positive, start_level
from mldebug_mcp.symptoms.terms import refuse_new_terms
from mldebug_mcp.text import figure

HEIGHT = 1.4
"""The top stands at this multiple of the level at the start. A well initialised model begins near its worst loss."""
SIGMAS = 6.0
"""... and this far above the noise of block medians, and above what the first records leave in doubt."""
WAY_BACK = 0.5
"""At least this share of the climb is lost again by the end; else it is a divergence."""


@symptom(
    needs=("loss",),
    points=12,
    not_for=("grpo", "ppo", "rl"),
    background=0.004,
    instead=("loss_divergence",),
    follows=("loss_spike_single",),
)
def loss_hump(run: Run) -> Evidence | None:
    """The training loss climbs far above the level at which it began, for a stretch, and comes back down.

    Not this when: it stays up (`loss_divergence`); it rose from a good level, and not above the start (`loss_spike`);
    one or two records stand out. The multiples were chosen on runs trained at 10 to 400 times a good learning rate.
    """
    refuse_new_terms(run)
    loss = run["loss"].finite
    cut = blocks(loss.value)
    top = int(cut.level.argmax())
    start, peak, end = start_level(loss.value[: max(3, len(loss) // 50)]), float(cut.level[top]), end_level(loss.value)
    climb = peak - start
    first = loss.value[: max(3, len(loss) // 50)]
    doubt = 1.25 * float(np.std(first)) / math.sqrt(len(first))  # of a median
    least = SIGMAS * max(cut.wobble, doubt)
    if start <= 0 or peak < HEIGHT * start or climb < least or peak - end < WAY_BACK * climb:
        return None
    if positive(loss.value) and math.log(peak / start) < SIGMAS * blocks(np.log(loss.value)).wobble:
        return None  # noise that multiplies reaches far up
    onset = float(loss.step[int((loss.value > start + 0.2 * climb).argmax())])
    lr = run["learning_rate"].at(onset) if "learning_rate" in run else None
    beside = f"; the learning rate at that {run.step_name} is {figure(lr)}" if lr is not None else ""
    return Evidence(
        f"loss climbs from {figure(start)} at the start to {figure(peak)} around {run.step_name} "
        f"{figure(float(loss.step[cut.first[top]]))} and is {figure(end)} at the end{beside}",
        steps=(onset,),
        values={"start": start, "peak": peak, "end": end, "factor": peak / start},
    )
