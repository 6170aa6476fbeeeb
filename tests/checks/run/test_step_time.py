from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def test_steps_that_get_slower_and_slower_are_present() -> None:
    finding = seen("step_time_grows", run_of(step_time=noisy(np.linspace(1, 2.5, 200), 0.1)))
    assert finding.state is State.PRESENT
    assert 1.8 < (finding.values["factor"] or 0) < 3


def test_a_lasting_fall_of_throughput_is_present_with_its_onset() -> None:
    speed = noisy([14000.0] * 100 + [7000.0] * 100, 0.03)
    finding = seen("step_time_grows", run_of(tokens_per_second=speed))
    assert finding.state is State.PRESENT
    assert 85 <= (finding.steps[0] or 0) <= 115


def test_slow_first_steps_are_absent() -> None:
    assert state("step_time_grows", run_of(step_time=[30.0, 5.0, *[1.0] * 100])) is State.ABSENT


def test_a_slow_stretch_that_passes_is_absent() -> None:
    assert state("step_time_grows", run_of(step_time=[1.0] * 60 + [2.0] * 30 + [1.0] * 60)) is State.ABSENT


def test_noise_is_absent() -> None:
    assert state("step_time_grows", run_of(step_time=noisy([1.0] * 200, 0.3, tails="lognormal"))) is State.ABSENT


def test_a_clock_is_unknown() -> None:
    assert state("step_time_grows", run_of(time=np.arange(100.0))) is State.UNKNOWN


def test_steps_that_are_slower_as_their_batch_grows_are_absent() -> None:
    time, rows = noisy([1.0] * 50 + [1.9] * 50 + [3.7] * 50, 0.03), [16.0] * 50 + [32.0] * 50 + [64.0] * 50
    assert state("step_time_grows", run_of(step_time=time)) is State.PRESENT
    assert state("step_time_grows", run_of({"global batch size": rows}, step_time=time)) is State.ABSENT
    assert state("step_time_grows", run_of({"global batch size": [16.0] * 150}, step_time=time)) is State.PRESENT


@pytest.mark.parametrize("name", ["iter_time_ms", "ms_per_step", "iteration_time", "batch_time_ms"])
def test_a_step_time_is_judged_under_the_names_of_plain_loops(name: str) -> None:
    slower = 250 * (1 + np.arange(100) / 50)
    assert state("step_time_grows", run_of({name: slower})) is State.PRESENT


def test_a_falling_throughput_is_a_growing_step_time() -> None:
    assert state("step_time_grows", run_of({"images_per_second": 900 / (1 + np.arange(100) / 50)})) is State.PRESENT


def _as_its_mean(seconds: np.ndarray, *, whole: bool) -> dict[str, np.ndarray]:
    """Return the mean pace since the start, and the clock, of an agent that takes so long for each thousand steps."""
    steps, clock = 1000.0 * np.arange(1, len(seconds) + 1), np.cumsum(seconds)
    return {"time/fps": np.floor(steps / clock), "time/time_elapsed": np.floor(clock) if whole else clock}


def test_a_mean_since_the_start_that_falls_is_no_pace() -> None:
    learns_late = np.where(np.arange(100) < 10, 0.1, 20.0)  # a fast beginning, and an even pace from there on
    logged = _as_its_mean(learns_late, whole=False)
    assert logged["time/fps"][30] > 1.25 * logged["time/fps"][-1]
    assert state("step_time_grows", run_of(logged, every=1000)) is State.ABSENT
    assert state("step_time_grows", run_of({"time/fps": logged["time/fps"]}, every=1000)) is State.PRESENT


def test_steps_that_get_slower_show_by_the_clock_beside_such_a_mean() -> None:
    slower = _as_its_mean(20.0 * (1 + np.arange(100) / 20), whole=True)
    assert state("step_time_grows", run_of(slower, every=1000)) is State.PRESENT


def test_such_a_mean_beside_a_clock_of_few_seconds_is_unknown() -> None:
    logged = _as_its_mean(np.where(np.arange(100) < 10, 0.01, 1.3), whole=True)
    assert state("step_time_grows", run_of(logged, every=1000)) is State.UNKNOWN


