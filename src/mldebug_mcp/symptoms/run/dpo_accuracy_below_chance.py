"""Preference accuracy far below 0.5."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

BELOW = 0.35
"""As far below one half as a healthy run is above it. Chosen by hand."""
NAMES = ("rewards/accuracies", "eval_rewards/accuracies")
OF_A_REWARD_MODEL = ("accuracy", "eval_accuracy")


@symptom(any_of=(*NAMES, *OF_A_REWARD_MODEL), background=0.004)
def dpo_accuracy_below_chance(run: Run) -> Evidence | None:
    """The share of pairs in which the chosen answer has the higher reward or score ends far below one half.

    Not this when: it is near one half (`dpo_accuracy_chance`); it is 0 at the first step, where all rewards are equal.
    """
    judged = False
    for name in OF_A_REWARD_MODEL if scores_pairs(run) else NAMES:
        late = run[name].finite.where(run[name].finite.step > 0) if name in run else None
        if late is None or len(late) < 4:
            continue
        judged = True
        end = late.value[-max(3, len(late) // 4) :]
        mean, error = float(end.mean()), float(end.std() / np.sqrt(len(end)))
        if mean + 2 * error < BELOW and not bool((late.value == 0).all()):
            return Evidence(
                f"{name} has a mean of {figure(mean)} over the last {len(end)} of {len(late)} records",
                steps=(float(late.step[-len(end)]),),
                values={"mean": mean, "error": error},
            )
    if not judged:
        raise CannotTell("fewer than four preference accuracies are logged")
    return None
