"""`data_wait_high`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


def test_half_of_each_step_is_present() -> None:
    finding = seen("data_wait_high", run_of(data_time=noisy([0.5] * 40, 0.2), step_time=noisy([1.0] * 40, 0.05)))
    assert finding.state is State.PRESENT
    assert 0.4 < (finding.values["share"] or 0) < 0.6


def test_a_step_time_without_the_wait_is_added_to_it() -> None:
    finding = seen("data_wait_high", run_of(data_time=[3.0] * 40, step_time=[1.0] * 40))
    assert finding.values["share"] == 0.75


def test_only_the_first_steps_waiting_is_absent() -> None:
    assert state("data_wait_high", run_of(data_time=[0.9] * 4 + [0.01] * 60, time=[1.0] * 64)) is State.ABSENT


def test_an_unknown_step_time_is_unknown() -> None:
    assert state("data_wait_high", run_of(data_time=[0.9] * 40)) is State.UNKNOWN
