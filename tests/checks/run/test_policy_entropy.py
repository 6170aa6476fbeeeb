from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, seen, state


def test_collapse_below_a_hundredth_is_present_with_its_onset() -> None:
    finding = seen("entropy_low", run_of(entropy=[0.4] * 50 + [0.002] * 50, kind="grpo"))
    assert finding.state is State.PRESENT
    assert finding.steps == [51, 51]


def test_where_a_slow_collapse_begins_is_told_before_where_it_is_complete() -> None:
    entropy = np.concatenate([np.full(60, 0.4), 0.4 * np.exp(-np.arange(60) / 8)])
    finding = seen("entropy_low", run_of(entropy=noisy(entropy, 0.05), kind="grpo"))
    assert 55 <= (finding.steps[0] or 0) <= 65
    assert (finding.steps[1] or 0) > 80


def test_the_entropy_loss_of_stable_baselines_is_minus_the_entropy() -> None:
    run = run_of({"train/entropy_loss": -decay(60, 1.38, 0.01, 20), "rollout/ep_rew_mean": [1.0] * 60}, kind="rl")
    assert state("entropy_low", run) is State.PRESENT


def test_a_slow_fall_to_a_tenth_is_absent() -> None:
    assert state("entropy_low", run_of(entropy=noisy(decay(100, 0.6, 0.08), 0.1), kind="grpo")) is State.ABSENT


def test_single_records_at_zero_are_absent() -> None:
    assert state("entropy_low", run_of(entropy=[0.3, 0.3, 0.0] * 20, kind="grpo")) is State.ABSENT


def test_a_continuous_policy_is_unknown() -> None:
    assert state("entropy_low", run_of(entropy=np.linspace(1.4, -2, 50), kind="rl")) is State.UNKNOWN


def test_the_token_entropy_of_supervised_fine_tuning_is_not_judged() -> None:
    assert state("entropy_low", run_of(entropy=[0.001] * 30, kind="sft")) is State.UNKNOWN


def test_an_entropy_loss_above_zero_is_the_entropy() -> None:
    falling = run_of(entropy_loss=[0.7] * 50 + [0.001] * 50, reward=np.full(100, 1.5), kind="rl")
    assert state("entropy_low", falling) is State.PRESENT
    level = run_of(entropy_loss=noisy([0.7] * 100, 0.05), reward=np.linspace(1, 2, 100), kind="rl")
    assert state("entropy_low", level) is State.ABSENT


def test_an_agent_that_has_come_to_its_best_return_needs_no_chance() -> None:
    entropy = 1.38 * np.exp(-np.arange(100) / 10)
    rises = noisy(20 + 480 * (1 - np.exp(-np.arange(100) / 15)), 0.02)
    stays = noisy(np.full(100, 20.0), 0.1)
    assert state("entropy_low", run_of(entropy=entropy, reward=rises, kind="rl")) is State.ABSENT
    assert state("entropy_low", run_of(entropy=entropy, reward=stays, kind="rl")) is State.PRESENT
    assert state("entropy_low", run_of(entropy=entropy, reward=rises, kind="grpo")) is State.PRESENT


def test_entropy_that_stays_above_one_nat_is_present() -> None:
    assert state("entropy_high", run_of(entropy=noisy([1.6] * 60, 0.05), kind="grpo")) is State.PRESENT


def test_entropy_that_turns_round_and_grows_is_present() -> None:
    entropy = np.concatenate([decay(50, 0.5, 0.2), np.linspace(0.2, 2.5, 50)])
    assert state("entropy_high", run_of(entropy=noisy(entropy, 0.05), kind="grpo")) is State.PRESENT


def test_an_agent_that_keeps_acting_at_random_is_present() -> None:
    run = run_of({"train/entropy_loss": -noisy([1.38] * 100, 0.002)}, kind="rl")
    assert state("entropy_high", run) is State.PRESENT


def test_entropy_that_is_high_at_first_and_falls_is_absent() -> None:
    assert state("entropy_high", run_of(entropy=noisy(decay(60, 2.0, 0.3), 0.05), kind="grpo")) is State.ABSENT


def test_the_entropy_of_an_agent_that_learns_is_absent_however_high() -> None:
    assert state("entropy_high", run_of(entropy=noisy(decay(80, 2.8, 1.9, 2), 0.01), kind="rl")) is State.ABSENT


def test_a_short_log_is_unknown() -> None:
    assert state("entropy_high", run_of(entropy=[1.5] * 8, kind="grpo")) is State.UNKNOWN


def test_entropy_that_stays_high_while_the_reward_rises_is_absent() -> None:
    curves = {"entropy": noisy([1.6] * 60, 0.05), "reward": noisy(np.linspace(0.2, 0.8, 60), 0.1)}
    assert state("entropy_high", run_of(curves, kind="grpo")) is State.ABSENT


def test_a_share_of_random_actions_that_never_comes_down_is_present() -> None:
    finding = seen("entropy_high", run_of({"Epsilon": [1.0] * 40, "reward": [20.0, 22.0] * 20}, kind="rl"))
    assert finding.state is State.PRESENT
    assert finding.summary.startswith("Epsilon is 1 in all 40 records")


