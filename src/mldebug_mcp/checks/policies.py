"""What questions about policies share.

These are the rewards, the entropy, the distance from the reference, and the course of the reward.
"""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.checks.check import CannotTell, known
from mldebug_mcp.checks.curve import (
    CLEAR_SIGMAS,
    LEAST_FOR_LEVEL,
    blocks,
    drift,
    edge_width,
    end_level,
    finite_of,
    highest_level,
    monotone,
    noise,
    sample,
    start_level,
)
from mldebug_mcp.core.arrays import median, median_gap
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import JUDGED
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.settings import POLICIES

# What a policy earns: the rewards that a run logs, as means over stretches, with their trend.


TEXT_POLICIES = frozenset({"grpo", "ppo"})
"""Kinds whose policy is a language model: entropy is per token, and thresholds from GRPO practice apply."""
REWARD_STRETCHES = 100
"""Means of single episodes' rewards that show a course: chosen by hand."""
MAX_MISSING_START_SHARE = 0.05
"""Share of a run that may be missing before a log that begins where the run does. Chosen: by hand."""
MIN_LEVEL_CHANGE_SHARE = 0.2
"""Of the level at the start: a smaller trend over the log is not a change. Chosen: by hand."""
MIN_CHANGE_STANDARD_ERRORS = 5.0
"""... nor is one of fewer of its standard errors. Chosen: those of a fixed policy change by less."""
LEAST_OF_A_RISE = 10
"""Records of a reward that show a rise. Chosen: by hand."""
MIN_REWARD_RISE_ERRORS = 4.0
"""Standard errors by which a reward rises. Chosen: by hand."""
MAX_RISE_SHARE_LOST = 0.25
"""Share of the rise that a reward may lose again. Chosen: by hand."""
MIN_RISE_SHARE_SUNK = 0.1
"""Share of its rise that a reward has lost which has been falling since its best. Chosen: by hand."""
_SCORED_BY = (
    Quantity.REWARD, Quantity.SCORE, Quantity.SUCCESS_RATE, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY,
    Quantity.REWARD_ACCURACY,
)  # fmt: skip
"""What a policy is scored by at evaluation."""
TOP_REWARD_GAP_SHARE = 0.02
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

    It rises by more than its noise, and ends near its best, or below it without falling further.
    """
    rewards = _rewards_of_policy(run)
    if rewards is None:
        return None
    value = rewards.value
    start, end, (best, at), clear = start_level(value), end_level(value), highest_level(value), _clear_rise(value)
    if end - start <= clear or best - end > MAX_RISE_SHARE_LOST * (best - start):
        return None
    if best - end > max(clear, MIN_RISE_SHARE_SUNK * (best - start)) and len(value) - at >= LEAST_OF_A_RISE:
        change, error = drift(value[at:])
        if change < -MIN_REWARD_RISE_ERRORS * error:
            return None
    return start, end


def best_of_rise(run: Run) -> tuple[float, float] | None:
    """Return the first and the best level of the reward of a policy that has learnt, whatever it lost later, or None.

    The best level is above the first by as much again, and by more than its noise.
    """
    rewards = _rewards_of_policy(run)
    if rewards is None:
        return None
    start, (best, _) = start_level(rewards.value), highest_level(rewards.value)
    return (start, best) if best - start > max(abs(start), _clear_rise(rewards.value)) else None


def _rewards_of_policy(run: Run) -> Series | None:
    rewards = rewards_of(run) if run.kind in POLICIES else None
    return None if rewards is None or len(rewards) < LEAST_OF_A_RISE else rewards


def _clear_rise(value: Floats) -> float:
    """Return the least rise of a reward that is beyond its noise."""
    return MIN_REWARD_RISE_ERRORS * noise(value) / math.sqrt(edge_width(len(value)))


def components(run: Run) -> list[Series]:
    """Return the mean of each reward that is added up, by name: `rewards/format/mean`."""
    found = run.with_role(Quantity.REWARD, phase="train", parts=True)
    means = (
        series for series in found if series.role is not None and series.role.part and series.role.statistic == "mean"
    )
    return sorted(means, key=lambda mean: mean.name)


def averaged(run: Run, rewards: Series) -> Series:
    """Return the rewards of a classic agent as the means over episodes that are logged next to single ones.

    Elsewhere they are means over stretches, `REWARD_STRETCHES` of them, where there are many. Single episodes scatter,
    and where most bring nothing a median would show nothing.
    """
    if run.kind != "rl":
        return rewards
    if rewards.role is not None and not rewards.role.statistic:
        for series in run.with_role(Quantity.REWARD, phase="train"):
            is_mean = series.role is not None and series.role.statistic in ("mean", "ema")
            if is_mean and len(series.finite) == len(rewards):
                return series.finite
    if len(rewards) < 2 * REWARD_STRETCHES:
        return rewards
    first = np.linspace(0, len(rewards), REWARD_STRETCHES, endpoint=False).astype(np.int64)
    counts = np.diff(np.append(first, len(rewards)))
    return Series(rewards.name, rewards.step[first], np.add.reduceat(rewards.value, first) / counts)


def held_out_scores(run: Run, least: int) -> list[Series]:
    """Return what evaluation is scored by, such as `eval_reward`, where it has so many finite values."""
    scores = {series.name: series.finite for series in run.with_role(*_SCORED_BY, phase="eval", parts=True)}
    return [scores[name] for name in run.series if name in scores and len(scores[name]) >= least]


def judged_scores(run: Run, least: int) -> list[Series]:
    """Return what people, a judge or a better reward model score answers by; a judged reward where no such score is.

    What is logged as often as the reward may be a term of it.
    """
    most = len(reward(run)) // 2
    for quantity in (Quantity.SCORE, Quantity.REWARD):
        found = [series for series in run.with_role(quantity, parts=True) if least <= len(series.finite) <= most]
        judged = [each.finite for each in found if each.role and not JUDGED.isdisjoint(each.role.part.split())]
        if judged:
            return judged
    return []


def scores_beside(run: Run, least: int) -> list[Series]:
    """Return what the same answers are scored by besides the reward, as medians over stretches, in so many records."""
    found = run.with_role(Quantity.SCORE, Quantity.SUCCESS_RATE, Quantity.ACCURACY, phase="train", parts=True)
    whole = [series.finite for series in found if len(series.finite) >= least]
    cut = [blocks(series.value, 12) for series in whole]
    return [Series(series.name, series.step[of.first], of.level) for series, of in zip(whole, cut, strict=True)]


def from_the_start(rewards: Series) -> bool:
    """Say whether a log begins where the run does: within its first twentieth, or a few records of its start."""
    spacing = median_gap(rewards.step)
    return float(rewards.step[0]) <= max(MAX_MISSING_START_SHARE * float(rewards.step[-1]), 5 * spacing)


def trend(series: Series) -> float:
    """Return how far a metric moves over the log, 0 where that is not clearly a change."""
    if len(series) < LEAST_FOR_LEVEL:
        return 0.0
    change, error = drift(series.value)
    least = max(MIN_LEVEL_CHANGE_SHARE * abs(start_level(series.value)), MIN_CHANGE_STANDARD_ERRORS * error)
    return change if abs(change) > least else 0.0


def most_earned(rewards: Series) -> float | None:
    """Return the most that can be earned, where the reward has come to it: a whole number that it never exceeds."""
    end = end_level(rewards.value)
    most = round(end)
    if (
        most < 1
        or abs(end - most) > TOP_REWARD_GAP_SHARE * most
        or float(rewards.value.max()) > (1 + TOP_REWARD_GAP_SHARE) * most
    ):
        return None
    return float(most)


def earns_all_at_once(rewards: Series) -> bool:
    """Say whether the reward is near the most that there is to earn from the first record on, which is the lowest."""
    return most_earned(rewards) is not None and float(rewards.value[0]) < float(rewards.value[1:].min(initial=np.inf))


def seems_to_learn(run: Run) -> bool:
    """Say whether the reward rises over the log by more than chance does as a rule."""
    rewards = rewards_of(run)
    if rewards is None or len(rewards) < LEAST_FOR_LEVEL:
        return False
    change, error = drift(averaged(run, rewards).value)
    return change > 2 * error


# What questions of policies share: which runs have one at all, and its reward and entropy by whatever name.


REWARDS = (Quantity.REWARD,)
"""The reward, or its components where only they are logged."""
ENTROPIES = ("entropy", "entropy_loss", "loss_ent")
"""Policy entropy. What is called `entropy_loss` is minus the entropy where it is negative; PPO1 has `loss_ent`."""
NOT_POLICY = ("pretraining", "sft", "preference", "supervised", "diffusion")
"""Kinds of run without a policy. TRL's SFT logs a token entropy too: it means something else there."""
NEAR_BEST = 0.05
"""Of the way that the return has come: so near to its best it has come there. Chosen: by hand."""
NEARLY_THEN = 0.1
"""Below the most that can be earned: the reward when entropy was gone. Chosen: a wrong answer in ten."""
ENTROPY_GONE = 0.1
"""Of the entropy at the start: below it a language model has all but stopped trying. Chosen: by hand."""


