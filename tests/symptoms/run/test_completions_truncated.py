"""`completions_truncated`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

NAME = "completions/clipped_ratio"


def test_nearly_all_completions_at_the_limit_are_present() -> None:
    assert state("completions_truncated", run_of({NAME: [0.95] * 40}, kind="grpo")) is State.PRESENT


def test_the_onset_is_where_they_reach_the_limit() -> None:
    finding = seen("completions_truncated", run_of({NAME: [0.3] * 60 + [1.0] * 60}, kind="grpo"))
    assert finding.state is State.PRESENT
    assert finding.steps == [61]


def test_a_share_that_comes_down_for_good_is_absent() -> None:
    assert state("completions_truncated", run_of({NAME: [0.95] * 20 + [0.2] * 60}, kind="grpo")) is State.ABSENT


def test_single_records_are_absent() -> None:
    assert state("completions_truncated", run_of({NAME: [0.2, 0.2, 1.0, 0.2] * 15}, kind="grpo")) is State.ABSENT


def test_a_run_that_does_not_log_it_is_unknown() -> None:
    assert state("completions_truncated", run_of(reward=[0.1] * 40, kind="grpo")) is State.UNKNOWN
