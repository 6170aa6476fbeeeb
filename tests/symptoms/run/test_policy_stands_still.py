from __future__ import annotations

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

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
