"""Loss that leaps up right after the first record."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median, noise, positive, relative_noise
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

FACTOR, FACTOR_OF_ONE = 1.25, 1.4
"""Times the first record: two records of the beginning, or a single one where the log is short."""
SIGMAS, SIGMAS_ON_LOG = 8.0, 6.0
"""Standard deviations of the noise later on, as it is and on the logarithm: one low first record is not a jump."""
ABOVE_ALL, HIGH_START = 1.15, 1.5
"""The peak is this many times everything after the first third, unless the first record is itself this many times the
later level (the second number), so that it is not low by chance."""
SHORT, LEAST_WINDOW, MOST_WINDOW = 100, 6, 39


@symptom(
    needs=("loss",),
    sources=("axolotl_stability",),
    points=20,
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
    background=0.004,
    follows=("loss_hump", "loss_above_start", "loss_nonfinite"),
)
def loss_jumps_at_start(run: Run) -> Evidence | None:
    """The training loss leaps far above its first record within the first records, and comes down from there.

    The first steps make the model worse than it was. Not this when: the first record is low by noise; the loss climbs
    over a longer stretch (`loss_hump`). The numbers were chosen by hand: 2 in 1000 simulated healthy runs show it.
    """
    loss = run["loss"].finite
    values, count = loss.value, len(loss)
    first, later = float(values[0]), values[count // 3 :]
    beginning = values[1 : 1 + min(MOST_WINDOW, max(LEAST_WINDOW, count // 12))]
    top = float(beginning.max())
    spread = relative_noise(later) if positive(values) else 0.0
    if first <= 0 or top - first < SIGMAS * noise(later) or top < first * (1 + SIGMAS_ON_LOG * spread):
        return None
    high = np.flatnonzero(beginning > FACTOR * first)
    above_all = len(high) >= 2 and np.sort(beginning)[-2] > ABOVE_ALL * later.max()
    least = 1 if count < SHORT else 2
    from_high = len(high) >= least and top > FACTOR_OF_ONE * first > FACTOR_OF_ONE * HIGH_START * median(later)
    if not above_all and not from_high:
        return None
    at = float(loss.step[1 + int(beginning.argmax())])
    rate = run["learning_rate"].at(at) if "learning_rate" in run else None
    beside = f"; the learning rate there is {figure(rate)}" if rate is not None else ""
    return Evidence(
        f"loss leaps from {figure(first)} at {run.step_name} {figure(float(loss.step[0]))} to {figure(top)} at "
        f"{run.step_name} {figure(at)} and comes down from there{beside}",
        steps=(float(loss.step[1 + int(high[0])]),),
        values={"first": first, "highest": top, "factor": top / first, "records": float(len(high))},
    )
