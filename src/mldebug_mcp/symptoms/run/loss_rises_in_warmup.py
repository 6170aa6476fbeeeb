"""Loss that falls at small learning rates and climbs again as warmup goes on."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median, median_of_three, noise
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

NEARLY_ZERO = 1e-4
"""A loss that comes down to this within a warmup is gone, which other symptoms tell. Chosen by hand."""
RISE = 0.25
"""Of the lowest loss."""
SIGMAS = 6.0
"""... and so far above the noise from record to record."""
STEEPER = 1.5
"""How much higher the rate is where the loss stands high than where it was lowest."""
LEAST = 8
"""Records of the warmup."""
LAST = 3
"""Of these the last stand for its end."""


@symptom(
    needs=("loss", "learning_rate"),
    points=12,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.005,
    follows=("loss_divergence", "loss_drops_to_zero", "loss_nonfinite", "loss_zero"),
)
def loss_rises_in_warmup(run: Run) -> Evidence | None:
    """The training loss falls while the learning rate is small, and climbs as warmup takes the rate to its peak.

    A larger rate undoes what a small one had learnt. Not this when: there is no warmup, or it is too short to see; the
    climb is within the noise; the data get harder at that time. The shares were chosen by hand.
    """
    rate, loss = run["learning_rate"].finite, run["loss"].finite
    top = int(np.argmax(rate.value))
    warmup = loss.between(float(rate.step[0]), float(rate.step[top]))
    if rate.value[0] > rate.value[top] / STEEPER or len(warmup) < LEAST:
        raise CannotTell(f"no warmup of {LEAST} records or more is logged")
    level = median_of_three(warmup.value)
    low, end = int(np.argmin(level[:-LAST])), median(warmup.value[-LAST:])
    lowest = float(level[low])
    at_low, at_end = (rate.at(float(warmup.step[at])) or 0.0 for at in (low, -1))
    if (
        lowest <= NEARLY_ZERO
        or end - lowest < max(RISE * abs(lowest), SIGMAS * noise(warmup.value))
        or at_end < STEEPER * at_low
    ):
        return None
    onset = float(warmup.step[low])
    return Evidence(
        f"loss rises from {figure(lowest)} at {run.step_name} {figure(onset)}, where the learning rate is "
        f"{figure(at_low)}, to {figure(end)} at {run.step_name} {figure(float(warmup.step[-1]))}, where warmup has "
        f"taken it to {figure(at_end)}",
        steps=(onset,),
        values={"lowest": lowest, "end": end, "rate_at_lowest": at_low, "rate_at_end": at_end},
    )
