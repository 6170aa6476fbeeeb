"""What a policy earns: the rewards that a run logs, as means over stretches, with their trend."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.facts import POLICIES
from mldebug_mcp.measure.statistics import (
    blocks,
    drift,
    edge_width,
    end_level,
    highest_level,
    median,
    noise,
    start_level,
)

TEXT_POLICIES = frozenset({"grpo", "ppo"})
"""Kinds whose policy is a language model: entropy is per token, and thresholds from GRPO practice apply."""
STRETCHES = 100
"""Means of single episodes' rewards that show a course: chosen by hand."""
BEGINS = 0.05
"""Share of a run that may be missing before a log that begins where the run does. Chosen: by hand."""
CHANGE = 0.2
"""Of the level at the start: a smaller trend over the log is no change. Chosen: by hand."""
ERRORS = 5.0
"""... nor is one of fewer of its standard errors. Chosen: what a fixed policy's rewards and entropies do between the
states that it meets is less."""
LEAST = 5
"""Records without which no trend is told. Chosen: by hand."""
LEAST_OF_A_RISE, RISES, KEPT = 10, 4.0, 0.25
"""Records of a reward, standard errors by which it rises, and what it may lose again of the rise. Chosen: by hand."""
_SCORED_BY = (
    Quantity.REWARD, Quantity.SCORE, Quantity.SUCCESS_RATE, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY,
    Quantity.REWARD_ACCURACY,
)  # fmt: skip
"""What a policy is scored by at evaluation."""

NEARLY = 0.02
"""Of the most that can be earned: so near to it the reward has come. Chosen: a wrong answer in fifty."""


def rewards_of(run: Run) -> Series | None:
    """Return the finite rewards: the total, or the sum of its components where each record has them all."""
    if "reward" in run:
        return run["reward"].finite
    parts = components(run)
    if not parts:
        return None
    steps = parts[0].step
    if any(len(part) != len(steps) or not np.array_equal(part.step, steps) for part in parts):
        return parts[0].finite
    return Series("reward", steps, np.sum([part.value for part in parts], axis=0)).finite


def kept_rise(run: Run) -> tuple[float, float] | None:
    """Return the first and the last level of the reward of a policy that learns and keeps what it has learnt, or None.

    It rises by more than its noise, and ends near its best.
    """
    rewards = rewards_of(run) if run.kind in POLICIES else None
    if rewards is None or len(rewards) < LEAST_OF_A_RISE:
        return None
    value = rewards.value
    start, end, best = start_level(value), end_level(value), highest_level(value).value
    clear = RISES * noise(value) / math.sqrt(edge_width(len(value)))
    return (start, end) if end - start > clear and best - end <= KEPT * (best - start) else None


def components(run: Run) -> list[Series]:
    """Return the mean of each reward that is added up, by name: `rewards/format/mean`."""
    found = run.with_role(Quantity.REWARD, phase="train", parts=True)
    means = (one for one in found if one.role is not None and one.role.part and one.role.statistic == "mean")
    return sorted(means, key=lambda one: one.name)


def averaged(run: Run, rewards: Series) -> Series:
    """Return the rewards of a classic agent as means over stretches, `STRETCHES` of them, where there are many.

    Single episodes scatter, and where most bring nothing a median would show nothing.
    """
    if run.kind != "rl" or len(rewards) < 2 * STRETCHES:
        return rewards
    first = np.linspace(0, len(rewards), STRETCHES, endpoint=False).astype(np.int64)
    counts = np.diff(np.append(first, len(rewards)))
    return Series(rewards.name, rewards.step[first], np.add.reduceat(rewards.value, first) / counts)


def held_out_scores(run: Run, least: int) -> list[Series]:
    """Return what evaluation is scored by, such as `eval_reward`, where it has so many finite values."""
    scores = {one.name: one.finite for one in run.with_role(*_SCORED_BY, phase="eval", parts=True)}
    return [scores[name] for name in run.series if name in scores and len(scores[name]) >= least]


def scores_beside(run: Run, least: int) -> list[Series]:
    """Return what the same answers are scored by beside the reward, as medians over stretches, in so many records."""
    found = run.with_role(Quantity.SCORE, Quantity.SUCCESS_RATE, Quantity.ACCURACY, phase="train", parts=True)
    whole = [one.finite for one in found if len(one.finite) >= least]
    cut = [blocks(one.value, 12) for one in whole]
    return [Series(one.name, one.step[of.first], of.level) for one, of in zip(whole, cut, strict=True)]


def from_the_start(rewards: Series) -> bool:
    """Say whether a log begins where the run does: within its first twentieth, or a few records of its start."""
    spacing = median(np.diff(rewards.step))
    return float(rewards.step[0]) <= max(BEGINS * float(rewards.step[-1]), 5 * spacing)


def trend(series: Series) -> float:
    """Return how far a metric moves over the log, 0 where that is not clearly a change."""
    if len(series) < LEAST:
        return 0.0
    moved = drift(series.value)
    least = max(CHANGE * abs(start_level(series.value)), ERRORS * moved.error)
    return moved.change if abs(moved.change) > least else 0.0


def most_earned(rewards: Series) -> float | None:
    """Return the most that can be earned, where the reward has come to it: a whole number that it never exceeds."""
    end = end_level(rewards.value)
    most = round(end)
    if most < 1 or abs(end - most) > NEARLY * most or float(rewards.value.max()) > (1 + NEARLY) * most:
        return None
    return float(most)


def seems_to_learn(run: Run) -> bool:
    """Say whether the reward rises over the log by more than chance does as a rule."""
    rewards = rewards_of(run)
    if rewards is None or len(rewards) < LEAST:
        return False
    moved = drift(averaged(run, rewards).value)
    return moved.change > 2 * moved.error