def test_a_share_of_random_actions_that_comes_down_or_is_small_is_absent() -> None:
    for share in (np.linspace(1, 0.8, 40), np.full(40, 0.1)):
        assert state("entropy_high", run_of({"epsilon": share, "reward": [20.0, 22.0] * 20}, kind="rl")) is State.ABSENT


def test_the_epsilon_of_anything_else_is_unknown() -> None:
    assert state("entropy_high", run_of({"epsilon": [1.0] * 40, "loss": [2.0] * 40})) is State.UNKNOWN


def test_of_growth_entropy_that_turns_round_and_grows_is_present() -> None:
    entropy = np.concatenate([decay(50, 0.5, 0.2), np.linspace(0.2, 2.5, 50)])
    finding = seen("entropy_grows", run_of(entropy=noisy(entropy, 0.05), kind="grpo"))
    assert finding.state is State.PRESENT
    assert finding.steps[0] >= 45


def test_entropy_that_stays_as_high_as_it_began_is_absent() -> None:
    run = run_of(entropy=noisy([1.6] * 60, 0.05), kind="grpo")
    assert state("entropy_grows", run) is State.ABSENT
    assert state("entropy_high", run) is State.PRESENT


def test_entropy_that_comes_down_is_absent() -> None:
    assert state("entropy_grows", run_of(entropy=noisy(decay(60, 2.0, 0.3), 0.05), kind="grpo")) is not State.PRESENT


def test_a_few_records_are_unknown() -> None:
    assert state("entropy_grows", run_of(entropy=[0.5, 1.0, 2.0] * 3, kind="grpo")) is State.UNKNOWN


def without_chance(reward: Curve, **more: Curve) -> Run:
    return run_of({"exploration_rate": np.zeros(60), "reward": reward, **more}, kind="rl")


def test_what_was_earned_when_the_entropy_was_gone_is_told() -> None:
    curves: dict[str, Curve] = {"entropy": [0.4] * 20 + [0.002] * 80, "reward": np.linspace(0.2, 0.4, 100)}
    assert "the reward was about 0.20" in seen("entropy_low", run_of(curves, kind="grpo")).summary


@pytest.mark.parametrize(("learns_by", "answer"), [(30, State.ABSENT), (80, State.PRESENT)])
def test_a_policy_of_a_language_model_may_be_sure_of_what_it_earns_all_for_already(
    learns_by: float, answer: State
) -> None:
    steps = np.arange(200)
    reward = np.clip(0.1 + 0.9 * steps / learns_by, 0, 1)
    entropy = 2.0 * np.exp(-np.maximum(steps - 10, 0) / 8) + 1e-3
    assert state("entropy_low", run_of(reward=reward, entropy=entropy, kind="grpo")) is answer


@pytest.mark.parametrize(("first", "reward", "answer"), [(0.01, 0.39, "present"), (0.9, 0.39, "absent")])
def test_an_agent_that_hardly_ever_tried_anything_and_does_not_learn_is_seen(
    first: float, reward: float, answer: str
) -> None:
    share = [first, *[0.01] * 10]
    run = run_of(reward=[reward] * 11, exploration_rate=share, kind="rl")
    assert state("exploration_ends_early", run) == answer


def test_an_agent_that_learns_without_random_actions_needs_none() -> None:
    run = run_of(reward=noisy(np.linspace(0, 10, 60), 0.2), exploration_rate=[0.02] * 60, kind="rl")
    assert state("exploration_ends_early", run) is State.ABSENT


@pytest.mark.parametrize(("length", "end", "answer"), [
    (np.full(60, 40.0), 0.08, State.PRESENT), (np.full(60, 200.0), -3.2, State.PRESENT),
    (np.full(60, 25.0), 0.5, State.PRESENT),
    (np.concatenate([np.linspace(40, 13, 30), np.full(30, 13.0)]), 0.9, State.ABSENT),  # it finds shorter ways
    (np.concatenate([np.linspace(40, 500, 30), np.full(30, 500.0)]), 500.0, State.ABSENT),  # it stays upright longer
])  # fmt: skip
def test_an_agent_that_never_tries_and_repeats_one_episode_is_seen_though_its_mean_reward_came_up(
    length: Curve, end: float, answer: State
) -> None:
    reward = end - 0.05 * np.clip(30 - np.arange(60.0), 0, None)
    assert state("exploration_ends_early", without_chance(reward, episode_length=length)) is answer


def test_rewards_that_differ_in_episodes_of_one_length_are_those_of_an_agent_that_learns() -> None:
    reward = noisy(np.linspace(0, 10, 60), 0.02)
    assert state("exploration_ends_early", without_chance(reward, episode_length=np.full(60, 40.0))) is State.ABSENT


def test_a_fiftieth_of_a_high_entropy_is_a_collapse_where_the_reward_rests() -> None:
    curves: dict[str, Curve] = {"entropy": noisy(decay(200, 1.9, 0.012, 14), 0.05)}
    curves["reward"] = noisy(0.38 - 0.18 * np.exp(-np.arange(200) / 12), 0.05)
    assert state("entropy_low", run_of(curves, kind="grpo")) is State.PRESENT
