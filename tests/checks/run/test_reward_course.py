from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.judge.hypotheses import independent
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, noisy, run_of, seen, state


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
    assert state("reward_flat", run_of(reward=there_and_back, kind="grpo")) is not State.PRESENT


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
    assert "reward goes from about 19.35" in finding.summary


def test_an_agent_that_falls_at_first_and_learns_then_is_absent() -> None:
    reward = np.concatenate([np.linspace(20, 12, 8), np.linspace(12, 90, 22)])
    assert state("reward_flat", run_of(reward=reward, kind="rl")) is State.ABSENT


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


def test_a_reward_of_zero_for_more_than_twenty_steps_is_present() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 40, kind="grpo")) is State.PRESENT


def test_records_that_stand_for_ten_steps_each_count_as_ten() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 5, kind="grpo", every=10)) is State.PRESENT


def test_a_reward_that_leaves_zero_late_is_absent_with_a_remark() -> None:
    finding = seen("reward_flat", run_of(reward=[0.0] * 40 + [0.2] * 40, kind="rl"))
    assert finding.state is State.ABSENT
    assert finding.steps == [41]


def test_a_component_that_stays_at_zero_is_a_remark() -> None:
    run = run_of({"reward": RISES, "rewards/format/mean": [0.0] * 40, "rewards/right/mean": RISES}, kind="grpo")
    finding = seen("reward_flat", run)
    assert finding.state is State.ABSENT
    assert "rewards/format/mean" in finding.summary


def test_negative_rewards_are_not_zero() -> None:
    assert state("reward_zero", run_of(reward=[-1.0] * 40, kind="rl")) is State.ABSENT


def test_ten_steps_of_zero_are_unknown() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 10, kind="grpo")) is State.UNKNOWN


def test_a_supervised_run_is_not_judged() -> None:
    assert state("reward_zero", run_of(reward=[0.0] * 40, kind="sft")) is State.UNKNOWN


RISES = np.linspace(0.2, 0.6, 40)
RISE = np.linspace(0.2, 0.8, 100)


def test_a_fall_after_a_rise_is_present_with_its_onset() -> None:
    finding = seen("reward_falls", run_of(reward=noisy(np.concatenate([RISE, np.full(60, 0.1)]), 0.05), kind="grpo"))
    assert finding.state is State.PRESENT
    assert 90 <= (finding.steps[0] or 0) <= 110


def test_an_agent_that_is_worse_than_random_at_first_is_absent() -> None:
    returns = np.concatenate([np.linspace(-4, -7, 15), np.linspace(-7, 5, 60)])
    assert state("reward_falls", run_of({"rollout/ep_rew_mean": returns}, kind="rl")) is State.ABSENT


def test_a_dip_that_comes_back_is_absent() -> None:
    dip = np.concatenate([RISE, np.full(20, 0.2), np.full(60, 0.8)])
    assert state("reward_falls", run_of(reward=noisy(dip, 0.05), kind="grpo")) is State.ABSENT


def test_noise_around_a_level_is_absent() -> None:
    assert state("reward_falls", run_of(reward=noisy([0.5] * 100, 0.3), kind="grpo")) is not State.PRESENT


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


SINKING = np.linspace(-180, -400, 60)


def agent(reward: NDArray[np.float64]) -> Run:
    """A run of 60 records of an agent with a policy."""
    return run_of(reward=reward, policy_loss=noisy([-0.002] * 60, 0.5), kind="rl")


def car(reward: Curve, length: Curve) -> Run:
    return run_of({"rollout/ep_rew_mean": reward, "rollout/ep_len_mean": length}, kind="rl")


def test_a_price_per_step_of_episodes_that_never_end_is_the_floor() -> None:
    run = car(np.full(30, -200.0), np.full(30, 200.0))
    assert seen("reward_at_floor", run).values["per_step"] == -1.0
    assert state("reward_flat", run) is State.PRESENT


