"""`reward_constant`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, state


def test_one_value_in_all_records_is_present_whatever_it_is() -> None:
    assert state("reward_constant", run_of(reward=[0.0] * 30, kind="grpo")) is State.PRESENT
    assert state("reward_constant", run_of({"rollout/ep_rew_mean": [-200.0] * 30}, kind="rl")) is State.PRESENT


def test_a_level_reward_that_varies_a_little_is_absent() -> None:
    assert state("reward_constant", run_of(reward=noisy([0.5] * 30, 0.001), kind="grpo")) is State.ABSENT


def test_a_few_records_are_unknown() -> None:
    assert state("reward_constant", run_of(reward=[1.0] * 10, kind="grpo")) is State.UNKNOWN


def test_ten_means_over_episodes_are_enough() -> None:
    assert state("reward_constant", run_of({"rollout/ep_rew_mean": [-200.0] * 10}, kind="rl")) is State.PRESENT
    assert state("reward_constant", run_of({"rollout/ep_rew_mean": [-200.0] * 9}, kind="rl")) is State.UNKNOWN
