"""`clip_ratio_high`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, state

NAME = "clip_ratio/region_mean"


def test_a_lasting_share_above_three_tenths_is_present() -> None:
    assert state("clip_ratio_high", run_of({NAME: [0.05] * 30 + [0.5] * 20}, kind="grpo")) is State.PRESENT


def test_a_single_record_is_absent() -> None:
    assert state("clip_ratio_high", run_of({NAME: [0.05] * 30 + [0.6] + [0.05] * 30}, kind="grpo")) is State.ABSENT


def test_four_tenths_are_within_what_small_agents_learn_with() -> None:
    assert state("clip_ratio_high", run_of({"train/clip_fraction": noisy([0.4] * 40, 0.05)}, kind="rl")) is State.ABSENT


def test_a_run_that_does_not_log_it_is_unknown() -> None:
    assert state("clip_ratio_high", run_of(reward=[0.1] * 40, kind="grpo")) is State.UNKNOWN