def reward(run: Run) -> Series:
    """Return the finite rewards: the total, or the sum of its components where each record has them all.

    Raises:
        CannotTell: neither is logged.
    """
    return known(rewards_of(run), "not logged: the reward in training")


def entropy(run: Run) -> Series:
    """Return the finite policy entropies.

    Raises:
        CannotTell: the run is not known to train a policy.
    """
    require_policy(run)
    name = next(name for name in ENTROPIES if name in run)
    series = run[name].finite
    if name == "entropy_loss" and len(series) and median(series.value) < 0:
        return Series("entropy", series.step, -series.value)
    return series


def require_policy(run: Run) -> None:
    """Raise CannotTell unless the run trains a policy: entropy and KL mean other things elsewhere."""
    if run.kind == "unknown" and rewards_of(run) is None:
        raise CannotTell("it is not known whether this run trains a policy: no reward is logged")


def is_solved(run: Run) -> bool:
    """Say whether the agent of a game has come to its best return, and stays there."""
    rewards = rewards_of(run)
    if rewards is None:
        return False
    if run.kind in TEXT_POLICIES:
        return _earns_all_first(rewards, entropy(run))
    if not seems_to_learn(run):
        return False
    level = blocks(averaged(run, rewards).value, 10).level
    return float(level[-1]) >= float(level.max()) - NEAR_BEST * float(np.ptp(level))


