"""The loss goes the same ups and downs in each epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.pass_profile import UNKNOWN_EPOCHS, Profile, epochs_of, profile_of, whole_passes
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

PARTS, PER_PART = 8, 2
"""Stretches of an epoch, whose levels are compared with those of the next, and records that each has at least."""
FEW_PARTS, MANY_EPOCHS = 5, 6
"""An epoch of fewer records, so many at least, is judged by each of them, where there are this many epochs."""
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
    points=FEW_PARTS * MANY_EPOCHS,
    not_for=("grpo", "ppo", "rl"),
    background=0.004,
    follows=("loss_periodic",),
)
def loss_pattern_by_epoch(run: Run) -> Evidence | None:
    """The training loss goes through the same ups and downs in each epoch, apart from how far it has come.

    Two epochs may show it, where `loss_periodic` needs more; so does a loss that rises in each of them, as over rows in
    the order of their difficulty. Not this when: each epoch falls alike along a line (`loss_epoch_steps`); the pattern
    is small beside the loss; rows of like length are put together on purpose (a remark). Needs the epoch of each
    record, or the steps in one by the settings.
    """
    loss = run["loss"].finite
    epoch = epochs_of(run, loss)
    if epoch is None:
        raise CannotTell(UNKNOWN_EPOCHS)
    found = profile_of(loss, epoch, _parts(loss.value, epoch), STARTS_OVER)
    if found is None:
        raise CannotTell("the log does not hold two whole epochs")
    if found.swing < SWING * found.level or not float(found.alike.min()) > ALIKE or not found.begins_anew:
        return None
    return _evidence(run, found)


def _parts(values: Floats, epoch: NDArray[np.int64]) -> int:
    """Return into how many parts epochs are cut.

    Raises:
        CannotTell: epochs have too few records, for as many of them as there are.
    """
    whole = whole_passes(values, epoch)
    fewest = min(map(len, whole), default=0)
    if fewest >= PARTS * PER_PART:
        return PARTS
    if fewest < FEW_PARTS or len(whole) < MANY_EPOCHS:
        raise CannotTell(f"an epoch has fewer than {PARTS * PER_PART} records, and there are {len(whole)}")
    return min(PARTS, fewest)


def _evidence(run: Run, found: Profile) -> Evidence:
    by_length = run.settings.flag("group_by_length") is True
    meant = "; rows of like length are put together, as configured" if by_length else ""
    least = float(found.alike.min())
    return Evidence(
        f"in each of {found.passes} epochs the loss goes the same way, up and down by {figure(found.swing)} or more "
        f"beside its trend (correlation from epoch to epoch {least:.2f}); the second begins at {run.step_name} "
        f"{figure(found.second)}{meant}",
        steps=(found.second,),
        values={"swing": found.swing, "correlation": least, "epochs": found.passes},
        present=not by_length,
    )
