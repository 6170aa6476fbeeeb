"""Reward stays at zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.forms import NO_REWARD
from mldebug_mcp.symptoms.policy import NOT_POLICY, REWARDS, components, reward
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure, shorten

LEAST_STEPS = 20
"""Axolotl: the reward checklist begins where `rewards/*/mean` stays at 0 for more than 20 steps."""
ZERO = 1e-6
SHARE = 0.95


@symptom(any_of=REWARDS, sources=("axolotl_stability",), not_for=NOT_POLICY, background=0.003, instead=NO_REWARD)
def reward_zero(run: Run) -> Evidence | None:
    """The mean reward is zero from the first record on and stays there for more than 20 steps.

    Not this when: it leaves zero later; single records are zero; one component of several is zero (a strict format
    reward often is), which is a remark.
    """
    rewards = reward(run)
    zero = np.abs(rewards.value) <= ZERO
    if not len(zero):
        raise CannotTell("no finite reward")
    length = len(zero) if zero.all() else int(np.argmin(zero))
    if zero.mean() >= SHARE and zero[-1] and length:
        return _stays(run, rewards, float(zero.mean()))
    if length > 3 and _steps(run, rewards, length) > LEAST_STEPS:
        first = float(rewards.step[length])
        return Evidence(
            f"reward is 0 up to {run.step_name} {figure(float(rewards.step[length - 1]))} and leaves it at "
            f"{figure(first)}",
            steps=(first,),
            present=False,
        )
    return _component(run)


def _steps(run: Run, rewards: Series, count: int) -> float:
    """Return the steps that the first `count` records stand for; of epochs and environment steps, the records."""
    if run.step_name != "step" or run.kind == "rl":
        return count
    return float(rewards.step[count - 1]) if run.first_step <= LEAST_STEPS else count


def _stays(run: Run, rewards: Series, share: float) -> Evidence:
    steps = _steps(run, rewards, len(rewards))
    if steps <= LEAST_STEPS or len(rewards) < 3:
        raise CannotTell(f"reward is 0 so far, but the log has only {figure(steps)} steps; {LEAST_STEPS} are needed")
    return Evidence(
        f"reward is 0 in {share:.0%} of {len(rewards)} records, from {run.step_name} "
        f"{figure(float(rewards.step[0]))} to {figure(float(rewards.step[-1]))}",
        steps=(float(rewards.step[0]),),
        values={"share": share, "records": len(rewards)},
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