def _earns_all_first(rewards: Series, chance: Series) -> bool:
    """Say whether the reward has come to a whole number, the most that it ever is, before entropy had gone.

    What a language model no longer tries is lost for other prompts: so only what was learnt before counts as solved.
    """
    most = most_earned(rewards)
    if most is None:
        return False
    gone = np.flatnonzero(chance.value < ENTROPY_GONE * start_level(chance.value))
    then = rewards.at(float(chance.step[gone[0]])) if len(gone) else None
    return then is not None and then >= (1 - NEARLY_THEN) * most > float(rewards.value[0])


# How far a policy is from its reference, or from the policy before an update, against what is usual.


TO_REFERENCE = 2.0
"""Axolotl, for GRPO: 0 to 0.5 is healthy, above 2 the policy has gone too far. Per token."""
WHOLE_TEXT = 40.0
"""Nats per completion, over whose tokens TRL's PPO sums. Chosen: its controller aims at some 6 (remote_gpu_trainer)."""
PER_UPDATE = 0.1
"""Nats, of one update. Chosen: between what Schulman calls small, 0.01, and really big, 10 (schulman_nuts_talk)."""
MIN_DIVERGENCE_RECORDS = 5
"""Records of a divergence without which it is not known that a policy stays near. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A divergence as logged.

    Args:
        series: Its finite values, at least one.
        what: From what the policy diverges.
        limit: What it exceeds only where something is wrong.
        of_update: Whether it is that of one update.
    """

    series: Series
    what: str
    limit: float
    of_update: bool


