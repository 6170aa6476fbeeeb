"""Preference accuracy stays near 0.5."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.preference import ACCURACIES, of_pairs
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

NEAR = 0.58
"""About 0.5 means nothing was learned, 0.7 is a sign of health: the nearer third between them."""
LEAST_RECORDS = 8


@symptom(any_of=ACCURACIES, sources=("remote_gpu_trainer",), background=0.03)
def dpo_accuracy_chance(run: Run) -> Evidence | None:
    """The share of pairs in which the chosen answer has the higher reward is still near one half at the end.

    Not this when: it rises late; batches are so small that their mean is not known. At step 0 all rewards are equal
    and the accuracy is 0: that does not count.
    """
    accuracy = of_pairs(run, ACCURACIES, LEAST_RECORDS)
    if accuracy.step[-1] - accuracy.step[0] < 20 and len(accuracy) < 20:
        raise CannotTell(f"the accuracies cover only {len(accuracy)} records")
    late = accuracy.value[-max(5, len(accuracy) // 3) :]
    mean = float(np.mean(late))
    error = float(np.std(late)) / np.sqrt(len(late))
    if mean - 2 * error > NEAR:
        return None
    if mean > NEAR or mean + 2 * error > 0.7:
        if mean >= 0.65:
            return None
        raise CannotTell(f"the accuracy is {figure(mean)} ± {figure(2 * error)} at the end: too noisy to tell from 0.5")
    return Evidence(
        f"{accuracy.name} has a mean of {figure(mean)} over the last {len(late)} of {len(accuracy)} records, "
        f"from {run.step_name} {figure(float(accuracy.step[-len(late)]))} on",
        steps=(float(accuracy.step[0]),),
        values={"mean": mean, "error": error},
    )
