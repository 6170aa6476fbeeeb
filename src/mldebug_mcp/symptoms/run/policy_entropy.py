"""How much is left to chance?"""

from __future__ import annotations

from inspect import cleandoc

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.policy import ENTROPIES, NOT_POLICY, entropy
from mldebug_mcp.measure.reward_course import EXPLORATION
from mldebug_mcp.measure.rewards import TEXT_POLICIES, averaged, rewards_of, seems_to_learn
from mldebug_mcp.measure.statistics import Blocks, blocks, departure, end_level, start_level
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import counted, figure

COLLAPSED = 0.01
"""Nats per token below which a policy has collapsed; 0.05 to 0.5 is healthy. Source: axolotl_stability, for GRPO."""
SHARE_OF_START = 0.1
"""For discrete actions in classic RL: what is left of the entropy at the start, which is ln(actions). Chosen: by
hand."""
LEAST_RECORDS = 5
"""Finite values that are needed to judge a low entropy. Chosen: fewer show no course."""
FLOOR = 1e-4
"""Nats that count as none where the logarithm is taken. Chosen: far below `COLLAPSED`."""
NEAR_BEST = 0.05
"""Of the way that the return has come: so near to its best it has come there. Chosen: by hand."""
NOT_CONVERGING = 1.0
"""Axolotl, for GRPO: above 1 nat per token the policy does not converge."""
GROWTH = 2.0
"""Entropy of a language model at this multiple of its lowest level has turned round; chosen by hand."""
AS_AT_START = 0.98
"""Of the entropy at the start that an agent's lowest level keeps if it has not moved. Chosen: by hand."""
LEAST_TO_STAY = 20
"""Records that are needed to say that it stays high or grows. Chosen: fewer show no course."""
ENOUGH_RECORDS = 60
"""In classic RL an entropy that has not moved at all says something only after a while. Chosen: by hand."""
RANDOM = 0.5
"""Where at least this share of the actions is random, and stays it, an agent is not about to act on what it learns."""
NO_CHANCE = 1e-3
"""The share of random actions below which chance plays no part; schedules end at 0.01 or above. Chosen: by hand."""


@question(
    Outcome(
        "entropy_low",
        cleandoc("""Policy entropy near zero.

        The policy is nearly deterministic at the end of the log.
        Not this when: entropy falls slowly and keeps clear of zero, which is learning; single records touch zero;
        the agent of a game has come to its best return meanwhile, and needs no chance any more; actions are
        continuous, whose entropy goes below zero without meaning anything (then it is unknown)."""),
        background=0.006,
        sources=("axolotl_stability", "rahtz_reproducing"),
    ),
    Outcome(
        "entropy_high",
        cleandoc("""Policy entropy stays high or grows.

        The entropy of the policy is high and does not come down, or grows; or actions are taken at random for ever.
        Not this when: it is high at first and falls; it rises a little from a low level; a classic agent has hardly
        begun; it stays high while the reward rises. Entropies summed over the tokens of a completion (TRL's PPO) are
        judged by growth alone."""),
        background=0.012,
        sources=("axolotl_stability", "rahtz_reproducing"),
    ),
    Outcome(
        "entropy_grows",
        cleandoc("""Policy entropy grows.

        The entropy of the policy grows far above its lowest level.
        Not this when: it is as high as it was at the start: that tells of the model, its temperature or its
        exploration, and not of a policy that comes apart."""),
        background=0.004,
        sources=("axolotl_stability",),
        of="entropy_high",
    ),
    Outcome(
        "exploration_absent",
        cleandoc("""No action is taken at random, from the first record on.

        The share of random actions of an agent that has no policy of its own is zero from the start, and the reward
        does not rise.
        Not this when: it comes down to zero later; a policy network is logged, which draws its actions itself; the
        log begins in mid-run; the reward rises (noise in the weights explores too)."""),
        background=0.01,
    ),
    any_of=(*ENTROPIES, *EXPLORATION),
    not_for=NOT_POLICY,
)
def policy_entropy(run: Run) -> Answers:
    """Of a policy network its entropy, of an agent without one the share of random actions."""
    if not any(name in run for name in ENTROPIES):
        return _at_random(run)
    answers: dict[str, Evidence | CannotTell] = {}
    try:
        low = _low(run)
    except CannotTell as why:
        answers["entropy_low"] = why
    else:
        if low is not None and low.present:
            return {"entropy_low": low}
        answers |= {} if low is None else {"entropy_low": low}
    return {**answers, **_high(run)}