def divergences(run: Run) -> list[Divergence]:
    """Return the divergences that a run logs, that from the reference first; classic RL has no reference."""
    to_reference = {"ppo": WHOLE_TEXT, "rl": PER_UPDATE}.get(run.kind, TO_REFERENCE)
    limits = {"kl": to_reference, "approx_kl": PER_UPDATE, "loss_kl": PER_UPDATE}
    found = []
    for name, limit in limits.items():
        if name in run and len(series := run[name].finite):
            of_update = limit == PER_UPDATE
            what = "of an update" if of_update else "to the reference"
            found.append(Divergence(series, what, limit, of_update))
    return found


def stays_near(run: Run) -> bool:
    """Say whether the policy is known to stay near: enough is logged, and not one record exceeds its limit."""
    logged = divergences(run)
    return bool(logged) and all(
        len(divergence.series) >= MIN_DIVERGENCE_RECORDS and float(divergence.series.value.max()) <= divergence.limit
        for divergence in logged
    )


def cost(run: Run, kl: float) -> float | None:
    """Return what a divergence from the reference costs in reward, by the coefficient in the settings."""
    beta = run.setting("beta")
    return None if beta is None or not np.isfinite(beta) else beta * kl


# The course of the reward: whether it stands, swings, sinks or is as low as it can be.


SHARE_OF_LEVEL = 0.05
"""Of the level: a smaller move does not count as progress. Chosen: on simulated curves."""
SHARE_OF_SPREAD = 0.25
"""Of the spread within groups of completions: a smaller move is not progress. Chosen: on simulated curves."""
MAX_GAIN_SWINGS = 1.25
"""Standard deviations of its swing by which a reward that only swings ends above or below its start, at most. Chosen: a
steady rise ends 2.9 of the whole curve above it."""
MOSTLY_NOISE = 0.7
"""Share of variance between neighbours in rewards of single episodes. Chosen: on simulated rises under noise."""
MAX_SINKING_CORRELATION = -0.6
"""Rank correlation of block medians with time, at most, of rewards that sink. Chosen: by hand."""
SINKS_BY = 0.2
"""The fall, of the level at the start ... Chosen: by hand."""
OF_A_POLICY = ("entropy", "entropy_loss", "loss_ent", "policy_loss", "approx_kl", "clip_ratio")
"""What is logged of a policy that is a network; agents without one mostly begin at random, logged or not."""
EXPLORATION = ("exploration_rate", "rollout/exploration_rate", "epsilon", "Epsilon", "eps")
"""The share of actions taken at random in Q-learning."""
MAX_FINAL_RANDOM_SHARE = 0.06
"""A first share of random actions that ends a schedule. Source: the final 0.05 of Stable-Baselines3's DQN."""
SOON = 0.06
"""Share of the steps by which random actions have ended too soon. Chosen: Stable-Baselines3 takes a tenth by default,
and healthy agents of the data set a third and more."""
MAX_NO_SUCCESS_RATE = 0.02
"""A rate of success that is none. Chosen: by hand."""
MAX_FIRST_RECORDS = 3
"""First records within which a reward is lost. Chosen: by hand."""
MAX_LATER_REWARD_SHARE = 0.5
"""Share of the first reward that no later one brings. Chosen: by hand."""
MAX_REWARD_SPREAD_RATIO = 3.0
"""Times the mean that the spread may be for a reward to be no luck. Chosen: a tenth of answers are right."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A stretch of rewards: its level, trend and noise, what counts as a move, and whether there was none.

    Args:
        level: Its median.
        change: Its trend over the stretch.
        move: What counts as a move: the noise between records, a share of the level, or of the spread within groups.
        around: The range of its levels.
        stands: Whether it did not move.
        hidden: Whether it is too noisy to tell.
    """

    level: float
    change: float
    move: float
    around: float
    stands: bool
    hidden: bool


