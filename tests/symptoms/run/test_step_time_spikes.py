"""`step_time_spikes`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state


def _with_slow(steps: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    times = noisy([1.0] * 400, 0.1)
    times[steps] *= 8
    return times


def test_scattered_slow_steps_are_present() -> None:
    finding = seen("step_time_spikes", run_of(step_time=_with_slow([41, 77, 150, 163, 290, 371])))
    assert finding.state is State.PRESENT
    assert finding.values["count"] == 6


def test_a_stall_at_every_eighth_step_is_present() -> None:
    assert state("step_time_spikes", run_of(step_time=_with_slow(list(range(7, 400, 8))))) is State.PRESENT


def test_evaluations_at_every_hundredth_step_are_a_remark() -> None:
    finding = seen("step_time_spikes", run_of(step_time=_with_slow([99, 199, 299, 399])))
    assert finding.state is State.ABSENT
    assert finding.values["period"] == 100


def test_slow_first_steps_are_absent() -> None:
    assert state("step_time_spikes", run_of(step_time=[60.0, 9.0, 4.0, *[1.0] * 100])) is State.ABSENT


def test_ten_records_are_unknown() -> None:
    assert state("step_time_spikes", run_of(step_time=[1.0] * 10)) is State.UNKNOWN


def test_a_few_slow_steps_that_cost_the_run_next_to_nothing_are_a_remark() -> None:
    times = noisy([1.0] * 2000, 0.1)
    times[[141, 777, 1290]] = 5
    finding = seen("step_time_spikes", run_of(step_time=times))
    assert finding.state is State.ABSENT
    assert 0 < (finding.values["cost"] or 0) < 0.01
