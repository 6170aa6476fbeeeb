"""Reward takes one value only."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.forms import NO_REWARD
from mldebug_mcp.symptoms.policy import NOT_POLICY, REWARDS, reward
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted, figure

LEAST_RECORDS = 20
"""Axolotl looks at a reward that has not moved after 20 steps."""
OF_AGENTS = 10
"""A record of an agent is the mean of many episodes. Chosen by hand."""


@symptom(
    any_of=REWARDS,
    sources=("axolotl_stability",),
    not_for=NOT_POLICY,
    background=0.002,
    follows=("reward_zero",),
    instead=NO_REWARD,
)
def reward_constant(run: Run) -> Evidence | None:
    """The mean reward is exactly the same in every record.

    Not this when: it is level but varies from batch to batch (`reward_flat`): then rewards do tell completions apart.
    """
    rewards = reward(run)
    least = OF_AGENTS if run.kind == "rl" else LEAST_RECORDS
    if len(rewards) < least:
        raise CannotTell(f"reward has {counted(len(rewards), 'finite value')} here; {least} are needed")
    if float(np.ptp(rewards.value)) > 1e-9 * abs(float(rewards.value[0])):
        return None
    return Evidence(
        f"reward is exactly {figure(float(rewards.value[0]))} in all {len(rewards)} records",
        steps=(float(rewards.step[0]),),
        values={"value": float(rewards.value[0]), "records": len(rewards)},
    )
