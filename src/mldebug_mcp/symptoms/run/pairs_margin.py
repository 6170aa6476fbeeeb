"""Does the margin between chosen and rejected answers grow?"""

from __future__ import annotations

from inspect import cleandoc

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.pairs import LOGPS, NO_REWARD, REWARDS, apart
from mldebug_mcp.measure.statistics import median, noise
from mldebug_mcp.symptoms.preference import ACCURACIES, MARGINS, of_pairs
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import counted, figure

LEAST_GROWTH = 0.1
"""A margin of 0.1 brings the DPO loss from ln 2 = 0.693 to 0.644; a run that learns goes far beyond."""
LEAST_NATS = 1.0
"""... or this many nats between the log-ratios, where beta is so small that margins stay small."""
LEARNED = 0.65
"""Preference accuracy from which on something was learned, whatever the scale of the margin."""
LEAST_STEPS = 20
LEAST_RECORDS = 8
LEAST_ZEROS = 5
"""Records past the first: at the start, and in a warm-up in bf16, policy and reference may still agree. By hand."""
EQUAL = 1e-6
"""As a share of the values themselves: what rounding in float32 leaves of two answers that are one."""
MOSTLY = 0.95
MOVED = 0.05
ALIKE = 0.003
"""Rewards that have moved this far, while they differ by this share of it: what one answer gains the other gains too.
Chosen by hand; answers that merely fall together differ by some per cent."""


@question(
    Outcome(
        "dpo_rewards_zero",
        cleandoc("""The implicit rewards of both answers are exactly zero.

        They are beta times the log-ratio of policy and reference, and zero in every record after the first: the two
        are one and the same.
        Not this when: the log covers only the first steps; the rewards are tiny but move."""),
        background=0.002,
        needs=REWARDS,
    ),
    Outcome(
        "dpo_pairs_alike",
        cleandoc("""Chosen and rejected answers have the same values, record by record.

        Their mean log-probabilities are equal to within rounding, or their rewards move while they differ by less
        than 0.3 % of that.
        Not this when: only the rewards are equal, and zero, as they are at the first step; both fall, and some per
        cent remain between them."""),
        background=0.002,
    ),
    Outcome(
        "dpo_margin_flat",
        cleandoc("""Chosen-rejected margin does not grow.

        The margin between the rewards of chosen and rejected answers stays where it was.
        Not this when: beta is small, so that margins are small although the pairs are told apart; the log covers
        only the first steps. The least growth was chosen by hand."""),
        background=0.03,
        sources=("remote_gpu_trainer",),
    ),
    any_of=(*MARGINS, *REWARDS, *LOGPS),
)
def pairs_margin(run: Run) -> Answers:
    """Equal answers first, for they cannot have a margin; then a policy that is its reference; then the margin."""
    if (equal := _alike(run)) is not None:
        return {"dpo_pairs_alike": equal}
    if (zero := _zero(run)) is not None:
        return {"dpo_rewards_zero": zero}
    try:
        flat = _flat(run)
    except CannotTell as why:
        return {"dpo_margin_flat": why}
    return {} if flat is None else {"dpo_margin_flat": flat}


def _alike(run: Run) -> Evidence | None:
    logps, rewards = apart(run, LOGPS), apart(run, REWARDS)
    if logps is not None and bool((logps.size > 0).all()):
        equal = logps.apart <= EQUAL * logps.size
        if equal.mean() >= MOSTLY:
            return Evidence(
                f"{logps.metric} are equal in {equal.mean():.0%} of {counted(len(equal), 'record')}, to within "
                f"{figure(float(logps.apart[equal].max()))} nats",
                steps=(float(logps.steps[0]),),
                values={"share": float(equal.mean()), "records": len(equal)},
            )
    if rewards is None:
        return None
    later = len(rewards.size) // 2
    size, between = median(rewards.size[later:]), median(rewards.apart[later:])
    if len(rewards.size) < LEAST_RECORDS or size < MOVED or between > ALIKE * size:
        return None
    return Evidence(
        f"{rewards.metric} have a median size of {figure(size)} over the later half, and differ by {figure(between)}",
        steps=(float(rewards.steps[0]),),
        values={"size": size, "apart": between},
    )


def _zero(run: Run) -> Evidence | None:
    rewards = apart(run, REWARDS)
    if rewards is None or len(rewards.size) <= LEAST_ZEROS or float(rewards.steps[-1]) < LEAST_STEPS:
        return None
    if float(rewards.size[1:].max()) > NO_REWARD:
        return None
    return Evidence(
        f"{rewards.metric} are {figure(float(rewards.size[1:].max()))} at most in all "
        f"{counted(len(rewards.size), 'record')} up to {run.step_name} {figure(float(rewards.steps[-1]))}",
        steps=(float(rewards.steps[0]),),
        values={"largest": float(rewards.size[1:].max()), "records": len(rewards.size)},
    )


def _flat(run: Run) -> Evidence | None:
    margin = of_pairs(run, MARGINS, LEAST_RECORDS)
    if margin.step[-1] - margin.step[0] < LEAST_STEPS and len(margin) < LEAST_STEPS:
        raise CannotTell(f"the margins cover {figure(float(margin.step[-1] - margin.step[0]))} {run.step_name}s only")
    quarter = max(3, len(margin) // 4)
    start, end = median(margin.value[:quarter]), median(margin.value[-quarter:])
    if start > LEAST_GROWTH and len(margin) > LEAST_RECORDS:
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
