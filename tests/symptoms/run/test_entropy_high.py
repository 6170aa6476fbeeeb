"""`entropy_high`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


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