@pytest.mark.parametrize(
    ("reward", "length"),
    [
        (noisy([-900.0] * 30, 0.1), [200.0] * 30),  # a pendulum: each step has its own price
        ([-200.0] * 10 + [-150.0] * 20, [200.0] * 10 + [150.0] * 20),  # it finds the goal
        ([500.0] * 30, [500.0] * 30),  # a pole that never falls
        (-noisy([21.0] * 30, 0.01), noisy([900.0] * 30, 0.1)),  # a lost game, whose length is another matter
    ],
    ids=["pendulum", "finds the goal", "pole", "lost game"],
)
def test_rewards_that_vary_are_better_or_have_another_reason_are_not_at_the_floor(reward: Curve, length: Curve) -> None:
    assert state("reward_at_floor", car(reward, length)) is not State.PRESENT


def test_a_reward_of_one_value_counts_once() -> None:
    names = ("reward_zero", "reward_constant", "reward_flat")
    found = [seen(name, run_of(reward=[0.0] * 40, kind="grpo")) for name in names]
    assert {one.state for one in found} == {State.PRESENT}
    assert [one.symptom for one in independent(found)] == ["reward_zero"]


def test_a_reward_that_falls_to_one_number_and_stays_there_is_constant_from_then_on() -> None:
    learns = [0.1 + 0.9 * at / 60 + 0.01 * (at % 3) for at in range(60)]
    found = seen("reward_constant", run_of(reward=[*learns, *[0.5] * 60], kind="grpo"))
    assert found.steps == [61]
    assert state("reward_constant", run_of(reward=[*learns, *[1.02] * 60], kind="grpo")) is not State.PRESENT


def test_a_reward_that_is_never_above_zero_and_stays_there_is_zero() -> None:
    run = run_of(reward=[-0.02, -0.008, -0.005, *[0.0] * 37], entropy=np.full(40, 1.38), kind="rl")
    assert state("reward_zero", run) is State.PRESENT
    leaves = run_of(reward=[-0.02, *[0.0] * 20, *[0.3] * 19], entropy=np.full(40, 1.38), kind="rl")
    assert state("reward_zero", leaves) is not State.PRESENT


@pytest.mark.parametrize("kind", ["grpo", "rl"])
def test_a_reward_that_only_falls_from_the_start_on_sinks_and_is_neither_flat_nor_fallen(kind: str) -> None:
    value = -6.8 - 4.7 * (1 - np.exp(-np.arange(150) / 8)) + 0.1 * np.random.default_rng(0).standard_normal(150)
    run = run_of(reward=value, entropy=np.full(150, 1.2), kind=kind)
    assert state("reward_sinks", run) is State.PRESENT
    assert state("reward_flat", run) is State.UNKNOWN
    assert state("reward_falls", run) is State.UNKNOWN


def test_a_reward_that_rose_first_or_an_agent_that_acts_less_and_less_at_random_does_not_sink() -> None:
    rose = np.concatenate([np.linspace(0.1, 0.5, 40), np.linspace(0.5, 0.05, 110)])
    assert (
        state("reward_sinks", run_of(reward=noisy(rose, 0.01), entropy=np.full(150, 1.2), kind="grpo"))
        is not State.PRESENT
    )
    falls = noisy(np.linspace(-5.0, -20.0, 150), 0.01)
    explores = run_of(reward=falls, exploration_rate=np.linspace(1.0, 0.05, 150), kind="rl")
    assert state("reward_sinks", explores) is not State.PRESENT


@pytest.mark.parametrize("name", ["avg100", "running_mean_20", "mean_return"])
def test_a_mean_over_episodes_is_judged_where_single_ones_are_logged_now_and_then(name: str) -> None:
    single = np.where((np.arange(54) > 12) & (np.arange(54) < 25), 0.0, 1.0)
    rises, rests = np.clip(np.linspace(-0.1, 1.3, 54), 0.2, 1.0), noisy([0.5] * 54, 0.02)
    assert state("reward_flat", run_of({"return": single, name: rises}, kind="rl")) is State.ABSENT
    assert state("reward_flat", run_of({"return": single, name: rests}, kind="rl")) is State.PRESENT
