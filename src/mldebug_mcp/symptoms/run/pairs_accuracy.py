"""How often does the chosen answer have the higher reward, in the end?"""

from __future__ import annotations

from inspect import cleandoc

import numpy as np

from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.preference import ACCURACIES, of_pairs
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

NEAR = 0.58
"""About 0.5 means nothing was learned, 0.7 is a sign of health: the nearer third between them."""
BELOW = 0.35
"""As far below one half as a healthy run is above it. Chosen by hand."""
LEAST_RECORDS = 8
LEAST_BELOW = 4
NAMES = ("rewards/accuracies", "eval_rewards/accuracies")
OF_A_REWARD_MODEL = ("accuracy", "eval_accuracy")


@question(
    Outcome(
        "dpo_accuracy_below_chance",
        cleandoc("""Preference accuracy far below 0.5.

        The share of pairs in which the chosen answer has the higher reward or score ends far below one half, in
        training or on held-out pairs.
        Not this when: it is near one half; it is 0 at the first step, where all rewards are equal."""),
        background=0.004,
    ),
    Outcome(
        "dpo_accuracy_chance",
        cleandoc("""Preference accuracy stays near 0.5.

        The share of pairs in which the chosen answer has the higher reward is still near one half at the end.
        Not this when: it rises late; batches are so small that their mean is not known. At step 0 all rewards are
        equal and the accuracy is 0: that does not count."""),
        background=0.03,
        sources=("remote_gpu_trainer",),
    ),
    any_of=(*NAMES, *OF_A_REWARD_MODEL),
)
def pairs_accuracy(run: Run) -> Answers:
    """Below one half, on any pairs; else near it, on those of training."""
    below = _below(run)
    if isinstance(below, Evidence):
        return {"dpo_accuracy_below_chance": below}
    answers: dict[str, Evidence | CannotTell] = {} if below is None else {"dpo_accuracy_below_chance": below}
    try:
        near = _near(run)
    except CannotTell as why:
        return {**answers, "dpo_accuracy_chance": why}
    return answers if near is None else {**answers, "dpo_accuracy_chance": near}


def _below(run: Run) -> Evidence | CannotTell | None:
    judged = False
    for name in OF_A_REWARD_MODEL if scores_pairs(run) else NAMES:
        late = run[name].finite.where(run[name].finite.step > 0) if name in run else None
        if late is None or len(late) < LEAST_BELOW:
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
    return None if judged else CannotTell("fewer than four preference accuracies are logged")


def _near(run: Run) -> Evidence | None:
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
