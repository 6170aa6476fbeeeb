"""Chosen-rejected margin does not grow."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.preference import ACCURACIES, MARGINS, of_pairs
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median, noise
from mldebug_mcp.text import figure

LEAST_GROWTH = 0.1
"""A margin of 0.1 brings the DPO loss from ln 2 = 0.693 to 0.644; a run that learns goes far beyond."""
LEAST_NATS = 1.0
"""... or this many nats between the log-ratios, where beta is so small that margins stay small."""
LEARNED = 0.65
"""Preference accuracy from which on something was learned, whatever the scale of the margin."""
LEAST_STEPS = 20
LEAST_RECORDS = 8


@symptom(any_of=MARGINS, sources=("remote_gpu_trainer",), background=0.03)
def dpo_margin_flat(run: Run) -> Evidence | None:
    """The margin between the rewards of chosen and rejected answers does not grow.

    Not this when: beta is small, so that margins are small although the pairs are told apart; the log covers only the
    first steps. The least growth was chosen by hand.
    """
    margin = of_pairs(run, MARGINS, LEAST_RECORDS)
    if margin.step[-1] - margin.step[0] < LEAST_STEPS and len(margin) < LEAST_STEPS:
        raise CannotTell(f"the margins cover {figure(float(margin.step[-1] - margin.step[0]))} {run.step_name}s only")
    quarter = max(3, len(margin) // 4)
    start, end = median(margin.value[:quarter]), median(margin.value[-quarter:])
    if start > LEAST_GROWTH and len(margin) > 8:
        start = min(start, 0.0)  # it had grown before the first records were averaged
    beta = run.setting("beta")
    needed = min(LEAST_GROWTH, LEAST_NATS * beta) if beta is not None and beta > 0 else LEAST_GROWTH
    accuracy = _late_accuracy(run)
    if end - start >= needed or (accuracy is not None and accuracy >= LEARNED):
        return None
    beside = "" if accuracy is None else f"; the accuracy on pairs is {figure(accuracy)} at the end"
    return Evidence(
        f"{margin.name} goes from {figure(start)} to {figure(end)} between {run.step_name}s "
        f"{figure(float(margin.step[0]))} and {figure(float(margin.step[-1]))}{beside}",
        steps=(float(margin.step[0]),),
        values={"start": start, "end": end, "noise": noise(margin.value)},
    )


def _late_accuracy(run: Run) -> float | None:
    try:
        accuracy = of_pairs(run, ACCURACIES, 1)
    except CannotTell:
        return None
    return float(np.mean(accuracy.value[-max(3, len(accuracy) // 4) :]))