def _low(run: Run) -> Evidence | None:
    series = entropy(run)
    value = series.value
    if len(value) < LEAST_RECORDS:
        raise CannotTell(f"entropy has {counted(len(value), 'finite value')} here; {LEAST_RECORDS} are needed")
    if float(value.min()) < -1e-3:
        raise CannotTell("entropy goes below zero, as that of continuous actions does: it has no floor to be near to")
    start, end = start_level(value), end_level(value)
    limit = COLLAPSED if run.kind in TEXT_POLICIES else max(COLLAPSED, SHARE_OF_START * start)
    if end >= limit:
        return None
    above = np.flatnonzero(value >= limit)
    below = float(series.step[int(above[-1]) + 1 if len(above) and above[-1] + 1 < len(value) else 0])
    # Entropy decays exponentially: where it begins to collapse is seen in the logarithm.
    fall = departure(np.log(np.maximum(value, FLOOR)), float(np.log(max(end, FLOOR)))) if start >= limit else 0
    onset, solved = min(float(series.step[fall]), below), _is_solved(run)
    beside = "; the reward has risen meanwhile and is at its best" if solved else _reward_by(run, below)
    return Evidence(
        f"entropy is below {figure(limit)} from {run.step_name} {figure(below)} on and ends at {figure(end)}; "
        f"it began at {figure(start)} and turns down at {run.step_name} {figure(onset)}{beside}",
        steps=(onset, below),
        values={"start": start, "end": end, "limit": limit},
        present=not solved,
    )


def _reward_by(run: Run, step: float) -> str:
    """Return what had been earned when nothing was left to chance, beside what is earned at the end."""
    rewards = rewards_of(run)
    if rewards is None or (then := rewards.at(step)) is None:
        return ""
    start, end = start_level(rewards.value), end_level(rewards.value)
    return f"; the reward was {figure(start)} at first, {figure(then)} by then and is {figure(end)} at the end"


def _is_solved(run: Run) -> bool:
    """Say whether the agent of a game has come to its best return, and stays there."""
    rewards = rewards_of(run)
    if run.kind in TEXT_POLICIES or rewards is None or not seems_to_learn(run):
        return False
    level = blocks(averaged(run, rewards).value, 10).level
    return float(level[-1]) >= float(level.max()) - NEAR_BEST * float(np.ptp(level))


def _high(run: Run) -> Answers:
    series = entropy(run)
    value = series.value
    if len(value) < LEAST_TO_STAY:
        few = CannotTell(f"entropy has {counted(len(value), 'finite value')} here; {LEAST_TO_STAY} are needed")
        return {"entropy_high": few}
    cut, start, end = blocks(value, 20), start_level(value), end_level(value)
    of_text = run.kind in TEXT_POLICIES
    if _grows_of_text(cut, end) if of_text else _grows_of_agent(cut, start, end):
        grows = _course(run, series, cut, "grows")
        return {"entropy_high": grows, "entropy_grows": grows}
    stays = _stays_of_text(run, cut, start, end) if of_text else _stays_of_agent(cut, start, len(value))
    return {"entropy_high": _course(run, series, cut, "stays high")} if stays and not seems_to_learn(run) else {}


def _course(run: Run, series: Series, cut: Blocks, what: str) -> Evidence:
    value, start, end = series.value, start_level(series.value), end_level(series.value)
    lowest = float(cut.level.min())
    onset = float(series.step[departure(value, end)]) if what == "grows" else float(series.step[0])
    return Evidence(
        f"entropy {what} from {run.step_name} {figure(onset)} on: {figure(start)} at the start, lowest level "
        f"{figure(lowest)}, {figure(end)} at the end",
        steps=(onset,),
        values={"start": start, "lowest": lowest, "end": end},
    )


def _grows_of_text(cut: Blocks, end: float) -> bool:
    lowest = float(cut.level.min())
    return end > max(GROWTH * lowest, 0.5) and end - lowest > 6 * cut.wobble


def _grows_of_agent(cut: Blocks, start: float, end: float) -> bool:
    rise = end - float(cut.level.min())
    return rise > max(0.25 * abs(start), 10 * cut.wobble, 0.1) and end > start + 4 * cut.wobble


def _stays_of_text(run: Run, cut: Blocks, start: float, end: float) -> bool:
    lowest = float(cut.level.min())
    falling = end < 0.8 * start and end - lowest < 4 * cut.wobble
    return run.kind == "grpo" and lowest > NOT_CONVERGING and not falling


def _stays_of_agent(cut: Blocks, start: float, count: int) -> bool:
    return count >= ENOUGH_RECORDS and float(cut.level.min()) > AS_AT_START * start > 0


def _at_random(run: Run) -> Answers:
    """Return what is seen of a share of random actions that never comes down, or never was."""
    if run.kind != "rl":
        raise CannotTell("it is not known whether this run trains an agent")
    share = run[next(name for name in EXPLORATION if name in run)].finite
    if len(share) < LEAST_TO_STAY:
        raise CannotTell(f"{share.name} has {counted(len(share), 'finite value')} here; {LEAST_TO_STAY} are needed")
    highest, constant = float(share.value.max()), float(np.ptp(share.value)) == 0
    from_start = float(share.step[0]) <= 0.05 * float(share.step[-1])
    if highest < NO_CHANCE and from_start and "policy_loss" not in run and not seems_to_learn(run):
        return {"exploration_absent": _share(run, share, "at most")}
    return {"entropy_high": _share(run, share, "")} if constant and highest >= RANDOM else {}


def _share(run: Run, share: Series, bound: str) -> Evidence:
    highest = float(share.value.max())
    return Evidence(
        f"{share.name} is {bound}{' ' if bound else ''}{figure(highest)} in all {len(share)} records, up to "
        f"{run.step_name} {figure(float(share.step[-1]))}",
        steps=(float(share.step[0]),),
        values={"share": highest, "records": float(len(share))},
    )
