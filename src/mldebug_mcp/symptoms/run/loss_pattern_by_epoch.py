"""The loss goes the same ups and downs in each epoch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_epoch_steps import epochs_of
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

PARTS = 8
"""Stretches of an epoch, whose levels are compared with those of the next."""
PER_PART = 2
WHOLE = 0.9
"""Of the records of the first epoch: what the last one must have to be compared."""
LEAST_EPOCHS = 2
ALIKE = 0.85
"""Correlation of the levels of one epoch with those of the next. Of eight levels in random order one pair in a hundred
has that, and each further epoch must have it too."""
STARTS_OVER = 0.5
"""Of that swing: how far the step from one epoch to the next may be from the one that starts the pattern over. A loss
that climbs all the way makes none. Chosen by hand."""
SWING = 0.15
"""Of the level of the loss: how far the pattern goes up and down. Chosen by hand."""


@symptom(
    needs=("loss",),
    sources=("smol_playbook",),
    points=LEAST_EPOCHS * PARTS * PER_PART,
    not_for=("grpo", "ppo", "rl"),
    background=0.004,
    follows=("loss_periodic",),
)
def loss_pattern_by_epoch(run: Run) -> Evidence | None:
    """The training loss goes through the same ups and downs in each epoch, apart from how far it has come.

    Two epochs may show it, where `loss_periodic` needs more; so does a loss that rises in each of them, as over rows in
    the order of their difficulty. Not this when: each epoch falls alike along a line
    (`loss_epoch_steps`); the pattern is small beside the loss. Needs the epoch of each record.
    """
    loss = run["loss"].finite
    epoch = epochs_of(run, loss)
    whole = [loss.value[epoch == number] for number in np.unique(epoch)]
    if whole and len(whole[-1]) < WHOLE * len(whole[0]):
        whole.pop()
    if min(map(len, whole), default=0) < PARTS * PER_PART:
        raise CannotTell(f"an epoch has fewer than {PARTS * PER_PART} records")
    levels = [_levels(values) for values in whole]
    shapes = [_shape(one) for one in levels]
    if len(shapes) < LEAST_EPOCHS:
        raise CannotTell("the log does not hold two whole epochs")
    level = median(np.abs(loss.value))
    swing = min(float(np.ptp(shape)) for shape in shapes[1:])
    alike = [float(np.corrcoef(one, other)[0, 1]) for one, other in pairwise(shapes)]
    if len(alike) > 1:
        alike = alike[1:]  # learning bends the first epoch
    starts_over = [
        abs((after[0] - before[-1]) - (again[0] - shape[-1])) < STARTS_OVER * swing
        for (before, after), (shape, again) in zip(pairwise(levels), pairwise(shapes), strict=True)
    ]
    if swing < SWING * level or not min(alike) > ALIKE or not all(starts_over):
        return None
    first = float(loss.step[int(np.argmax(epoch > epoch[0]))])
    return Evidence(
        f"in each of {len(shapes)} epochs the loss goes the same way, up and down by {figure(swing)} or more beside "
        f"its trend (correlation from epoch to epoch {min(alike):.2f}); the second begins at {run.step_name} "
        f"{figure(first)}",
        steps=(first,),
        values={"swing": swing, "correlation": min(alike), "epochs": len(shapes)},
    )


def _levels(values: Floats) -> Floats:
    """Return the levels of the parts of an epoch, shape (PARTS,)."""
    return np.array([median(part) for part in np.array_split(values, PARTS)])


def _shape(levels: Floats) -> Floats:
    """Return the levels of an epoch beside the line along which it falls, if it does, shape (PARTS,)."""
    place = np.arange(PARTS) - (PARTS - 1) / 2
    slope = float(np.polyfit(place, levels, 1)[0])
    return np.asarray(levels - levels.mean() - min(slope, 0.0) * place)
