"""What does the reward do over the run?"""

from __future__ import annotations

from inspect import cleandoc

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.policy import NOT_POLICY, REWARDS, reward
from mldebug_mcp.measure.reward_course import Standing, floor, standing, swings
from mldebug_mcp.measure.rewards import TEXT_POLICIES, averaged, components, from_the_start
from mldebug_mcp.measure.statistics import blocks, departure, drift, end_level, median, noise, sample, start_level
from mldebug_mcp.symptoms.forms import NO_REWARD
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import counted, figure, shorten

LEAST_RECORDS = 20
"""Records after which a reward that has not moved is looked at. Source: axolotl_stability, after 20 steps."""
OF_AGENTS = 10
"""A record of an agent is the mean of many episodes. Chosen: by hand."""
LEAST_STEPS = 20
"""Steps for which `rewards/*/mean` stays at 0. Source: axolotl_stability, where the reward checklist begins beyond
20."""
ZERO = 1e-6
"""Absolute reward up to which it is zero. Chosen: rounding."""
SHARE = 0.95
"""Share of the records that are zero. Chosen: single ones may earn something by luck."""
SHARE_OF_RISE = 0.5
"""At least half of what was gained is lost again."""
SHARE_OF_LEVEL = 0.3
"""Of the best level that a language model loses which never rose: it begins with what it was given. Chosen: on
simulated curves."""
AT_ONCE = 3
"""First records, within which a reward is lost at once, and which zeros must outlast. Chosen: by hand."""
HALF = 0.5
OFTEN = 3.0
"""Lost at once: no record after the first three brings half of the first. That was more than luck, as the spread
between completions was at most three times their mean: of right and wrong answers, a tenth were right. Chosen: by
hand."""
SIGMAS = 6.0
"""Times the noise of block medians that the reward falls by. Chosen: by hand."""


@question(
    Outcome(
        "reward_flat",
        cleandoc("""Reward does not move.

        The mean reward stays at one level, or that of an agent in the later half, no higher than it began.
        Not this when: it rises slowly but clearly; an agent is level in a log that begins in mid-run, where it may
        have learnt before; the log is too short or the reward too noisy to show a rise (then it is unknown); it
        moved and came back. What counts as a move - the noise between records, a quarter of `reward_std`, 5 % of the
        level, whichever is largest - was chosen on simulated curves. The reward of an agent that falls from where it
        began without ever having been higher has made no progress either."""),
        background=0.012,
        sources=("axolotl_stability",),
        follows=("reward_constant",),
        instead=NO_REWARD,
    ),
    Outcome(
        "reward_constant",
        cleandoc("""Reward takes one value only.

        The mean reward is exactly the same in every record.
        Not this when: it is level but varies from batch to batch: then rewards do tell completions apart."""),
        background=0.002,
        sources=("axolotl_stability",),
        of="reward_flat",
        follows=("reward_zero", "reward_at_floor"),
    ),
    Outcome(
        "reward_zero",
        cleandoc("""Reward stays at zero.

        The mean reward is zero from the first record on and stays there for more than 20 steps.
        Not this when: it leaves zero later; single records are zero; one component of several is zero (a strict
        format reward often is), which is a remark."""),
        background=0.003,
        sources=("axolotl_stability",),
        of="reward_flat",
    ),
    Outcome(
        "reward_at_floor",
        cleandoc("""Reward stays at the least that an agent can earn.

        It is the price of a step, the same for all, times the length of episodes that all run to one length: what
        would end them sooner is never reached.
        Not this when: some episodes end sooner; steps cost different amounts."""),
        background=0.002,
        of="reward_flat",
        needs=("episode_length",),
    ),
    Outcome(
        "reward_falls",
        cleandoc("""Reward drops after it had risen.

        The mean reward falls far below the best level it had, and is still there at the end of the log.
        Not this when: it dips and comes back; the returns of an agent only swing; an agent is worse than random at
        first and learns later. The shares were chosen on simulated curves."""),
        background=0.006,
        sources=("remote_gpu_trainer",),
    ),
    any_of=REWARDS,
    not_for=NOT_POLICY,
)
def reward_course(run: Run) -> Answers:
    """One value only; else sinking, falling or level."""
    rewards = reward(run)
    if not len(rewards):
        raise CannotTell("no finite reward")
    special = _special(run, rewards)
    if special:
        first = next(iter(special.values()))
        return {"reward_flat": _flat_seen(run, rewards) or first, **special}
    rewards = averaged(run, rewards)
    if len(rewards) < LEAST_RECORDS:
        raise CannotTell(f"reward has {counted(len(rewards), 'finite value')} here; {LEAST_RECORDS} are needed")
    answers: dict[str, Evidence | CannotTell] = {}
    if (falls := _falls(run, rewards)) is not None:
        return {**answers, "reward_falls": falls}
    try:
        flat = _flat(run, rewards)
    except CannotTell as why:
        return {**answers, "reward_flat": why}
    remark = flat or _leaves_zero(run, reward(run)) or _component(run)
    return answers if remark is None else {**answers, "reward_flat": remark}


