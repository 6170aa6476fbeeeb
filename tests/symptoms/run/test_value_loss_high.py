"""`value_loss_high`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "train/value_loss"


def test_growth_by_orders_of_magnitude_past_the_returns_is_present() -> None:
    curves = {NAME: np.exp(np.linspace(0, 16, 80)), "rollout/ep_rew_mean": np.linspace(10, 20, 80)}
    finding = seen("value_loss_high", run_of(curves, kind="rl"))
    assert finding.state is State.PRESENT
    assert (finding.values["factor"] or 0) > 1e5


def test_an_infinite_value_loss_is_present() -> None:
    assert state("value_loss_high", run_of({NAME: [1.0] * 20 + [float("inf")]}, kind="rl")) is State.PRESENT


def test_growth_with_the_square_of_the_returns_is_absent() -> None:
    returns = np.linspace(1, 500, 100)
    curves = {NAME: noisy(0.1 * returns**2, 0.4), "rollout/ep_rew_mean": returns}
    assert state("value_loss_high", run_of(curves, kind="rl")) is State.ABSENT


def test_a_large_loss_that_wobbles_is_absent() -> None:
    curves = {NAME: noisy([2e4] * 100, 0.5, tails="lognormal"), "rollout/ep_rew_mean": np.full(100, -300.0)}
    assert state("value_loss_high", run_of(curves, kind="rl")) is State.ABSENT


def test_a_jump_that_comes_back_is_absent() -> None:
    assert state("value_loss_high", run_of({NAME: [1.0] * 40 + [1e5] + [1.0] * 40}, kind="rl")) is State.ABSENT


def test_a_few_records_are_unknown() -> None:
    assert state("value_loss_high", run_of({NAME: [1.0, 1e6]}, kind="rl")) is State.UNKNOWN


def test_a_loss_that_no_returns_explain_is_present_though_it_came_back() -> None:
    loss = np.concatenate([np.full(20, 0.1), np.full(8, 4e11), np.full(40, 0.05)])
    finding = seen("value_loss_high", run_of(value_loss=loss, reward=np.linspace(0.1, 0.9, 68), kind="rl"))
    assert finding.state is State.PRESENT
    assert finding.steps == [21]
    assert "comes back" in finding.summary


def test_a_single_record_beyond_all_returns_is_present() -> None:
    finding = seen("value_loss_high", run_of(value_loss=[1e28], reward=[-1200.0], kind="rl"))
    assert finding.state is State.PRESENT
    assert "comes back" not in finding.summary


def test_the_loss_of_q_learning_is_that_of_its_critic() -> None:
    curves = {"loss": np.exp(np.linspace(0, 60, 80)), "reward": np.full(80, -500.0)}
    assert state("value_loss_high", run_of(curves, kind="rl")) is State.PRESENT


def test_a_loss_that_takes_both_signs_is_no_critics() -> None:
    loss = np.exp(np.linspace(0, 60, 80)) * np.where(np.arange(80) % 2, 1, -1)
    assert state("value_loss_high", run_of(loss=loss, reward=np.ones(80), kind="rl")) is State.UNKNOWN


def test_a_loss_far_beyond_the_returns_is_present_where_the_critic_explains_nothing() -> None:
    curves = {"value_loss": np.full(30, 1.6e8), "reward": np.linspace(20, 124, 30)}
    run = run_of({**curves, "explained_variance": np.tile([0.0, -0.0006], 15)}, kind="rl")
    finding = seen("value_loss_high", run)
    assert finding.state is State.PRESENT
    assert "explained_variance stays at zero" in finding.summary
    assert (
        state("value_loss_high", run_of({**curves, "explained_variance": np.full(30, 0.6)}, kind="rl")) is State.ABSENT
    )


def test_a_critic_that_explains_nothing_of_rewards_that_are_noise_is_absent() -> None:
    curves = {"value_loss": noisy([0.25] * 60, 0.1), "reward": noisy([1.0] * 60, 0.05)}
    run = run_of({**curves, "explained_variance": noisy([0.01] * 60, 0.5)}, kind="rl")
    assert state("value_loss_high", run) is State.ABSENT


def test_the_length_of_episodes_bounds_what_returns_can_explain() -> None:
    curves = {"value_loss": np.full(6, 1.3e12), "reward": np.full(6, -1500.0)}
    assert state("value_loss_high", run_of(curves, kind="rl")) is State.UNKNOWN
    assert state("value_loss_high", run_of({**curves, "ep_len_mean": np.full(6, 200.0)}, kind="rl")) is State.PRESENT
    assert state("value_loss_high", run_of({**curves, "ep_len_mean": np.full(6, 1000.0)}, kind="rl")) is State.UNKNOWN
