"""Records far above the loss of the untrained model."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.statistics import blocks, mad, median, noise
from mldebug_mcp.symptoms.beginning import is_late
from mldebug_mcp.symptoms.evaluation import evaluation_stands
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.terms import refuse_new_terms
from mldebug_mcp.text import figure

FACTOR = 1.4
"""An untrained classifier or language model guesses evenly; far worse than that is confident and wrong."""
LEAST = 3
QUIET = 0.15
"""The first records must agree to within this share, or their level is not known."""
FIRST = 5
MIDDLE = 0.2
"""Share of the steps after which a log that begins there, or a stretch after a resume, begins with a trained model."""
WIDE = 8
"""Stretches of a log that begins late, one of which must lie above its start: single batches are no trend."""
STRETCH, IN_A_ROW = 1.15, 3
"""Times the start that a stretch of the log lies at, or records in a row: less are single batches that stand out."""
FAR, QUIETER = 6.0, 6.0
"""Where no stretch lies at `FACTOR`, a record must be so many standard deviations away, or the first ones so many times
quieter than the rest: else all scatter around one level, as those of diffusion do. All chosen by hand."""


@symptom(
    needs=("loss",),
    sources=("karpathy_recipe",),
    points=30,
    not_for=("grpo", "ppo", "rl"),
    background=0.01,
    instead=("loss_divergence", "loss_hump"),
    follows=("accuracy_below_chance", "loss_pattern_by_epoch", "loss_spike_single"),
)
def loss_above_start(run: Run) -> Evidence | None:
    """Several records of the training loss lie far above the first ones.

    Not this when: the first records vary widely themselves; single batches stand out (`loss_spike`); the log begins
    with a model that is already trained; the evaluation loss stands still. Factor and number were chosen by hand.
    """
    refuse_new_terms(run)
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
    if not _stays_high(loss.value, start):
        return None
    if is_late(run, float(loss.step[0]), MIDDLE, 0) and float(blocks(loss.value, WIDE).level.max()) < STRETCH * start:
        raise CannotTell(f"the log begins at {run.step_name} {figure(float(loss.step[0]))}: its start is no beginning")
    onset = float(loss.step[high[0]])
    return Evidence(
        f"{len(high)} of {len(loss)} records of the loss lie above {figure(FACTOR * start)}, up to "
        f"{figure(float(loss.value.max()))}, from {run.step_name} {figure(onset)} on; the first ones are around "
        f"{figure(start)}",
        steps=(onset,),
        values={"start": start, "highest": float(loss.value.max()), "records": float(len(high))},
    )


def _stays_high(values: Floats, start: float) -> bool:
    """Say whether a stretch is high, and not single batches or records that scatter around one level."""
    level = float(blocks(values).level.max())
    edges = np.flatnonzero(np.diff(values > FACTOR * start, prepend=False, append=False))
    if level < STRETCH * start and int((edges[1::2] - edges[::2]).max(initial=0)) < IN_A_ROW:
        return False
    far = float(values.max()) >= median(values) + FAR * mad(values)
    return far or level >= FACTOR * start or noise(values) >= QUIETER * float(np.std(values[:FIRST], ddof=1))
