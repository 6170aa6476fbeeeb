from __future__ import annotations

import pytest

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


def test_three_records_that_all_wait_for_most_of_their_step_are_enough() -> None:
    assert state("data_wait_high", run_of(data_time=[2.0, 1.6, 1.5], step_time=[2.5, 2.0, 2.0])) is State.PRESENT


def test_three_records_of_which_the_first_alone_waits_cannot_tell() -> None:
    assert state("data_wait_high", run_of(data_time=[2.0, 0.1, 0.1], step_time=[2.5, 0.5, 0.5])) is State.UNKNOWN


def test_a_step_is_as_long_as_its_rate_says_where_no_time_is_logged() -> None:
    finding = seen("data_wait_high", run_of(data_time=[0.3] * 30, steps_per_second=[2.0] * 30))
    assert finding.values["share"] == 0.6


def test_a_step_is_as_long_as_the_clock_says_where_nothing_else_does() -> None:
    clock = [0.5 * at for at in range(30)]
    finding = seen("data_wait_high", run_of(data_time=[0.3] * 30, elapsed=clock))
    assert finding.values["share"] == 0.6


def test_a_clock_at_every_tenth_step_cannot_tell_whether_the_wait_is_that_of_one_step() -> None:
    clock = [2.0 * at for at in range(30)]
    assert state("data_wait_high", run_of(data_time=[0.15] * 30, elapsed=clock, every=10)) is State.UNKNOWN


def test_a_step_is_as_long_as_its_wait_and_its_passes_where_neither_step_nor_clock_is_known() -> None:
    waits = run_of({"fetch_ms": [130.0] * 30, "compute_ms": [10.0] * 30}, every=5)
    assert seen("data_wait_high", waits).values["share"] == pytest.approx(130 / 140)
    keeps_up = {"fetch_ms": [20.0] * 30, "forward_ms": [20.0] * 30}
    assert state("data_wait_high", run_of(keeps_up, every=5)) is State.ABSENT
    assert state("data_wait_high", run_of({**keeps_up, "backward_ms": [5.0] * 30}, every=5)) is State.PRESENT


def test_passes_that_are_not_all_of_a_step_by_the_clock_cannot_tell() -> None:
    queued = {"fetch_ms": [8.0] * 30, "fwd_bwd_ms": [2.0] * 30, "elapsed": [0.5 * at for at in range(30)]}
    assert state("data_wait_high", run_of(queued, every=5)) is State.UNKNOWN


def test_a_wait_in_milliseconds_is_not_one_in_seconds() -> None:
    finding = state("data_wait_high", run_of({"perf/data_ms": [30.0] * 30, "perf/step_time_s": [1.0] * 30}))
    assert finding is State.ABSENT


def test_a_wait_of_evaluation_alone_cannot_tell() -> None:
    assert state("data_wait_high", run_of({"eval/data_time": [0.9] * 30, "step_time": [1.0] * 30})) is State.UNKNOWN


def test_what_the_passes_leave_of_a_step_counts_where_the_device_is_seldom_busy() -> None:
    logged: dict[str, list[float]] = {
        "step_ms": noisy([900.0] * 40, 0.05).tolist(),
        "fwd_ms": [70.0] * 40,
        "bwd_ms": [130.0] * 40,
    }
    assert state("data_wait_high", run_of({**logged, "gpu_util": [21.0] * 40})) is State.PRESENT
    assert state("data_wait_high", run_of({**logged, "gpu_util": [96.0] * 40})) is State.UNKNOWN
    assert state("data_wait_high", run_of(logged)) is State.UNKNOWN
