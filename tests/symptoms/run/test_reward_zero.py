"""`reward_zero`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def test_a_reward_of_zero_for_more_than_twenty_steps_is_present() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 40, kind="grpo")) is State.PRESENT


def test_records_that_stand_for_ten_steps_each_count_as_ten() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 5, kind="grpo", every=10)) is State.PRESENT


def test_a_reward_that_leaves_zero_late_is_absent_with_a_remark() -> None:
    finding = seen("reward_zero", run_of(reward=[0.0] * 40 + [0.2] * 40, kind="rl"))
    assert finding.state is State.ABSENT
    assert finding.steps == [41]


def test_a_component_that_stays_at_zero_is_a_remark() -> None:
    run = run_of(
        {"reward": [0.4] * 40, "rewards/format/mean": [0.0] * 40, "rewards/right/mean": [0.4] * 40}, kind="grpo"
    )
    finding = seen("reward_zero", run)
    assert finding.state is State.ABSENT
    assert "rewards/format/mean" in finding.summary


def test_negative_rewards_are_not_zero() -> None:
    assert state("reward_zero", run_of(reward=[-1.0] * 40, kind="rl")) is State.ABSENT


def test_ten_steps_of_zero_are_unknown() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 10, kind="grpo")) is State.UNKNOWN


def test_a_supervised_run_is_not_judged() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 40, kind="sft")) is State.UNKNOWN
