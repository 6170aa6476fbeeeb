"""How much is left to chance?"""

from __future__ import annotations

from functools import partial

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.policy import ENTROPIES, NOT_POLICY, entropy, is_solved
from mldebug_mcp.measure.reward_course import EXPLORATION
from mldebug_mcp.measure.rewards import TEXT_POLICIES, rewards_of, seems_to_learn
from mldebug_mcp.measure.statistics import Blocks, blocks, departure, end_level, start_level
from mldebug_mcp.measure.unknown import require_values
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen, with_attribute
from mldebug_mcp.text import figure

COLLAPSED, SHARE_OF_START = 0.01, 0.1
"""Nats per token below which a policy has collapsed, and, of an agent, the share of its entropy at the start. Source:
axolotl_stability, for GRPO, where 0.05 to 0.5 is healthy."""
LEAST, LEAST_TO_STAY = 5, 20
"""Finite values without which a low entropy, and one that stays or grows, cannot be told. Chosen: fewer show no
course."""
FLOOR = 1e-4
"""Nats that count as none where the logarithm is taken. Chosen: far below `COLLAPSED`."""
NOT_CONVERGING = 1.0
"""Nats per token above which a policy does not converge. Source: axolotl_stability, for GRPO."""
GROWTH, SHARE_OF_GROWTH, SIGMAS = 2.0, 0.25, 6.0
"""Times its lowest level, of a language model; of the entropy at the start, of an agent; times the wobble of levels.
Chosen: by hand."""
AS_AT_START, ENOUGH = 0.98, 60
"""Of the entropy at the start that an agent's lowest level keeps in so many records if it has not moved. Chosen: by
hand."""
RARELY = 0.06
"""A share of random actions at the first record that is that of the end of a schedule. Source: the final 0.05 of
Stable-Baselines3's DQN."""
RANDOM = 0.5
"""Where at least this share of the actions is random, and stays it, an agent is not about to act on what it learns.
Chosen: by hand."""


def entropy_low(run: Run) -> Evidence | None:
    """The policy is nearly deterministic at the end of the log: its entropy is near zero.

    Not this when: entropy keeps clear of zero; single records touch it; the agent of a game has come to its best
    return meanwhile (a remark); actions are continuous, whose entropy has no floor (then it is unknown).
    """
    series = require_values(entropy(run), LEAST)
    value = series.value
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
    onset, solved = min(float(series.step[fall]), below), is_solved(run)
    beside = "; the reward has risen meanwhile and is at its best" if solved else _reward_by(run, below)
    return Evidence(
        f"entropy is below {figure(limit)} from {run.place(below)} on and ends at {figure(end)}; "
        f"it began at {figure(start)} and turns down at {run.place(onset)}{beside}",
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


def entropy_high(run: Run) -> Evidence | None:
    """The entropy of the policy is high and does not come down, or grows; or actions are taken at random for ever.

    Not this when: it falls; it rises a little from a low level; a classic agent has hardly begun; it stays high
    while the reward rises.
    """
    series = require_values(entropy(run), LEAST_TO_STAY)
    value = series.value
    cut, start, end = blocks(value, 20), start_level(value), end_level(value)
    lowest, grows = float(cut.level.min()), _grows(run, cut, start, end)
    if not grows and (not _stays(run, cut, start, end, len(value)) or seems_to_learn(run)):
        return None
    onset = float(series.step[departure(value, end) if grows else 0])
    return Evidence(
        f"entropy {'grows' if grows else 'stays high'} from {run.place(onset)} on: {figure(start)} at the "
        f"start, lowest level {figure(lowest)}, {figure(end)} at the end",
        steps=(onset,),
        values={"start": start, "lowest": lowest, "end": end, "grows": float(grows)},
    )


def entropy_grows(high: Evidence) -> Evidence | None:
    """The entropy of the policy grows far above its lowest level.

    Not this when: it is as high as it was at the start, which tells of the model or its temperature.
    """
    return high if high.values["grows"] else None


def _grows(run: Run, cut: Blocks, start: float, end: float) -> bool:
    lowest = float(cut.level.min())
    if run.kind in TEXT_POLICIES:
        return end > max(GROWTH * lowest, 0.5) and end - lowest > SIGMAS * cut.wobble
    return end - lowest > max(SHARE_OF_GROWTH * abs(start), 0.1) and end - start > SIGMAS * cut.wobble


def _stays(run: Run, cut: Blocks, start: float, end: float, count: int) -> bool:
    lowest = float(cut.level.min())
    if run.kind not in TEXT_POLICIES:
        return count >= ENOUGH and lowest > AS_AT_START * start > 0
    falling = end < 0.8 * start and end - lowest < SIGMAS * cut.wobble
    return run.kind == "grpo" and lowest > NOT_CONVERGING and not falling


def _at_random(run: Run) -> Evidence | None:
    """Return what is seen of a share of random actions that never comes down."""
    if run.kind != "rl":
        raise CannotTell("it is not known whether this run trains an agent")
    share = require_values(run[next(name for name in EXPLORATION if name in run)].finite, LEAST_TO_STAY)
    highest = float(share.value.max())
    if highest < RANDOM or float(np.ptp(share.value)) > 0:
        return None
    return Evidence(
        f"{share.name} is {figure(highest)} in all {len(share)} records, up to {run.place(share.step[-1])}",
        steps=(float(share.step[0]),),
        values={"share": highest, "records": float(len(share)), "grows": 0.0},
    )


def exploration_ends_early(run: Run) -> Evidence | None:
    """Hardly any action is random from the first records on, and the reward does not rise.

    Not this when: actions were random for a while; the reward rises; only a log of a trained agent is known.
    """
    share = require_values(run[next(name for name in EXPLORATION if name in run)].finite, LEAST)
    if run.kind != "rl" or float(share.value.max()) > RARELY or seems_to_learn(run):
        return None
    return Evidence(
        f"{share.name} is {figure(share.value[0])} at the first record, {run.place(share.step[0])}, and the reward "
        "does not rise",
        steps=(float(share.step[0]),),
        values={"share": float(share.value[0]), "records": float(len(share)), "grows": 0.0},
    )


@question(
    outcome_of(entropy_low, 0.006, "axolotl_stability", "rahtz_reproducing", follows=("eval_reward_falls",)),
    outcome_of(entropy_high, 0.012, "axolotl_stability", "rahtz_reproducing"),
    outcome_of(entropy_grows, 0.004, "axolotl_stability", of="entropy_high"),
    outcome_of(exploration_ends_early, 0.005),
    any_of=(*ENTROPIES, *EXPLORATION),
    not_for=NOT_POLICY,
)
def policy_entropy(run: Run) -> Answers:
    """Of a policy network its entropy, of an agent without one the share of random actions."""
    if not any(name in run for name in ENTROPIES):
        return first_seen({"entropy_high": partial(_at_random, run), **by_outcome((exploration_ends_early,), run)})
    answers = first_seen(by_outcome((entropy_low, entropy_high), run))
    return with_attribute(answers, "entropy_high", entropy_grows)
