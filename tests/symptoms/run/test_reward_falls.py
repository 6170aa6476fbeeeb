"""`reward_falls`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

RISE = np.linspace(0.2, 0.8, 100)


def test_a_fall_after_a_rise_is_present_with_its_onset() -> None:
    finding = seen("reward_falls", run_of(reward=noisy(np.concatenate([RISE, np.full(60, 0.1)]), 0.05), kind="grpo"))
    assert finding.state is State.PRESENT
    assert 90 <= (finding.steps[0] or 0) <= 110


def test_a_language_model_that_only_loses_reward_is_present() -> None:
    assert state("reward_falls", run_of(reward=noisy(np.linspace(1.5, 0.3, 80), 0.05), kind="grpo")) is State.PRESENT


def test_an_agent_that_is_worse_than_random_at_first_is_absent() -> None:
    returns = np.concatenate([np.linspace(-4, -7, 15), np.linspace(-7, 5, 60)])
    assert state("reward_falls", run_of({"rollout/ep_rew_mean": returns}, kind="rl")) is State.ABSENT


def test_a_dip_that_comes_back_is_absent() -> None:
    dip = np.concatenate([RISE, np.full(20, 0.2), np.full(60, 0.8)])
    assert state("reward_falls", run_of(reward=noisy(dip, 0.05), kind="grpo")) is State.ABSENT


def test_noise_around_a_level_is_absent() -> None:
    assert state("reward_falls", run_of(reward=noisy([0.5] * 100, 0.3), kind="grpo")) is State.ABSENT


def test_a_short_log_is_unknown() -> None:
    assert state("reward_falls", run_of(reward=[0.5, 0.1] * 4, kind="grpo")) is State.UNKNOWN


def test_a_policy_that_loses_all_in_its_first_update_is_present() -> None:
    reward, spread = np.array([0.25, *[0.0] * 44]), np.array([0.44, *[0.0] * 44])
    finding = seen("reward_falls", run_of(reward=reward, reward_std=spread, kind="grpo"))
    assert finding.state is State.PRESENT
    assert finding.steps == [2]


def test_one_lucky_answer_at_first_is_absent() -> None:
    reward, spread = np.array([0.02, *[0.0] * 44]), np.array([0.14, *[0.0] * 44])
    assert state("reward_falls", run_of(reward=reward, reward_std=spread, kind="grpo")) is State.ABSENT
