"""`critic`: its loss, its values and what they explain, with near-misses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, seen, state

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


BEYOND = "q_values_beyond_returns"
RETURNS = noisy(decay(60, 20, 200), 0.05)


@pytest.mark.parametrize("name", ["losses/q_values", "losses/qf1_values", "AverageQ1Vals", "mean_q"])
def test_values_of_thousands_where_episodes_bring_two_hundred_are_present(name: str) -> None:
    finding = seen(BEYOND, run_of({name: decay(60, 1, 6000)}, reward=RETURNS, kind="rl"))
    assert finding.state is State.PRESENT
    assert finding.values["largest_return"] == pytest.approx(200, rel=0.15)


@pytest.mark.parametrize(("name", "sees"), [("q_mean", True), ("train/q_max", True), ("seq_mean", False)])
def test_a_mean_or_a_maximum_of_q_is_one_of_the_values_of_actions(name: str, sees: bool) -> None:
    run = run_of({name: decay(60, 1, 6000)}, reward=RETURNS, value_loss=decay(60, 1, 2), kind="rl")
    assert (state(BEYOND, run) is State.PRESENT) is sees


@pytest.mark.parametrize("values", [decay(60, 1, 100), decay(60, 1, -900), [*[9e3] * 20, *[150.0] * 40]])
def test_values_about_as_large_as_returns_or_that_come_back_are_absent(values: list[float]) -> None:
    assert state(BEYOND, run_of({"losses/q_values": values}, reward=RETURNS, kind="rl")) is State.ABSENT


@pytest.mark.parametrize(("ends_at", "present"), [(1400.0, True), (220.0, False)])
def test_values_that_still_grow_while_returns_have_come_to_rest_are_present(ends_at: float, present: bool) -> None:
    returns = noisy(np.minimum(20.0 + 12 * np.arange(60), 200.0), 0.05)
    run = run_of({"losses/q_values": np.linspace(0, ends_at, 60)}, reward=returns, kind="rl")
    assert (state(BEYOND, run) is State.PRESENT) is present


def test_without_values_or_with_few_it_cannot_be_told() -> None:
    assert state(BEYOND, run_of(reward=RETURNS, kind="rl")) is State.UNKNOWN
    few = {10: 1e4, 20: 1e4}
    assert state(BEYOND, run_of({"losses/q_values": few}, reward=RETURNS, kind="rl")) is State.UNKNOWN


def test_returns_below_zero_are_measured_by_their_size() -> None:
    assert state(BEYOND, run_of({"losses/q_values": decay(60, 0, -300)}, reward=-RETURNS, kind="rl")) is State.ABSENT
    values = {"losses/q_values": decay(60, 0, -1e5)}
    assert state(BEYOND, run_of(values, reward=np.minimum(-RETURNS, -100), kind="rl")) is State.PRESENT


def agent(explained: Curve, reward: Curve | None = None) -> Run:
    earned = noisy(np.full(len(explained), 20.0), 0.1) if reward is None else reward
    return run_of({"train/explained_variance": explained, "rollout/ep_rew_mean": earned}, kind="rl")


def scattered(level: Curve, size: float = 0.15, seed: int = 0) -> NDArray[np.float64]:
    return np.asarray(level) + size * np.random.default_rng(seed).standard_normal(len(level))


def test_a_critic_that_stays_worse_than_a_constant_is_present() -> None:
    finding = seen("explained_variance_low", agent(scattered(np.full(60, -0.8))))
    assert finding.state is State.PRESENT
    assert (finding.values["late"] or 0) < -0.5


def test_a_critic_that_loses_what_it_explained_is_present_from_where_it_is_lost() -> None:
    finding = seen("explained_variance_low", agent(scattered(np.concatenate([np.full(40, 0.7), np.full(60, -0.3)]))))
    assert finding.state is State.PRESENT
    assert 38 <= (finding.steps[0] or 0) <= 52


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "level",
    [
        np.concatenate([np.full(20, -1.0), np.linspace(-1.0, 0.8, 60)]),  # it begins badly
        np.full(60, 0.0),  # returns are mostly chance
        np.linspace(0.9, 0.2, 60),  # the better the policy, the less there is to explain
        np.where(np.arange(60) % 10 == 0, -5.0, 0.4),  # single batches
        np.concatenate([np.linspace(-0.5, 0.8, 30), np.full(30, 0.05)]),
    ],
    ids=["begins badly", "chance", "falls a little", "single batches", "comes to zero"],
)
def test_a_critic_that_is_bad_at_first_now_and_then_or_of_no_use_is_absent(level: Curve, seed: int) -> None:
    assert state("explained_variance_low", agent(scattered(level, 0.04, seed))) is State.ABSENT


def test_a_bad_critic_of_an_agent_that_learns_is_a_remark() -> None:
    finding = seen("explained_variance_low", agent(scattered(np.full(60, -0.8)), noisy(np.linspace(20, 200, 60), 0.1)))
    assert finding.state is State.ABSENT
    assert "rises all the same" in finding.summary


def test_what_a_critic_explains_of_equal_returns_or_in_a_few_records_cannot_be_told() -> None:
    assert state("explained_variance_low", agent(np.full(60, -0.8), [500.0] * 60)) is State.UNKNOWN
    assert state("explained_variance_low", agent(np.full(10, -0.8))) is State.UNKNOWN


def test_a_critic_whose_loss_explodes_counts_once() -> None:
    curves = {"value_loss": np.exp(np.linspace(0, 16, 80)), "reward": noisy([10.0] * 80, 0.1)}
    run = run_of({**curves, "explained_variance": np.full(80, -3.0)}, kind="rl")
    assert state("value_loss_high", run) is State.PRESENT
    assert state("explained_variance_low", run) is State.UNKNOWN


def test_values_that_go_on_growing_beyond_the_returns_while_these_do_not_are_present() -> None:
    stays, grows = noisy([200.0] * 60, 0.05), noisy(np.linspace(20, 200, 60), 0.05)
    values = np.linspace(10, 1600, 60)
    assert state(BEYOND, run_of({"losses/q_values": values}, reward=stays, kind="rl")) is State.PRESENT
    assert state(BEYOND, run_of({"losses/q_values": values}, reward=grows, kind="rl")) is State.ABSENT
    level = decay(60, 10, 900, 15)
    assert state(BEYOND, run_of({"losses/q_values": level}, reward=stays, kind="rl")) is State.ABSENT


def test_the_discount_and_the_length_of_episodes_say_how_large_values_may_be() -> None:
    curves = {"losses/q_values": np.full(60, 1500.0), "episode_length": np.full(60, 25.0)}
    short = noisy([-100.0] * 60, 0.05)
    assert state(BEYOND, run_of(curves, reward=short, kind="rl")) is State.PRESENT
    assert state(BEYOND, run_of(curves, reward=short, config={"gamma": 0.99}, kind="rl")) is State.ABSENT


def test_values_a_hundred_times_the_returns_are_told_from_one_record() -> None:
    assert state(BEYOND, run_of({"losses/q_values": [1e6]}, reward=[120.0], kind="rl")) is State.PRESENT


def test_a_critic_that_never_explains_anything_is_told_unless_the_agent_learns() -> None:
    nothing = 1e-7 * np.random.default_rng(0).standard_normal(60)
    assert state("critic_explains_nothing", agent(nothing)) is State.PRESENT
    assert state("critic_explains_nothing", agent(nothing, noisy(decay(60, 20, 200), 0.02))) is State.ABSENT
    assert state("critic_explains_nothing", agent(scattered(np.full(60, 0.0)))) is State.ABSENT


def test_a_loss_no_network_reaches_is_high_though_returns_are_as_large() -> None:
    large = {"value_loss": np.full(60, 4e7), "train/explained_variance": np.full(60, 1e-6)}
    earned = noisy(np.full(60, 3e4), 0.1)
    assert state("value_loss_high", run_of(large, reward=earned, kind="rl")) is State.PRESENT
    explained = {**large, "train/explained_variance": np.full(60, 0.6)}
    assert state("value_loss_high", run_of(explained, reward=earned, kind="rl")) is State.ABSENT


@pytest.mark.parametrize(("end", "expected"), [(0.001, State.PRESENT), (0.3, State.ABSENT)])
def test_a_critic_that_comes_to_explain_nothing_any_more_is_worse_than_it_was(end: float, expected: State) -> None:
    worth = np.concatenate([np.linspace(0.1, 0.8, 30), np.linspace(0.8, end, 20), np.full(50, end)])
    run = run_of({"explained_variance": worth}, reward=noisy(np.full(100, -50.0), 3.0), kind="ppo")
    assert state("explained_variance_low", run) is expected


EARNED = np.concatenate([np.linspace(18, 95, 60), np.linspace(95, 56, 90)])
WORSE = np.concatenate([np.full(70, 0.82), np.linspace(0.82, -1.3, 80)])


def test_a_critic_that_gets_worse_than_a_constant_while_the_return_falls_is_present() -> None:
    curves: dict[str, Curve] = {"ep_ret": noisy(EARNED, 0.04), "ev": noisy(WORSE, 0.03), "pg_loss": [0.01] * 150}
    assert state("explained_variance_low", run_of(curves, kind="rl")) is State.PRESENT


def test_a_loss_that_grows_within_the_returns_counts_where_the_critic_no_longer_explains_them() -> None:
    loss = np.concatenate([np.full(70, 2.0), 2.0 * np.exp(np.linspace(0, 6.5, 80))])
    curves: dict[str, Curve] = {"ep_ret": noisy(EARNED, 0.04), "v_loss": noisy(loss, 0.1)}
    assert state("value_loss_high", run_of({**curves, "ev": WORSE}, kind="rl")) is State.PRESENT
    assert state("value_loss_high", run_of({**curves, "ev": np.full(150, 0.8)}, kind="rl")) is State.ABSENT
