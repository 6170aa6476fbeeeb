"""Records far above the loss of the untrained model."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.symptoms.evaluation import evaluation_stands
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, mad, median, noise
from mldebug_mcp.text import figure

FACTOR = 1.4
"""An untrained classifier or language model guesses evenly; far worse than that is confident and wrong."""
LEAST = 3
QUIET = 0.15
"""The first records must agree to within this share, or their level is not known."""
FIRST = 5
SCATTER, QUIETER = 6.0, 6.0
"""Standard deviations above the usual level: where no record is higher, no stretch at `FACTOR`, and the first records
were not so many times quieter than the rest, all scatter around one level, as those of diffusion do. By hand."""


@symptom(
    needs=("loss",),
    sources=("karpathy_recipe",),
    points=30,
    not_for=("grpo", "ppo", "rl"),
    background=0.01,
    instead=("loss_divergence", "loss_hump"),
)
def loss_above_start(run: Run) -> Evidence | None:
    """Several records of the training loss lie far above the first ones.

    Not this when: the first records vary widely themselves; one batch stands out (`loss_spike`); the log begins with a
    model that is already trained; the evaluation loss stands still. Factor and number were chosen by hand.
    """
    loss = run["loss"].finite
    first = loss.value[:FIRST]
    start = median(first)
    if start <= 0:
        return None
    # A falling start is not noise: the noise is what is left of a straight line.
    if noise(first) > QUIET * start or float(np.ptp(first)) > start:
        raise CannotTell("the first records of the loss vary too widely to be a level")
    high = np.flatnonzero(loss.value[FIRST:] > FACTOR * start) + FIRST
    if len(high) < LEAST:
        return None
    if evaluation_stands(run):
        raise CannotTell("the evaluation loss stands still, so what rises here is noise of the batches")
    if _is_chance(loss.value, start):
        return None
    onset = float(loss.step[high[0]])
    return Evidence(
        f"{len(high)} of {len(loss)} records of the loss lie above {figure(FACTOR * start)}, up to "
        f"{figure(float(loss.value.max()))}, from {run.step_name} {figure(onset)} on; the first ones are around "
        f"{figure(start)}",
        steps=(onset,),
        values={"start": start, "highest": float(loss.value.max()), "records": float(len(high))},
    )


def _is_chance(values: Floats, start: float) -> bool:
    """Say whether no stretch is high and no record above the usual scatter: the first ones happened to agree."""
    if float(blocks(values).level.max()) >= FACTOR * start or float(values.max()) >= median(values) + SCATTER * mad(
        values
    ):
        return False
    return noise(values) < QUIETER * float(np.std(values[:FIRST], ddof=1))
