"""Reward does not move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.forms import NO_REWARD
from mldebug_mcp.symptoms.policy import NOT_POLICY, REWARDS, averaged, from_the_start, reward
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.reward_sinks import sinks
from mldebug_mcp.symptoms.statistics import blocks, drift, median, noise, sample, start_level
from mldebug_mcp.text import counted, figure

LEAST_RECORDS = 20
"""Axolotl looks at a reward that has not moved after 20 steps."""
SHARE_OF_LEVEL = 0.05
SWINGS = 1.25
"""A steady rise ends 2.9 standard deviations of the whole curve above its start. Chosen by hand."""
MOSTLY_NOISE = 0.7
"""A share of the variance that makes rewards those of single episodes; chosen on simulated rises under noise."""
SHARE_OF_SPREAD = 0.25
"""A move below a quarter of the spread within groups of completions is not progress."""


@symptom(
    any_of=REWARDS,
    sources=("axolotl_stability",),
    not_for=NOT_POLICY,
    background=0.012,
    follows=("reward_constant",),
    instead=NO_REWARD,
)
def reward_flat(run: Run) -> Evidence | None:
    """The mean reward stays at one level, or that of an agent in the later half, no higher than it began.

    Not this when: it rises slowly but clearly; an agent is level in a log that begins in mid-run, where it may have
    learnt before; the log is too short or the reward too noisy to show a rise (then it is unknown); it moved and
    came back. What counts as a move - the noise between records, a quarter of `reward_std`, 5 % of the level,
    whichever is largest - was chosen on simulated curves. The reward of an agent that falls from where it began without
    ever having been higher has made no progress either.
    """
    rewards = averaged(run, reward(run))
    if len(rewards) < LEAST_RECORDS:
        raise CannotTell(f"reward has {counted(len(rewards), 'finite value')} here; {LEAST_RECORDS} are needed")
    spread = median(run["reward_std"].finite.value) if "reward_std" in run and len(run["reward_std"]) else 0.0
    whole = _level(rewards.value, spread)
    if whole.stands and run.kind == "rl" and not from_the_start(rewards):
        raise CannotTell("the log begins in mid-run: the agent may have learnt before")
    if whole.stands:
        return _evidence(run, rewards, whole)
    # Averages over episodes that hold few of them at first, and an agent that explores less and less, move early.
    half = len(rewards) // 2
    late = Series(rewards.name, rewards.step[half:], rewards.value[half:])
    if from_the_start(rewards) and sinks(run, rewards):
        raise CannotTell("it falls bit by bit (reward_sinks)")
    if run.kind == "rl" and from_the_start(rewards) and (sunk := _sunk(run, rewards, whole.move)) is not None:
        return sunk
    if run.kind == "rl" and len(late) >= LEAST_RECORDS and from_the_start(rewards):
        rest = _level(late.value, spread)
        if rest.stands and rest.level <= start_level(rewards.value) + rest.move:
            return _evidence(run, late, rest)
        if _swings(rewards.value):
            return _swinging(run, rewards)
    if whole.hidden:
        raise CannotTell(f"reward is too noisy for {len(rewards)} records to tell a level one from one that moves")
    return None


@dataclass(frozen=True, slots=True)
class _Level:
    """A stretch of rewards: its level, trend and noise, what counts as a move, and whether there was none."""

    level: float
    change: float
    move: float
    around: float
    stands: bool
    hidden: bool


def _level(value: Floats, spread: float) -> _Level:
    level, moved = median(sample(value)), drift(value)
    move = max(noise(value), SHARE_OF_LEVEL * abs(level), SHARE_OF_SPREAD * np.nan_to_num(spread))
    cut = blocks(value, 10)
    around = float(np.ptp(cut.level))
    still = abs(moved.change) <= move and around <= 1.5 * move + 4 * cut.wobble
    doubtful = abs(moved.change) + 2 * moved.error > move
    hidden = still and doubtful and abs(moved.change) <= 2 * moved.error
    return _Level(level, moved.change, move, around, still and not doubtful, hidden)


def _sunk(run: Run, rewards: Series, move: float) -> Evidence | None:
    """Return what is seen of an agent that gets worse and was never better than at first."""
    level, start = blocks(rewards.value, 10).level, start_level(rewards.value)
    highest, end = float(level[1:].max()), float(level[-1])
    moved = drift(rewards.value)
    if highest > max(start, float(rewards.value[0])) + move / 2 or moved.change > 0 or end > start - move / 2:
        return None
    return Evidence(
        f"reward goes from {figure(start)} at {run.step_name} {figure(float(rewards.step[0]))} to {figure(end)}, and "
        f"its level is never above {figure(highest)} after that",
        steps=(float(rewards.step[0]),),
        values={"start": start, "end": end, "highest": highest},
    )


def _swings(value: Floats) -> bool:
    """Say whether an agent's reward swings around where it began, and is at its best nowhere near the end."""
    level, spread, between = blocks(value, 10).level, float(value.var()), noise(value) ** 2
    # Of single episodes, which differ from one to the next about as much as over the whole log, only levels swing.
    swing = float(np.sqrt(spread if between < MOSTLY_NOISE * spread else max(float(level.var()), spread - between)))
    gained = median(sample(value[-(len(value) // 3) :])) - start_level(value)
    best, lately = float(level[:-3].max()), float(level[-3:].max())
    return abs(gained) <= SWINGS * swing and lately <= best + swing / 2


def _swinging(run: Run, rewards: Series) -> Evidence:
    value = rewards.value
    level = blocks(value, 10).level
    low, high, start = float(level.min()), float(level.max()), start_level(value)
    end = median(sample(value[-(len(value) // 3) :]))
    return Evidence(
        f"reward swings between {figure(low)} and {figure(high)}: it begins around {figure(start)} at {run.step_name} "
        f"{figure(float(rewards.step[0]))} and ends around {figure(end)}",
        steps=(float(rewards.step[0]),),
        values={"start": start, "end": end, "lowest": low, "highest": high},
    )


def _evidence(run: Run, rewards: Series, seen: _Level) -> Evidence:
    between = noise(rewards.value)
    return Evidence(
        f"reward stays around {figure(seen.level)} from {run.step_name} {figure(float(rewards.step[0]))} to "
        f"{figure(float(rewards.step[-1]))}: its trend over that stretch is {seen.change:+.2g}, "
        f"the noise between records {between:.2g}",
        steps=(float(rewards.step[0]),),
        values={"level": seen.level, "change": seen.change, "noise": between, "range_of_blocks": seen.around},
    )
