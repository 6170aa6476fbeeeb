"""`memory_grows`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, noisy, run_of, seen, state


def test_growth_by_the_same_amount_each_step_is_present_with_its_rate() -> None:
    finding = seen("memory_grows", run_of(memory=noisy(10 + 0.05 * np.arange(200), 0.002)))
    assert finding.state is State.PRESENT
    assert 0.04 < (finding.values["per_step"] or 0) < 0.06


def test_growth_that_begins_late_is_present() -> None:
    memory = np.concatenate([np.full(60, 20.0), 20 + 0.2 * np.arange(140)])
    finding = seen("memory_grows", run_of(memory=memory))
    assert finding.state is State.PRESENT
    assert 55 <= (finding.steps[0] or 0) <= 75


def test_growth_that_levels_off_is_absent() -> None:
    assert state("memory_grows", run_of(memory=40 - 20 * np.exp(-np.arange(200) / 20))) is State.ABSENT


def test_a_peak_that_steps_up_twice_is_absent() -> None:
    assert state("memory_grows", run_of(memory=[20.0] * 50 + [26.0] * 80 + [29.0] * 70)) is State.ABSENT


def test_memory_that_swings_is_absent() -> None:
    assert state("memory_grows", run_of(memory=noisy([20.0] * 200, 0.2))) is State.ABSENT


def test_ten_records_along_a_steep_line_are_enough() -> None:
    assert state("memory_grows", run_of(memory=np.arange(5.0, 15.0))) is State.PRESENT


@pytest.mark.parametrize(
    "memory",
    [
        [4.0, 20.0, 20.1, 20.1, 20.1, 20.1, 20.1, 20.1],
        30 - 20 * np.exp(-np.arange(10) / 4),
        [10.0, 10.0, 10.0, 14.0, 14.0, 14.0, 18.0, 18.0, 18.0],
        10 + 0.1 * np.arange(10),
        noisy(np.linspace(10.0, 14.0, 10), 0.1),
        np.arange(5.0, 10.0),
    ],
    ids=["first batch", "caches that fill", "longer batches", "a tenth", "noise", "five records"],
)
def test_a_handful_of_records_that_may_settle_yet_cannot_tell(memory: Curve) -> None:
    assert state("memory_grows", run_of(memory=memory)) is State.UNKNOWN


def test_a_buffer_that_fills_in_the_first_records_of_reinforcement_learning_cannot_tell() -> None:
    assert state("memory_grows", run_of(memory=np.arange(5.0, 15.0), kind="rl")) is State.UNKNOWN


def test_a_growth_of_a_tenth_that_is_even_from_end_to_end_is_present() -> None:
    assert state("memory_grows", run_of(memory=np.linspace(20.0, 22.0, 200))) is State.PRESENT


def test_an_uneven_growth_of_a_tenth_is_absent() -> None:
    level = np.repeat([20.0, 20.9, 21.0, 21.9, 22.0], 40)
    assert state("memory_grows", run_of(memory=level)) is State.ABSENT


@pytest.mark.parametrize("name", ["memory_allocated_gb", "cuda_mem_mb", "train/peak_memory_gib", "system/vram_used"])
def test_memory_is_known_under_names_of_ones_own(name: str) -> None:
    assert state("memory_grows", run_of({name: [10 + 0.05 * step for step in range(200)]})) is State.PRESENT


@pytest.mark.parametrize("name", ["replay_memory_size", "memory_bank_loss", "memory_available_gb"])
def test_what_else_is_called_memory_is_not_taken_for_memory_in_use(name: str) -> None:
    assert state("memory_grows", run_of({name: [10 + 0.05 * step for step in range(200)]})) is State.UNKNOWN


@pytest.mark.parametrize(("steps_per_epoch", "expected"), [(100.0, State.UNKNOWN), (3.0, State.PRESENT)])
def test_memory_of_the_host_may_fill_with_rows_in_the_first_pass(steps_per_epoch: float, expected: State) -> None:
    run = run_of(host_memory=np.arange(5.0, 15.0), config={"steps_per_epoch": steps_per_epoch})
    assert state("memory_grows", run) is expected
