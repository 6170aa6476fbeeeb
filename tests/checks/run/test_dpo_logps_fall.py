from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, run_of, seen, state


def rewards(chosen: float, rejected: float, seed: int = 0) -> dict[str, Curve]:
    noise = 0.1 * np.random.default_rng(seed).standard_normal((2, 100))
    return {
        "rewards/chosen": np.linspace(0, chosen, 100) + noise[0],
        "rewards/rejected": np.linspace(0, rejected, 100) + noise[1],
    }


@pytest.mark.parametrize("seed", range(5))
def test_both_falling_without_a_margin_is_present(seed: int) -> None:
    finding = seen("dpo_logps_fall", run_of(rewards(-6, -6.5, seed), config={"beta": 0.1}))
    assert finding.state is State.PRESENT
    assert finding.values["chosen"] == pytest.approx(-60, abs=8)


@pytest.mark.parametrize("seed", range(5))
def test_log_probabilities_are_read_where_there_are_no_rewards(seed: int) -> None:
    noise = 5 * np.random.default_rng(seed).standard_normal((2, 200))
    logps = {"logps/chosen": -200 - np.linspace(0, 150, 200), "logps/rejected": -220 - np.linspace(0, 160, 200)}
    run = run_of({name: curve + one for (name, curve), one in zip(logps.items(), noise, strict=True)})
    assert state("dpo_logps_fall", run) is State.PRESENT


def test_both_falling_while_the_margin_grows_is_remarked_only() -> None:
    finding = seen("dpo_logps_fall", run_of(rewards(-1.5, -4.5)))
    assert finding.state is State.ABSENT
    assert "move apart" in finding.summary


@pytest.mark.parametrize(("chosen", "rejected"), [(0.5, -1.0), (-0.3, -0.9), (0.0, 0.0)])
def test_small_or_opposite_changes_are_absent(chosen: float, rejected: float) -> None:
    assert state("dpo_logps_fall", run_of(rewards(chosen, rejected))) is State.ABSENT


def test_without_rewards_or_log_probabilities_it_cannot_be_told() -> None:
    assert state("dpo_logps_fall", run_of({"rewards/margins": [0.0] * 30})) is State.UNKNOWN


def logged_logps(chosen: float) -> dict[str, Curve]:
    return {"logps/chosen": -120 + np.linspace(0, 10 * chosen, 100), "logps/rejected": np.linspace(-130, -600, 100)}


def test_chosen_answers_that_lose_most_of_their_probability_are_present_however_the_margin_grows() -> None:
    finding = seen("dpo_logps_fall", run_of(rewards(-20, -45) | logged_logps(-20)))
    assert finding.state is State.PRESENT
    assert "began at -12" in finding.summary


def test_chosen_answers_that_keep_most_of_it_are_remarked_only() -> None:
    assert state("dpo_logps_fall", run_of(rewards(-3, -9) | logged_logps(-3))) is State.ABSENT


def test_a_reward_model_has_no_probabilities_that_could_fall() -> None:
    curves = {"accuracy": [0.5] * 20, "margin": [0.0] * 20, "min_reward": [-1.0] * 20, "max_reward": [1.0] * 20}
    assert state("dpo_logps_fall", run_of(curves, kind="preference")) is State.ABSENT


def test_rewards_that_begin_far_from_zero_are_no_log_ratios() -> None:
    steps = np.arange(100)
    rewards = {
        "rewards/chosen": -2.2 - 0.4 * (1 - np.exp(-steps / 25)),
        "rewards/rejected": -2.6 - 1.5 * (1 - np.exp(-steps / 25)),
    }
    assert state("dpo_logps_fall", run_of(rewards)) is State.UNKNOWN


def of_rewards(chosen: float, rejected: float) -> Run:
    scatter = 0.02 * np.random.default_rng(0).standard_normal((2, 80))
    return run_of(
        {
            "rewards/chosen": np.linspace(0, chosen, 80) + scatter[0],
            "rewards/rejected": np.linspace(0, rejected, 80) + scatter[1],
        },
        config={"beta": 0.1},
        kind="preference",
    )


def test_the_log_probabilities_are_read_where_the_rewards_stay_at_zero_as_of_a_reference_that_is_trained_too() -> None:
    scatter = 5 * np.random.default_rng(0).standard_normal((2, 200))
    logps = {
        "logps/chosen": -200 - np.linspace(0, 150, 200) + scatter[0],
        "logps/rejected": -220 - np.linspace(0, 160, 200) + scatter[1],
    }
    none = {"rewards/chosen": np.zeros(200), "rewards/rejected": np.zeros(200)}
    assert state("dpo_logps_fall", run_of({**logps, **none}, kind="preference")) is State.PRESENT


@pytest.mark.parametrize("beta", [0.01, 0.5])
def test_beta_is_measured_where_no_setting_says_it(beta: float) -> None:
    curves = rewards(-400 * beta, -900 * beta) | {
        "logps/chosen": np.linspace(-250, -650, 100),
        "logps/rejected": np.linspace(-270, -1170, 100),
    }
    finding = seen("dpo_logps_fall", run_of(curves))
    assert finding.state is State.PRESENT
    assert finding.values["chosen"] == pytest.approx(-375, rel=0.1)
    assert f"beta = {beta:.2g}, by which they move with logps/chosen" in finding.summary


def test_a_beta_that_nothing_shows_is_an_assumption() -> None:
    assert "if beta is 0.1, the default of TRL" in seen("dpo_logps_fall", run_of(rewards(-6, -6.5))).summary
