"""`reward_sinks`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.diagnose import diagnose
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

SINKING = np.linspace(-180, -400, 60)


def agent(reward: NDArray[np.float64]) -> Run:
    """A run of 60 records of an agent with a policy."""
    return run_of(reward=reward, policy_loss=noisy([-0.002] * 60, 0.5), kind="rl")


def test_an_agent_that_gets_worse_bit_by_bit_is_present() -> None:
    finding = seen("reward_sinks", agent(noisy(SINKING, 0.02)))
    assert finding.state is State.PRESENT
    assert "never above where it began" in finding.summary


def test_it_speaks_for_a_loss_with_the_wrong_sign() -> None:
    curves = {"reward": noisy(SINKING, 0.02), "value_loss": noisy([6e3] * 60, 0.05), "policy_loss": np.full(60, -0.01)}
    assert "wrong_loss" in [one.cause for one in diagnose(run_of(curves, kind="rl")).hypotheses[:2]]


def test_a_reward_that_rose_before_it_fell_is_absent() -> None:
    reward = np.concatenate([np.linspace(20, 250, 40), np.linspace(250, 130, 20)])
    assert state("reward_sinks", agent(noisy(reward, 0.02))) is State.ABSENT


def test_an_agent_that_is_worse_at_first_and_learns_is_absent() -> None:
    reward = np.concatenate([np.linspace(-180, -300, 20), np.linspace(-300, -20, 40)])
    assert state("reward_sinks", agent(noisy(reward, 0.02))) is State.ABSENT


def test_a_drop_at_once_to_a_level_that_stays_is_absent() -> None:
    reward = np.concatenate([[-100.0], np.full(59, -400.0)])
    assert state("reward_sinks", agent(noisy(reward, 0.01))) is State.ABSENT


def test_an_agent_that_acts_less_and_less_at_random_cannot_be_told() -> None:
    run = run_of(reward=noisy(np.linspace(22, 9, 60), 0.02), epsilon=np.linspace(1, 0.05, 60), kind="rl")
    assert state("reward_sinks", run) is State.UNKNOWN


def test_an_agent_of_whose_policy_nothing_is_logged_may_act_less_and_less_at_random() -> None:
    run = run_of(reward=noisy(np.linspace(22, 9, 60), 0.02), loss=[0.1] * 60, kind="rl")
    assert state("reward_sinks", run) is State.UNKNOWN


def test_a_language_model_that_gets_worse_bit_by_bit_is_present() -> None:
    run = run_of(reward=noisy(np.linspace(0.6, 0.1, 60), 0.05), completion_length=[80.0] * 60, kind="grpo")
    assert state("reward_sinks", run) is State.PRESENT


def test_a_log_that_begins_in_mid_run_cannot_be_told() -> None:
    run = run_of(reward=dict(zip(range(5_000_000, 5_060_000, 1000), noisy(SINKING, 0.02), strict=True)), kind="rl")
    assert state("reward_sinks", run) is State.UNKNOWN


def test_a_few_records_are_unknown() -> None:
    assert state("reward_sinks", run_of(reward=[-1.0, -2.0, -3.0], kind="rl")) is State.UNKNOWN
