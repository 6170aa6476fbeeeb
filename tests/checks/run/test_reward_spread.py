from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, noisy, run_of, seen, state


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


@pytest.mark.parametrize("metrics", [{"frac_reward_zero_std": [1.0]}, {"reward_std": [0.0, 0.0, 0.0]}])
def test_a_few_records_without_any_variance_are_present(metrics: dict[str, list[float]]) -> None:
    finding = seen("no_variance_in_excerpt", run_of(metrics, kind="grpo"))
    assert finding.values["records"] == len(next(iter(metrics.values())))


@pytest.mark.parametrize("metrics", [{"frac_reward_zero_std": [0.3]}, {"reward_std": [0.0, 0.2, 0.0]}])
def test_a_few_records_with_some_variance_are_absent(metrics: dict[str, list[float]]) -> None:
    assert state("no_variance_in_excerpt", run_of(metrics, kind="grpo")) is State.ABSENT


def test_of_a_whole_log_another_symptom_tells() -> None:
    run = run_of({"frac_reward_zero_std": [1.0] * 20}, kind="grpo")
    assert state("no_variance_in_excerpt", run) is State.UNKNOWN
    assert state("reward_std_zero", run) is State.PRESENT


def test_groups_that_all_get_the_most_there_is_after_less_at_first_are_a_remark() -> None:
    reward = np.concatenate([np.linspace(0.3, 1.0, 40), np.full(60, 1.0)])
    finding = seen("reward_std_zero", run_of(frac_reward_zero_std=[0.2] * 40 + [1.0] * 60, reward=reward, kind="grpo"))
    assert finding.state is State.ABSENT
    assert "the most that can be earned" in finding.summary


@pytest.mark.parametrize("reward", [np.full(40, 1.0), np.zeros(40), np.linspace(0.3, 0.6, 40)])
def test_groups_without_variance_at_any_other_level_are_present(reward: Curve) -> None:
    assert state("reward_std_zero", run_of(reward_std=[0.0] * 40, reward=reward, kind="grpo")) is State.PRESENT


def test_what_rounding_leaves_of_equal_rewards_is_no_variance() -> None:
    curves = {"reward_std": np.full(40, 3e-5), "reward": np.full(40, 100.0)}
    assert state("reward_std_zero", run_of(curves, kind="grpo")) is State.PRESENT
    assert state("reward_std_zero", run_of({**curves, "reward_std": np.full(40, 0.02)}, kind="grpo")) is State.ABSENT


def test_one_gradient_of_zero_is_present_where_the_rewards_of_its_groups_differ() -> None:
    metrics = {"grad_norm": [0.0], "loss": [0.0], "reward_std": [0.3], "frac_reward_zero_std": [0.25]}
    assert state("grad_norm_zero", run_of(metrics, kind="grpo")) is State.PRESENT
    equal = {**metrics, "frac_reward_zero_std": [1.0]}
    assert state("grad_norm_zero", run_of(equal, kind="grpo")) is State.UNKNOWN


@pytest.mark.parametrize(("entropy", "expected"), [(4e-5, State.PRESENT), (0.0, State.UNKNOWN), (0.3, State.UNKNOWN)])
def test_one_record_shows_that_nothing_is_left_to_chance(entropy: float, expected: State) -> None:
    assert state("entropy_low", run_of(entropy=[entropy], value_loss=[80.0], kind="rl")) is expected