def test_ten_records_of_which_the_later_half_take_twice_as_long_are_enough() -> None:
    times = [3.0, 1.0, 1.05, 0.98, 1.02, 2.0, 2.1, 2.05, 1.98, 2.2]
    assert state("step_time_grows", run_of(step_time=times)) is State.PRESENT
    assert state("step_time_grows", run_of(step_time=times, kind="rl")) is State.UNKNOWN


@pytest.mark.parametrize(
    "times",
    [
        [9.0, 3.0, *[1.0] * 8],
        [1.0, 1.1, 0.9, 1.0, 1.1, 1.0, 4.0, 1.1, 1.0, 4.2],
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.3, 1.2, 1.3, 1.2],
        [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0],
        [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0],
    ],
    ids=["compilation", "evaluations", "a fifth", "in turn", "seven records"],
)
def test_a_handful_of_records_in_which_less_changes_cannot_tell(times: list[float]) -> None:
    assert state("step_time_grows", run_of(step_time=times)) is State.UNKNOWN


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


def test_slow_first_steps_are_absent_of_step_time_spikes() -> None:
    assert state("step_time_spikes", run_of(step_time=[60.0, 9.0, 4.0, *[1.0] * 100])) is State.ABSENT


def test_ten_records_are_unknown() -> None:
    assert state("step_time_spikes", run_of(step_time=[1.0] * 10)) is State.UNKNOWN


def test_a_few_slow_steps_that_cost_the_run_next_to_nothing_are_a_remark() -> None:
    times = noisy([1.0] * 2000, 0.1)
    times[[141, 777, 1290]] = 5
    finding = seen("step_time_spikes", run_of(step_time=times))
    assert finding.state is State.ABSENT
    assert 0 < (finding.values["cost"] or 0) < 0.01


@pytest.mark.parametrize("name", ["epoch_time", "elapsed", "_timestamp"])
def test_epochs_and_clocks_tell_of_steps_that_slow_down_where_the_pace_is_not_logged(name: str) -> None:
    pace = np.concatenate([np.full(20, 1.03), np.full(20, 4.07)])
    column = pace if name == "epoch_time" else 100.0 + np.cumsum(pace)
    assert state("step_time_grows", run_of({"loss": decay(40), name: column})) is State.PRESENT
    even = np.full(40, 1.03)
    column = even if name == "epoch_time" else 100.0 + np.cumsum(even)
    assert state("step_time_grows", run_of({"loss": decay(40), name: column})) is State.ABSENT


def test_the_pauses_of_evaluations_on_a_clock_are_no_slower_steps() -> None:
    pace = np.full(60, 1.03)
    pace[9::10] = 15.0
    assert state("step_time_grows", run_of({"loss": decay(60), "elapsed": np.cumsum(pace)})) is State.ABSENT


@pytest.mark.parametrize(("late", "expected"), [(1.6, State.ABSENT), (2.5, State.PRESENT)])
def test_steps_that_come_to_take_twice_as_long_are_more_than_other_work_on_the_machine(
    late: float, expected: State
) -> None:
    run = run_of(step_time=noisy([1.0] * 100 + [late] * 100, 0.02))
    assert state("step_time_grows", run) is State.PRESENT
    assert state("step_time_doubles", run) is expected


@pytest.mark.parametrize("pace", [[1.0] * 8 + [4.0] * 6, list(np.geomspace(1, 6, 14))])
def test_steps_that_come_to_take_far_longer_are_seen_in_a_dozen_records(pace: list[float]) -> None:
    assert state("step_time_grows", run_of(step_time=[1.0, *pace])) is State.PRESENT
    assert state("step_time_grows", run_of(step_time=[1.0, *pace[::-1]])) is State.UNKNOWN


@pytest.mark.parametrize(("wait", "expected"), [(0.9, State.PRESENT), (0.01, State.ABSENT)])
def test_slow_steps_that_wait_for_data_are_told_from_others(wait: float, expected: State) -> None:
    times, waits = np.full(200, 0.2), np.full(200, 0.01)
    times[10::8], waits[10::8] = 1.2, wait
    run = run_of(step_time=times, data_time=waits)
    assert state("slow_steps_wait", run) is expected
