"""`reward_std_zero`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


def test_groups_without_variance_all_the_time_are_present() -> None:
    assert state("reward_std_zero", run_of(frac_reward_zero_std=[1.0] * 30, kind="grpo")) is State.PRESENT


def test_a_standard_deviation_of_zero_is_present() -> None:
    assert state("reward_std_zero", run_of(reward_std=[0.0] * 30, kind="grpo")) is State.PRESENT


def test_the_onset_is_where_variance_is_lost_and_the_reward_there_is_told() -> None:
    run = run_of(frac_reward_zero_std=[0.2] * 40 + [1.0] * 60, reward=[0.5] * 40 + [0.9] * 60, kind="grpo")
    finding = seen("reward_std_zero", run)
    assert finding.state is State.PRESENT
    assert 35 <= (finding.steps[0] or 0) <= 41
    assert "0.9" in finding.summary


def test_variance_that_is_lost_now_and_then_is_absent() -> None:
    assert state("reward_std_zero", run_of(frac_reward_zero_std=[1.0, 0.2, 0.5] * 20, kind="grpo")) is State.ABSENT


def test_a_share_that_rises_to_two_thirds_as_the_task_is_learnt_is_absent() -> None:
    share = noisy(np.linspace(0.2, 0.66, 100), 0.1)
    assert state("reward_std_zero", run_of(frac_reward_zero_std=share, kind="grpo")) is State.ABSENT


def test_five_records_are_unknown() -> None:
    assert state("reward_std_zero", run_of(reward_std=[0.0] * 5, kind="grpo")) is State.UNKNOWN
