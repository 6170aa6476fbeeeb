"""What does the reward do over the run?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.policy import NOT_POLICY, REWARDS, reward
from mldebug_mcp.measure.reward_course import AT_ONCE, HALF, Standing, floor, lost_at_once, sinks, standing, swings
from mldebug_mcp.measure.rewards import TEXT_POLICIES, averaged, components, from_the_start
from mldebug_mcp.measure.statistics import blocks, departure, drift, end_level, median, noise, start_level
from mldebug_mcp.measure.unknown import require_values
from mldebug_mcp.symptoms.forms import NO_REWARD
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen, told
from mldebug_mcp.text import figure, shorten

STUCK, BELOW_BEST = 0.15, 0.98
"""Share of the records that are one number, and of the best before, below which that lies. Chosen: solved is best."""
LEAST_RECORDS, OF_AGENTS = 20, 10
"""Records after which a reward that has not moved is looked at; one of an agent is the mean of many episodes. Source:
axolotl_stability, after 20 steps."""
LEAST_STEPS = 20
"""Steps for which `rewards/*/mean` stays at 0. Source: axolotl_stability, where the checklist begins beyond 20."""
ZERO, SHARE = 1e-6, 0.95
"""Absolute reward up to which it is zero, and the share of records that are. Chosen: rounding; single ones may earn
something by luck."""
SHARE_OF_RISE, SHARE_OF_LEVEL, SIGMAS = 0.5, 0.3, 6.0
"""Of what was gained that is lost again; of the best level of a language model that never rose; times the noise of
block medians. Chosen: on simulated curves."""


def _evidence(rewards: Series, summary: str, **values: float) -> Evidence:
    return Evidence(summary, steps=(float(rewards.step[0]),), values=values)


def reward_zero(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward is zero from the first record on, or is never above it, and stays for more than 20 steps.

    Not this when: it leaves zero later; single records are zero; one component of several is zero (a strict
    format reward often is), which is a remark.
    """
    zero = np.abs(rewards.value) <= ZERO
    from_the_first = zero.mean() >= SHARE and zero[0]
    never_more = float(rewards.value.max()) <= ZERO and float(zero[len(zero) // 2 :].mean()) >= SHARE
    if not zero[-1] or not (from_the_first or never_more):
        return None
    steps, share = _steps(run, rewards, len(rewards)), float(zero.mean())
    if steps <= LEAST_STEPS or len(rewards) < AT_ONCE:
        raise CannotTell(f"reward is 0 so far, but the log has only {figure(steps)} steps; {LEAST_STEPS} are needed")
    said = f"reward is 0 in {share:.0%} of {len(rewards)} records, from {run.step_name} "
    between = f"{figure(rewards.step[0])} to {figure(rewards.step[-1])}"
    return _evidence(rewards, said + between, share=share, records=len(rewards))


def reward_constant(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward is exactly the same in every record, or from some step on and lower than before.

    Not this when: it is level but varies from batch to batch: then rewards do tell completions apart.
    """
    least, value = OF_AGENTS if run.kind == "rl" else LEAST_RECORDS, float(rewards.value[-1])
    same = np.abs(rewards.value - value) <= 1e-9 * abs(value)
    if len(rewards) < least:
        return None
    if not same.all():
        return _stuck(run, rewards, len(rewards) - int(np.argmin(same[::-1])))
    said = f"reward is exactly {figure(value)} in all {len(rewards)} records"
    return _evidence(rewards, said, value=value, records=len(rewards))


def _stuck(run: Run, rewards: Series, at: int) -> Evidence | None:
    """Say whether the reward is one number from some record on, below what it was: a solved task has its best."""
    value, before, count = float(rewards.value[-1]), rewards.value[:at], len(rewards) - at
    few = count < max(LEAST_RECORDS, STUCK * len(rewards))
    if few or abs(value) <= ZERO or value >= BELOW_BEST * float(before.max()):
        return None
    since = float(rewards.step[at])
    return Evidence(
        f"reward is exactly {figure(value)} in all {count} records from {run.place(since)} on; before it "
        f"was up to {figure(before.max())}",
        steps=(since,),
        values={"value": value, "records": count},
    )


def reward_at_floor(run: Run, rewards: Series) -> Evidence | None:
    """The reward is the price of a step times the length of episodes that all run to one length, the longest.

    What would end them sooner is never reached. Not this when: some episodes end sooner; steps cost different
    amounts.
    """
    lowest = floor(run, rewards) if run.kind == "rl" and len(rewards) >= OF_AGENTS else None
    if lowest is None:
        return None
    said = (
        f"reward is {figure(lowest.price)} per step of episodes of {figure(lowest.length)} steps, the longest on "
        f"record, in {lowest.share:.0%} of {len(rewards)} records"
    )
    return _evidence(rewards, said, per_step=lowest.price, length=lowest.length, share=lowest.share)


def _steps(run: Run, rewards: Series, count: int) -> float:
    """Return the steps that the first `count` records stand for; of epochs and environment steps, the records."""
    if run.step_name != "step" or run.kind == "rl":
        return count
    return float(rewards.step[count - 1]) if run.first_step <= LEAST_STEPS else count


def _leaves_zero(run: Run, rewards: Series) -> Evidence | None:
    length = int(np.argmax(np.abs(rewards.value) > ZERO))
    if length <= AT_ONCE or _steps(run, rewards, length) <= LEAST_STEPS:
        return None
    first, last = float(rewards.step[length]), figure(rewards.step[length - 1])
    said = f"reward is 0 up to {run.step_name} {last} and leaves it at {figure(first)}"
    return Evidence(said, steps=(first,), present=False)


def _component(run: Run) -> Evidence | None:
    parts = components(run)
    dead = [one.name for one in parts if len(one) > LEAST_STEPS and not np.any(np.abs(one.value) > ZERO)]
    if not dead:
        return None
    said = f"{shorten(', '.join(dead), 120)} is 0 in every record ({len(dead)} of {len(parts)} reward components); "
    return Evidence(said + "the total is not", present=False)


def reward_falls(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward falls far below the best level it had, and is still there at the end of the log.

    Not this when: it dips and comes back; the returns of an agent only swing; an agent is worse than random at
    first and learns later.
    """
    value = rewards.value
    if lost_at_once(run, rewards):
        onset = float(rewards.step[int(np.argmax(value < HALF * value[0]))])
        return _fallen(run, float(value[0]), end_level(value), onset, "without having risen before")
    cut = blocks(value, 20)
    best, end = int(np.argmax(cut.level)), end_level(value)
    top = float(cut.level[best])
    rise = top - float(cut.level[: best + 1].min())
    rose = rise > 4 * cut.wobble
    if not rose and run.kind not in TEXT_POLICIES:
        return None
    needed = max(SHARE_OF_RISE * rise if rose else SHARE_OF_LEVEL * abs(top), SIGMAS * cut.wobble, 1e-9)
    tail = value[-max(3, len(value) // 10) :]
    if top - end < needed or float(np.quantile(tail, 0.8)) > top - needed / 2:
        return None
    after = int(cut.first[best])
    onset = float(rewards.step[after + departure(value[after:], end)])
    before = f"after it had risen from {figure(top - rise)}" if rose else "without having risen before"
    return _fallen(run, top, end, onset, before)


def _fallen(run: Run, top: float, end: float, onset: float, before: str) -> Evidence:
    return Evidence(
        f"reward falls from {figure(top)} to {figure(end)} from {run.place(onset)} on, {before}, "
        "and stays down to the end of the log",
        steps=(onset,),
        values={"best": top, "end": end, "fall": top - end},
    )


def reward_sinks(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward falls bit by bit from the start of the run on, and never was higher.

    So it does where training goes the wrong way. Not this when: the agent acts less and less at random, or may.
    """
    if not from_the_start(rewards) or not sinks(run, rewards):
        return None
    start, end = start_level(rewards.value), end_level(rewards.value)
    said = f"reward goes from {figure(start)} at {run.place(rewards.step[0])} to {figure(end)}"
    return _evidence(rewards, f"{said}, and never was higher", start=start, end=end)


def _spread(run: Run) -> float:
    return median(run["reward_std"].finite.value) if "reward_std" in run and len(run["reward_std"]) else 0.0


def reward_flat(run: Run, rewards: Series) -> Evidence | None:
    """The mean reward stays at one level, or that of an agent in the later half, no higher than it began.

    What counts as a move is the noise between records, a quarter of `reward_std` or 5 % of the level.
    Not this when: it rises clearly, or moved and came back; an agent's log begins in mid-run; too few records.
    """
    whole, agent = standing(rewards.value, _spread(run)), run.kind == "rl"
    if whole.stands and agent and not from_the_start(rewards):
        raise CannotTell("the log begins in mid-run: the agent may have learnt before")
    if whole.stands:
        return _level(run, rewards, whole)
    if agent and from_the_start(rewards) and (seen := _of_agent(run, rewards, whole)) is not None:
        return seen
    if whole.hidden:
        raise CannotTell(f"reward is too noisy for {len(rewards)} records to tell a level one from one that moves")
    return None


def _of_agent(run: Run, rewards: Series, whole: Standing) -> Evidence | None:
    """Return what is seen of an agent that was never better than at first, is level only later, or swings.

    Averages over episodes that hold few of them at first, and an agent that explores less and less, move early.
    """
    value = rewards.value
    level, start, end = blocks(value, 10).level, start_level(value), end_level(value)
    lowest, highest = float(level.min()), float(level.max())
    sunk = float(level[1:].max()) <= max(start, float(value[0])) + whole.move / 2 and drift(value).change <= 0
    if (sunk and float(level[-1]) <= start - whole.move / 2) or swings(value):
        said = f"reward swings between {figure(lowest)} and {figure(highest)}: it " if swings(value) else "reward "
        ends = f"goes from {figure(start)} at {run.place(rewards.step[0])} to {figure(end)}"
        return _evidence(rewards, said + ends, start=start, end=end, lowest=lowest, highest=highest)
    late = rewards.where(np.arange(len(rewards)) >= len(rewards) // 2)
    if len(late) < LEAST_RECORDS:
        return None
    rest = standing(late.value, _spread(run))
    return _level(run, late, rest) if rest.stands and rest.level <= start + rest.move else None


def _level(run: Run, rewards: Series, seen: Standing) -> Evidence:
    between = noise(rewards.value)
    said = (
        f"reward stays around {figure(seen.level)} from {run.place(rewards.step[0])} to {figure(rewards.step[-1])}: "
        f"its trend over that stretch is {seen.change:+.2g}, the noise between records {between:.2g}"
    )
    return _evidence(rewards, said, level=seen.level, change=seen.change, noise=between, range_of_blocks=seen.around)


@question(
    outcome_of(reward_flat, 0.012, "axolotl_stability", follows=("reward_constant",), instead=NO_REWARD),
    outcome_of(
        reward_constant, 0.002, "axolotl_stability", of="reward_flat", follows=("reward_zero", "reward_at_floor")
    ),
    outcome_of(reward_zero, 0.003, "axolotl_stability", of="reward_flat"),
    outcome_of(reward_at_floor, 0.002, of="reward_flat", needs=("episode_length",)),
    outcome_of(reward_falls, 0.006, "remote_gpu_trainer"),
    outcome_of(reward_sinks, 0.003),
    any_of=REWARDS,
    not_for=NOT_POLICY,
)
def reward_course(run: Run) -> Answers:
    """One value only; else falling or level."""
    rewards = reward(run)
    if not len(rewards):
        raise CannotTell("no finite reward")
    one_value = told(by_outcome((reward_zero, reward_constant, reward_at_floor), run, rewards))
    seen = next((one for one in one_value.values() if isinstance(one, Evidence)), None)
    mean = averaged(run, rewards)
    if seen is not None:
        level = _level(run, mean, standing(mean.value, _spread(run))) if len(mean) >= LEAST_RECORDS else seen
        return {"reward_flat": level, **one_value}
    answers = first_seen(
        by_outcome((reward_sinks, reward_falls, reward_flat), run, require_values(mean, LEAST_RECORDS, "reward"))
    )
    remark = None if answers else _leaves_zero(run, rewards) or _component(run)
    return answers if remark is None else {"reward_flat": remark}