def _special(run: Run, rewards: Series) -> dict[str, Evidence]:
    """Return the ways in which a reward has one value only."""
    zero, constant = _zero(run, rewards), _constant(run, rewards)
    lowest = floor(run, rewards) if run.kind == "rl" and len(rewards) >= OF_AGENTS else None
    found = {"reward_zero": zero, "reward_constant": constant}
    if lowest is not None:
        found["reward_at_floor"] = Evidence(
            f"reward is {figure(lowest.price)} per step of episodes of {figure(lowest.length)} steps, the longest on "
            f"record, in {lowest.share:.0%} of {len(rewards)} records",
            steps=(float(rewards.step[0]),),
            values={"per_step": lowest.price, "length": lowest.length, "share": lowest.share},
        )
    return {name: evidence for name, evidence in found.items() if evidence is not None}


def _constant(run: Run, rewards: Series) -> Evidence | None:
    least = OF_AGENTS if run.kind == "rl" else LEAST_RECORDS
    if len(rewards) < least or float(np.ptp(rewards.value)) > 1e-9 * abs(float(rewards.value[0])):
        return None
    return Evidence(
        f"reward is exactly {figure(float(rewards.value[0]))} in all {len(rewards)} records",
        steps=(float(rewards.step[0]),),
        values={"value": float(rewards.value[0]), "records": len(rewards)},
    )


def _zero(run: Run, rewards: Series) -> Evidence | None:
    zero = np.abs(rewards.value) <= ZERO
    if not (zero.mean() >= SHARE and zero[-1] and zero[0]):
        return None
    steps = _steps(run, rewards, len(rewards))
    if steps <= LEAST_STEPS or len(rewards) < AT_ONCE:
        raise CannotTell(f"reward is 0 so far, but the log has only {figure(steps)} steps; {LEAST_STEPS} are needed")
    share = float(zero.mean())
    return Evidence(
        f"reward is 0 in {share:.0%} of {len(rewards)} records, from {run.step_name} "
        f"{figure(float(rewards.step[0]))} to {figure(float(rewards.step[-1]))}",
        steps=(float(rewards.step[0]),),
        values={"share": share, "records": len(rewards)},
    )


def _steps(run: Run, rewards: Series, count: int) -> float:
    """Return the steps that the first `count` records stand for; of epochs and environment steps, the records."""
    if run.step_name != "step" or run.kind == "rl":
        return count
    return float(rewards.step[count - 1]) if run.first_step <= LEAST_STEPS else count


def _leaves_zero(run: Run, rewards: Series) -> Evidence | None:
    length = int(np.argmax(np.abs(rewards.value) > ZERO))
    if length <= AT_ONCE or _steps(run, rewards, length) <= LEAST_STEPS:
        return None
    first = float(rewards.step[length])
    return Evidence(
        f"reward is 0 up to {run.step_name} {figure(float(rewards.step[length - 1]))} and leaves it at {figure(first)}",
        steps=(first,),
        present=False,
    )


def _component(run: Run) -> Evidence | None:
    parts = components(run)
    dead = [one.name for one in parts if len(one) > LEAST_STEPS and not np.any(np.abs(one.value) > ZERO)]
    if not dead:
        return None
    return Evidence(
        f"{shorten(', '.join(dead), 120)} is 0 in every record ({len(dead)} of {len(parts)} reward components); "
        "the total is not",
        present=False,
    )


