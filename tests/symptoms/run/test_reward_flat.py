"""`reward_flat`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


def test_a_constant_reward_is_present_and_its_level_is_told() -> None:
    finding = seen("reward_flat", run_of(reward=[0.5] * 60, kind="grpo"))
    assert finding.state is State.PRESENT
    assert finding.values["level"] == 0.5


def test_a_noisy_reward_without_trend_is_present() -> None:
    assert state("reward_flat", run_of(reward=noisy([0.4] * 400, 0.2), kind="grpo")) is State.PRESENT


def test_the_returns_of_an_agent_that_never_finds_reward_are_flat() -> None:
    assert state("reward_flat", run_of({"rollout/ep_rew_mean": [-200.0] * 50}, kind="rl")) is State.PRESENT


def test_components_stand_for_a_total_that_is_not_logged() -> None:
    run = run_of({"rewards/a/mean": [0.0] * 50, "rewards/b/mean": [0.5] * 50}, kind="grpo")
    assert state("reward_flat", run) is State.PRESENT


def test_a_slow_rise_within_the_noise_of_records_is_absent() -> None:
    run = run_of(reward=noisy(np.linspace(0.3, 0.6, 300), 0.2), kind="grpo")
    assert state("reward_flat", run) is State.ABSENT


def test_a_rise_that_comes_back_is_absent() -> None:
    there_and_back = np.concatenate([np.linspace(0.1, 0.8, 50), np.linspace(0.8, 0.1, 50)])
    assert state("reward_flat", run_of(reward=there_and_back, kind="grpo")) is State.ABSENT


def test_a_short_or_too_noisy_log_is_unknown() -> None:
    assert state("reward_flat", run_of(reward=[0.5] * 10, kind="grpo")) is State.UNKNOWN
    assert state("reward_flat", run_of(reward=noisy([0.4] * 24, 0.8), kind="grpo")) is State.UNKNOWN


def test_a_run_without_reward_is_unknown_and_says_what_is_missing() -> None:
    finding = seen("reward_flat", run_of(loss=[1.0] * 30))
    assert finding.state is State.UNKNOWN
    assert "reward" in finding.summary


def test_an_agent_that_falls_to_a_floor_and_stays_there_is_present() -> None:
    reward = np.concatenate([np.linspace(0.15, -0.4, 25), np.full(35, -0.4)])
    assert state("reward_flat", run_of(reward=reward, kind="rl")) is State.PRESENT


def test_an_agent_that_swings_around_where_it_began_is_present() -> None:
    reward = 0.3 * np.sin(np.arange(60) / 4) * np.linspace(1.0, 0.6, 60)
    assert state("reward_flat", run_of(reward=reward, kind="rl")) is State.PRESENT


def test_an_agent_that_solves_its_task_and_stays_there_is_absent() -> None:
    reward = np.concatenate([np.linspace(0.1, 0.95, 20), np.full(40, 0.95)])
    assert state("reward_flat", run_of(reward=reward, kind="rl")) is State.ABSENT


def test_an_agent_that_is_level_where_the_log_begins_in_mid_run_may_have_learnt_before() -> None:
    rewards = noisy(np.concatenate([np.linspace(2.0, 1.25, 60), np.full(90, 1.25)]), 0.03)
    resumed = {float(251 + at): value for at, value in enumerate(rewards)}
    assert state("reward_flat", run_of(reward=resumed, kind="rl")) is not State.PRESENT
    assert state("reward_flat", run_of(reward=rewards, kind="rl")) is State.PRESENT


def test_single_episodes_that_scatter_while_they_get_longer_are_absent() -> None:
    episodes = np.random.default_rng(3).exponential(np.linspace(20.0, 110.0, 450))
    assert state("reward_flat", run_of(reward=episodes, kind="rl")) is State.ABSENT


def test_episodes_of_which_few_but_more_and_more_bring_a_reward_are_absent() -> None:
    found = np.random.default_rng(3).random(900) < np.linspace(0.01, 0.3, 900)
    assert state("reward_flat", run_of(reward=found.astype(float), kind="rl")) is State.ABSENT


def test_swings_are_told_as_swings() -> None:
    reward = 0.3 * np.sin(np.arange(60) / 4) * np.linspace(1.0, 0.6, 60)
    finding = seen("reward_flat", run_of(reward=reward, kind="rl"))
    assert finding.summary.startswith("reward swings between")
    assert (finding.values["lowest"] or 0) < -0.1 < 0.1 < (finding.values["highest"] or 0)


def test_the_end_of_the_log_of_an_agent_that_may_have_learnt_before_is_unknown() -> None:
    last = {float(8300 + at): value for at, value in enumerate(noisy([25.0] * 90, 0.01))}
    assert state("reward_flat", run_of(reward=last, kind="rl")) is State.UNKNOWN


def test_an_agent_that_only_gets_worse_is_present_and_its_fall_is_told() -> None:
    finding = seen("reward_flat", run_of(reward=10 + 12 * np.exp(-np.arange(30) / 4), kind="rl"))
    assert finding.state is State.PRESENT
    assert "reward goes from 19.35" in finding.summary


def test_an_agent_that_falls_at_first_and_learns_then_is_absent() -> None:
    reward = np.concatenate([np.linspace(20, 12, 8), np.linspace(12, 90, 22)])
    assert state("reward_flat", run_of(reward=reward, kind="rl")) is State.ABSENT
