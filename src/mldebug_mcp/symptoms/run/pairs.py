"""Does preference training tell chosen answers from rejected ones?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.pairs import LOGPS, NO_REWARD, REWARDS, apart, margin_of
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import require_values
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen
from mldebug_mcp.text import counted, figure

ACCURACIES, MARGINS = ("rewards/accuracies", "accuracy"), ("rewards/margins", "margin")
"""How often the chosen answer has the higher reward, and by how much: of DPO and its like, of a reward model."""
HELD_OUT = ("eval_rewards/accuracies", "eval_accuracy")
LEAST, LEAST_BELOW, LEAST_STEPS = 8, 4, 20
"""Records, those of an accuracy below one half, and steps that they cover. Chosen: fewer are the beginning."""
NEAR, LEARNED, ERRORS = 0.58, 0.65, 2.0
"""An accuracy that is no more than chance, one that is, and errors of a mean. Chosen: a third and two thirds
of the way from 0.5 to the 0.7 that remote_gpu_trainer calls healthy."""
BELOW = 0.35
"""An accuracy below chance. Chosen: as far below one half as `LEARNED` is above it."""
LEAST_GROWTH, LEAST_NATS = 0.1, 1.0
"""Growth of a margin, or nats times beta where beta is small. Chosen: 0.1 brings the DPO loss from 0.693 to 0.644."""
EQUAL, MOSTLY = 1e-6, 0.95
"""Of their size, how far equal values are apart; the share of such records. Chosen: rounding in float32."""
MOVED, ALIKE = 0.05, 0.003
"""Rewards that have moved this far, while they differ by this share of it. Chosen: answers that merely fall together
differ by some per cent."""
LEAST_ZEROS = 5
"""Records past the first in which rewards are zero. Chosen: in a warm-up in bf16 both models may still agree."""


def _of_pairs(run: Run, names: tuple[str, str], least: int) -> Series:
    """Return a metric of pairs; raise CannotTell where it is too short, or the run scores no pairs."""
    name = names[0] if names[0] in run else names[1]
    logged = name in run and (name == names[0] or scores_pairs(run))
    found = run[name] if logged else margin_of(run) if names == MARGINS else None
    if found is None:
        raise CannotTell(f"not logged: {names[0]}")
    return require_values(found.finite.where(found.finite.step > 0), least)


def dpo_pairs_alike(run: Run) -> Evidence | None:
    """Chosen and rejected answers have the same values, record by record.

    Not this when: only the rewards are equal, and zero; both fall, and some per cent remain between them.
    """
    logps, rewards = apart(run, LOGPS), apart(run, REWARDS)
    if logps is not None and bool((logps.size > 0).all()):
        equal = logps.apart <= EQUAL * logps.size
        if equal.mean() >= MOSTLY:
            said = f"equal in {equal.mean():.0%} of {counted(len(equal), 'record')}"
            return _seen(f"{logps.metric} are {said}", logps.steps, share=float(equal.mean()))
    if rewards is None or len(rewards.size) < LEAST:
        return None
    later = len(rewards.size) // 2
    size, between = median(rewards.size[later:]), median(rewards.apart[later:])
    if size < MOVED or between > ALIKE * size:
        return None
    said = f"a median size of {figure(size)} over the later half, and differ by {figure(between)}"
    return _seen(f"{rewards.metric} have {said}", rewards.steps, size=size, apart=between)


def _seen(summary: str, steps: Floats, **values: float) -> Evidence:
    return Evidence(summary, steps=(float(steps[0]),), values=values)


def dpo_rewards_zero(run: Run) -> Evidence | None:
    """The implicit rewards of both answers are exactly zero: policy and reference are one and the same.

    Not this when: the log covers only the first steps; the rewards are tiny but move.
    """
    rewards = apart(run, REWARDS)
    if rewards is None:
        raise CannotTell(f"not logged: {' and '.join(REWARDS)}")
    if len(rewards.size) <= LEAST_ZEROS or float(rewards.steps[-1]) < LEAST_STEPS:
        return None
    largest = float(rewards.size[1:].max())
    said = f"{figure(largest)} at most in all {len(rewards.size)} records up to {run.step_name}"
    summary = f"{rewards.metric} are {said} {figure(rewards.steps[-1])}"
    return _seen(summary, rewards.steps, largest=largest) if largest <= NO_REWARD else None


def _end(accuracy: Series, part: int, least: int) -> tuple[float, float, float]:
    """Return mean and standard error over the last records, one in `part`, and the step of the first of them."""
    late = accuracy.value[-max(least, len(accuracy) // part) :]
    return float(late.mean()), float(late.std() / np.sqrt(len(late))), float(accuracy.step[-len(late)])


def dpo_accuracy_below_chance(run: Run) -> Evidence | None:
    """The chosen answer ends with the higher reward far less than half of the time, in training or evaluation.

    Not this when: it is near one half; it is 0 at the first step, where all rewards are equal.
    """
    judged = [one for names in (ACCURACIES, HELD_OUT) if (one := _logged(run, names)) is not None]
    if not judged:
        raise CannotTell(f"fewer than {LEAST_BELOW} preference accuracies are logged")
    for accuracy in judged:
        mean, error, since = _end(accuracy, 4, 3)
        if mean + ERRORS * error < BELOW and bool(accuracy.value.any()):
            summary = f"{accuracy.name} has a mean of {figure(mean)} over its last quarter"
            return Evidence(summary, steps=(since,), values={"mean": mean, "error": error})
    return None


def _logged(run: Run, names: tuple[str, str]) -> Series | None:
    try:
        return _of_pairs(run, names, LEAST_BELOW)
    except CannotTell:
        return None


def dpo_accuracy_chance(run: Run) -> Evidence | None:
    """The share of pairs in which the chosen answer has the higher reward is still near one half at the end.

    Not this when: it rises late; batches are so small that their mean is not known (then it is unknown).
    """
    accuracy = _of_pairs(run, ACCURACIES, LEAST)
    if accuracy.step[-1] - accuracy.step[0] < LEAST_STEPS and len(accuracy) < LEAST_STEPS:
        raise CannotTell(f"the accuracies cover only {len(accuracy)} records")
    mean, error, since = _end(accuracy, 3, 5)
    if mean - ERRORS * error > NEAR or mean >= LEARNED:
        return None
    if mean > NEAR or mean + ERRORS * error > NEAR + 2 * (LEARNED - NEAR):
        raise CannotTell(f"the accuracy is {figure(mean)} ± {figure(ERRORS * error)} at the end: too noisy to tell")
    summary = f"{accuracy.name} has a mean of {figure(mean)} from {run.place(since)} on"
    return _seen(summary, accuracy.step, mean=mean, error=error)


def dpo_margin_flat(run: Run) -> Evidence | None:
    """The margin between the rewards of chosen and rejected answers stays where it was.

    Not this when: beta is small, so that margins are small although the pairs are told apart; the log covers only
    the first steps.
    """
    margin = _of_pairs(run, MARGINS, LEAST)
    if margin.step[-1] - margin.step[0] < LEAST_STEPS and len(margin) < LEAST_STEPS:
        raise CannotTell(f"the margins cover {figure(margin.step[-1] - margin.step[0])} {run.step_name}s only")
    quarter = max(3, len(margin) // 4)
    start, end = median(margin.value[:quarter]), median(margin.value[-quarter:])
    if start > LEAST_GROWTH and len(margin) > LEAST:
        start = min(start, 0.0)  # it had grown before the first records were averaged
    beta = run.setting("beta")
    needed = min(LEAST_GROWTH, LEAST_NATS * beta) if beta is not None and beta > 0 else LEAST_GROWTH
    accuracy = _logged(run, ACCURACIES)
    if end - start >= needed or (accuracy is not None and _end(accuracy, 4, 3)[0] >= LEARNED):
        return None
    said = f"between {run.step_name}s {figure(margin.step[0])} and {figure(margin.step[-1])}"
    return _seen(f"{margin.name} goes from {figure(start)} to {figure(end)} {said}", margin.step, start=start, end=end)


@question(
    outcome_of(dpo_pairs_alike, 0.002),
    outcome_of(dpo_rewards_zero, 0.002),
    outcome_of(dpo_accuracy_below_chance, 0.004),
    outcome_of(dpo_accuracy_chance, 0.03, "remote_gpu_trainer"),
    outcome_of(dpo_margin_flat, 0.03, "remote_gpu_trainer"),
    any_of=(*MARGINS, *ACCURACIES, *HELD_OUT, *REWARDS, *LOGPS),
)
def pairs(run: Run) -> Answers:
    """Equal answers first, for nothing can tell them apart; then a policy that is its reference; then what it tells."""
    judges = (dpo_pairs_alike, dpo_rewards_zero, dpo_accuracy_below_chance, dpo_accuracy_chance, dpo_margin_flat)
    return first_seen(by_outcome(judges, run))