def _falls(run: Run, rewards: Series) -> Evidence | None:
    value = rewards.value
    if run.kind in TEXT_POLICIES and (lost := _lost_at_once(run, rewards)) is not None:
        return lost
    cut = blocks(value, 20)
    best = int(np.argmax(cut.level))
    top, end = float(cut.level[best]), end_level(value)
    rise = top - float(cut.level[: best + 1].min())
    rose = rise > 4 * cut.wobble
    if not rose and run.kind not in TEXT_POLICIES:
        return None
    needed = max(SHARE_OF_RISE * rise if rose else SHARE_OF_LEVEL * abs(top), SIGMAS * cut.wobble, 1e-9)
    fall = top - end
    tail = value[-max(3, len(value) // 10) :]
    if fall < needed or float(np.quantile(tail, 0.8)) > top - needed / 2:
        return None
    after = int(cut.first[best])
    onset = float(rewards.step[after + departure(value[after:], end)])
    before = f"after it had risen from {figure(top - rise)}" if rose else "without having risen before"
    return Evidence(
        f"reward falls from {figure(top)} to {figure(end)} from {run.step_name} {figure(onset)} on, {before}, "
        "and stays down to the end of the log",
        steps=(onset,),
        values={"best": top, "end": end, "rise_before": rise, "fall": fall},
    )


def _lost_at_once(run: Run, rewards: Series) -> Evidence | None:
    """Return what is seen of a policy that never again earns what it earned before its first updates."""
    first, rest = float(rewards.value[0]), rewards.value[AT_ONCE:]
    if first <= 0 or float(rest.max()) >= HALF * first or "reward_std" not in run:
        return None
    spread = run["reward_std"].finite.value
    if not len(spread) or float(spread[0]) > OFTEN * first:
        return None
    at, end = float(rewards.step[int(np.argmax(rewards.value < HALF * first))]), end_level(rewards.value)
    return Evidence(
        f"reward falls from {figure(first)} to {figure(end)} at {run.step_name} {figure(at)}, without having risen "
        "before, and stays down to the end of the log",
        steps=(at,),
        values={"best": first, "end": end, "fall": first - end},
    )


def _flat_seen(run: Run, rewards: Series) -> Evidence | None:
    """Return what is seen of a level reward; None where too little is seen to say more than its one value."""
    rewards = averaged(run, rewards)
    if len(rewards) < LEAST_RECORDS:
        return None
    return _evidence(run, rewards, standing(rewards.value, _spread(run)))


def _spread(run: Run) -> float:
    return median(run["reward_std"].finite.value) if "reward_std" in run and len(run["reward_std"]) else 0.0


def _flat(run: Run, rewards: Series) -> Evidence | None:
    whole = standing(rewards.value, _spread(run))
    if whole.stands and run.kind == "rl" and not from_the_start(rewards):
        raise CannotTell("the log begins in mid-run: the agent may have learnt before")
    if whole.stands:
        return _evidence(run, rewards, whole)
    if run.kind == "rl" and from_the_start(rewards) and (seen := _of_agent(run, rewards, whole)) is not None:
        return seen
    if whole.hidden:
        raise CannotTell(f"reward is too noisy for {len(rewards)} records to tell a level one from one that moves")
    return None


def _of_agent(run: Run, rewards: Series, whole: Standing) -> Evidence | None:
    """Return what is seen of an agent that is level only later, or swings.

    Averages over episodes that hold few of them at first, and an agent that explores less and less, move early.
    """
    if (sunk := _sunk(run, rewards, whole.move)) is not None:
        return sunk
    half = len(rewards) // 2
    late = Series(rewards.name, rewards.step[half:], rewards.value[half:])
    if len(late) < LEAST_RECORDS:
        return None
    rest = standing(late.value, _spread(run))
    if rest.stands and rest.level <= start_level(rewards.value) + rest.move:
        return _evidence(run, late, rest)
    return _swinging(run, rewards) if swings(rewards.value) else None


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


def _evidence(run: Run, rewards: Series, seen: Standing) -> Evidence:
    between = noise(rewards.value)
    return Evidence(
        f"reward stays around {figure(seen.level)} from {run.step_name} {figure(float(rewards.step[0]))} to "
        f"{figure(float(rewards.step[-1]))}: its trend over that stretch is {seen.change:+.2g}, "
        f"the noise between records {between:.2g}",
        steps=(float(rewards.step[0]),),
        values={"level": seen.level, "change": seen.change, "noise": between, "range_of_blocks": seen.around},
    )