def standing(value: Floats, spread: float) -> Standing:
    """Measure a stretch of rewards; `spread` is that within groups, 0 where there are none."""
    level, (change, error) = median(sample(value)), drift(value)
    move = max(noise(value), SHARE_OF_LEVEL * abs(level), SHARE_OF_SPREAD * np.nan_to_num(spread))
    cut = blocks(value, 10)
    around = float(np.ptp(cut.level))
    still = abs(change) <= move and around <= 1.5 * move + 4 * cut.wobble
    doubtful = abs(change) + 2 * error > move
    hidden = still and doubtful and abs(change) <= 2 * error
    return Standing(level, change, move, around, still and not doubtful, hidden)


def swings(value: Floats) -> bool:
    """Say whether an agent's reward swings around where it began, and is at its best nowhere near the end."""
    level, spread, between = blocks(value, 10).level, float(value.var()), noise(value) ** 2
    # Of single episodes, which differ from one to the next about as much as over the whole log, only levels swing.
    swing = float(np.sqrt(spread if between < MOSTLY_NOISE * spread else max(float(level.var()), spread - between)))
    gained = median(sample(value[-(len(value) // 3) :])) - start_level(value)
    best, lately = float(level[:-3].max()), float(level[-3:].max())
    return abs(gained) <= MAX_GAIN_SWINGS * swing and lately <= best + swing / 2


def explores_less(run: Run) -> bool:
    """Say whether an agent acts less and less at random, or may do so: one of whose policy nothing is logged."""
    if any(name in run and float(np.ptp(run[name].finite.value)) > 0 for name in EXPLORATION):
        return True
    return run.kind not in TEXT_POLICIES and not any(name in run for name in OF_A_POLICY)


def sinks(run: Run, rewards: Series) -> bool:
    """Say whether rewards, from the start of a run on, fall bit by bit and never were higher."""
    cut = blocks(rewards.value, 20)
    if len(cut.level) < 3 or explores_less(run) or monotone(cut.level) > MAX_SINKING_CORRELATION:
        return False
    begin, end = start_level(rewards.value), end_level(rewards.value)
    least = max(SINKS_BY * abs(begin), CLEAR_SIGMAS * cut.wobble)
    return float(cut.level[2:].max()) <= begin and begin - end > least


def lost_at_once(run: Run, rewards: Series) -> bool:
    """Say whether a policy never again earns half of what it earned before its first updates, by more than luck."""
    spread = finite_of(run, "reward_std").value
    first, rest = float(rewards.value[0]), rewards.value[MAX_FIRST_RECORDS:]
    lost = run.kind in TEXT_POLICIES and first > 0 and float(rest.max()) < MAX_LATER_REWARD_SHARE * first
    return lost and len(spread) > 0 and float(spread[0]) <= MAX_REWARD_SPREAD_RATIO * first


def chance_ends(run: Run) -> tuple[Series, float] | None:
    """Return the share of random actions and the step, one of the first, from which on hardly any is; else None."""
    share = next((run[name].finite for name in EXPLORATION if name in run), None)
    if share is None or not len(share):
        return None
    many = np.flatnonzero(share.value > MAX_FINAL_RANDOM_SHARE)
    first = int(many[-1]) + 1 if len(many) else 0
    if first == len(share) or share.step[first] > SOON * run.last_step:
        return None
    return share, float(share.step[first])


def never_succeeds(run: Run, least: int = 1) -> list[Series]:
    """Return the rates of success of so many records, if all of them are none over the later half; else []."""
    counted = [series.finite for series in run.with_role(Quantity.SUCCESS_RATE, parts=True)]
    rates = [series for series in counted if len(series) >= least and float(series.value.max()) <= 1]
    return rates if all(float(rate.value[len(rate) // 2 :].max()) <= MAX_NO_SUCCESS_RATE for rate in rates) else []
