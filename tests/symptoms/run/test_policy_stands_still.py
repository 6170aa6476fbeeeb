from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "policy_stands_still"


def test_a_divergence_of_exactly_zero_in_every_record_is_seen() -> None:
    assert state(NAME, run_of(kl=[0.0] * 20, clip_ratio=[0.0] * 20, reward=[1.0] * 20, kind="grpo")) is State.PRESENT


def test_a_policy_that_moves_a_little_is_not() -> None:
    assert state(NAME, run_of(kl=[0.0, *[1e-5] * 19], reward=[1.0] * 20, kind="grpo")) is State.ABSENT


def test_clipping_alone_cannot_tell() -> None:
    assert state(NAME, run_of(clip_ratio=[0.0] * 20, reward=[1.0] * 20, kind="grpo")) is State.UNKNOWN


def test_what_rounding_leaves_of_two_equal_policies_is_seen_and_told() -> None:
    finding = seen(NAME, run_of(approx_kl=[1e-9, 3e-8] * 10, clip_ratio=[0.0] * 20, reward=[20.0] * 20, kind="rl"))
    assert finding.state is State.PRESENT
    assert "at most 3e-08" in finding.summary


def test_a_policy_whose_entropy_falls_moves_whatever_divergence_is_logged() -> None:
    run = run_of(kl=[0.0] * 40, entropy=noisy(decay(40, 1.4, 0.1), 0.01), reward=[5.0] * 40, kind="rl")
    assert state(NAME, run) is State.UNKNOWN


def test_a_policy_that_earns_more_and_more_moves_whatever_divergence_is_logged() -> None:
    run = run_of(approx_kl=[0.0] * 40, reward=noisy(np.linspace(20, 200, 40), 0.05), kind="rl")
    assert state(NAME, run) is State.UNKNOWN


def test_noise_in_the_entropy_of_a_fixed_policy_is_no_movement() -> None:
    run = run_of(kl=[0.0] * 40, entropy=noisy([1.4] * 40, 0.05), reward=noisy([20.0] * 40, 0.1), kind="rl")
    assert state(NAME, run) is State.PRESENT
