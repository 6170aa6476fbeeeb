from __future__ import annotations

import math

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, run_of_records, seen, state

AT = np.arange(200) / 200
COSINE = 0.5 + 0.5 * np.cos(np.pi * AT)


def test_a_rate_that_goes_back_to_its_peak_from_the_middle_of_its_schedule_is_present_with_its_step() -> None:
    rate = 1e-3 * np.concatenate([COSINE[:100], COSINE[:100]])
    finding = seen("lr_jump", run_of(learning_rate=rate))
    assert finding.state is State.PRESENT
    assert finding.steps == [101]


def test_a_schedule_that_had_run_down_and_begins_anew_is_remarked_only() -> None:
    rate = 1e-3 * (0.5 + 0.5 * np.cos(np.pi * (AT * 2 % 1)))
    for every in (1, 5, 10):
        finding = seen("lr_jump", run_of(learning_rate=rate[::every]))
        assert finding.state is State.ABSENT
        assert finding.summary


def test_a_schedule_that_had_run_down_and_begins_anew_above_its_peak_is_present() -> None:
    rate = 1e-3 * np.concatenate([COSINE, 3 * COSINE])
    assert state("lr_jump", run_of(learning_rate=rate)) is State.PRESENT


def test_a_second_warmup_after_a_resume_is_present() -> None:
    first = [{"step": step + 1, "learning_rate": COSINE[step]} for step in range(120)]
    second = [{"step": step + 1, "learning_rate": min(1, (step - 99) / 4)} for step in range(100, 200)]
    assert state("lr_jump", run_of_records([*first, *second])) is State.PRESENT


def test_a_sudden_fall_out_of_a_smooth_schedule_is_present() -> None:
    rate = COSINE.copy()
    rate[80:] *= 0.1
    assert state("lr_jump", run_of(learning_rate=rate)) is State.PRESENT


def test_configured_restarts_are_remarked_only() -> None:
    rate = 0.5 + 0.5 * np.cos(np.pi * (AT * 2 % 1))
    finding = seen("lr_jump", run_of(learning_rate=rate, config={"lr_scheduler_type": "cosine_with_restarts"}))
    assert finding.state is State.ABSENT
    assert finding.summary


@pytest.mark.parametrize(
    "rate",
    [
        COSINE * np.minimum((AT + 0.005) / 0.05, 1),
        1 - AT,
        np.minimum(1, (1 - AT) / 0.1),
        np.full(200, 1.0),
        0.1 ** np.floor(AT * 3),
        np.interp(AT, [0, 0.4, 1], [0.04, 1, 0]),
    ],
    ids=["warmup and cosine", "linear", "stable then decay", "constant", "stages", "one cycle"],
)
def test_a_schedule_without_jumps_is_absent(rate: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert state("lr_jump", run_of(learning_rate=3e-4 * rate)) is State.ABSENT


def test_without_a_rate_it_cannot_be_told() -> None:
    assert state("lr_jump", run_of(loss=[1.0] * 20)) is State.UNKNOWN


def test_a_second_warmup_begins_where_the_rate_drops() -> None:
    cosine = 1e-3 * (1 + np.cos(np.linspace(0, 2, 100))) / 2
    again = np.concatenate([np.linspace(5e-5, 1e-3, 10), cosine[:60]])
    finding = seen("lr_jump", run_of(learning_rate=np.concatenate([cosine, again])))
    assert finding.state is State.PRESENT
    assert finding.steps == [101]
    assert "back up to" in finding.summary


def test_a_triangular_cycle_is_no_jump() -> None:
    cycle = [1e-4 + 1e-3 * abs(1 - (at * 0.06) % 2) for at in range(150)]
    assert state("lr_jump", run_of(learning_rate=cycle)) is State.ABSENT


@pytest.mark.parametrize("lengths", [(40, 40, 40, 40), (20, 40, 80)])
def test_restarts_at_even_or_doubling_distances_are_a_plan(lengths: tuple[int, ...]) -> None:
    rates = [1e-3 * (1 + math.cos(math.pi * at / length)) for length in lengths for at in range(length)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.ABSENT


def test_a_rate_that_goes_above_its_first_peak_at_even_distances_is_no_plan() -> None:
    rates = [10**again * 1e-3 * (1 + math.cos(math.pi * at / 40)) for again in range(3) for at in range(40)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.PRESENT


def test_restarts_that_fall_between_two_records_are_remarked_only() -> None:
    rates = [
        1e-3,
        8.4e-4,
        4.5e-4,
        9.5e-5,
        9.9e-4,
        7.5e-4,
        3.5e-4,
        4.3e-5,
        9.6e-4,
        6.6e-4,
        2.5e-4,
        1.1e-5,
        9.1e-4,
        5.5e-4,
    ]
    assert state("lr_jump", run_of(learning_rate=[*rates, 1e-3, 6e-4])) is State.ABSENT


def test_a_warmup_that_moves_once_per_epoch_is_no_jump() -> None:
    epochs = [1e-5, 7e-4, 1.3e-3, *(1e-3 * (1 + math.cos(math.pi * at / 20)) for at in range(3, 20))]
    assert state("lr_jump", run_of(learning_rate=np.repeat(epochs, 5))) is State.ABSENT


def test_a_jump_of_a_rate_that_moves_once_per_epoch_is_present() -> None:
    epochs = [1e-3 * (1 + math.cos(math.pi * at / 20)) for at in (*range(12), *range(8))]
    assert state("lr_jump", run_of(learning_rate=np.repeat(epochs, 5))) is State.PRESENT


@pytest.mark.parametrize("length", [4, 12])
def test_a_rate_that_a_plateau_lowers_again_and_again_is_one_of_stages(length: int) -> None:
    rate = np.concatenate([np.full(12, 0.02), np.repeat(0.02 * 0.1 ** np.arange(1, 10), length)])
    assert state("lr_jump", run_of(learning_rate=rate)) is State.ABSENT


def test_restarts_of_which_each_is_lower_are_a_plan() -> None:
    rates = [0.6**again * 1e-3 * (1 + math.cos(math.pi * at / 30)) for again in range(4) for at in range(30)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.ABSENT


def test_triangles_of_which_each_is_half_as_high_are_no_jump() -> None:
    rates = [1e-4 + 1e-2 * (1 - abs(1 - (at / 6) % 2)) / 2 ** (at // 12) for at in range(48)]
    assert state("lr_jump", run_of(learning_rate=rates)) is State.ABSENT
