from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


@pytest.mark.parametrize("down_to", [2.0**-8, 4.0])
def test_a_scale_that_collapses_is_present_from_its_first_fall(down_to: float) -> None:
    scale = np.concatenate([np.full(100, 2.0**15), np.maximum(2.0 ** (15.0 - np.arange(1, 101)), down_to)])
    finding = seen("loss_scale_falls", run_of(loss_scale=scale))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == 101


def test_a_short_log_that_falls_below_one_is_present() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=2.0 ** np.arange(10, -4, -1.0))) is State.PRESENT


@pytest.mark.parametrize(
    "scale",
    [
        np.concatenate([2.0 ** np.arange(32, 14, -1.0), np.full(100, 2.0**15)]),
        2.0 ** (15 + np.arange(200) % 3),
        np.full(50, 65536.0),
    ],
    ids=["probing at the start", "up and down", "constant"],
)
def test_a_scaler_that_finds_its_limit_is_absent(scale: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert state("loss_scale_falls", run_of(loss_scale=scale)) is State.ABSENT


@pytest.mark.parametrize(("last", "answer"), [("1", State.PRESENT), ("32768", State.UNKNOWN)])
def test_what_the_scaler_says_counts_where_the_scale_is_not_logged(last: str, answer: State) -> None:
    builder = RunBuilder()
    builder.record({"step": 1, "loss": 5.0})
    builder.message(1, "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 262144, reducing to 131072.0")
    builder.message(2, f"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to {last}")
    assert state("loss_scale_falls", builder.build("log")) is answer


def test_without_a_scale_it_cannot_be_told() -> None:
    assert state("loss_scale_falls", run_of(loss=[1.0] * 9)) is State.UNKNOWN


def test_in_an_excerpt_a_scale_that_sinks_from_a_half_to_its_floor_is_present() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[0.5 / 2**halved for halved in range(13)])) is State.PRESENT


def test_a_scale_that_is_small_because_losses_are_sums_is_absent() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[0.0625, 0.0625, 0.03125, 0.0625, 0.03125])) is State.ABSENT


def test_overflows_again_and_again_at_the_smallest_scale_are_present() -> None:
    finding = seen("loss_scale_falls", run_of(loss_scale=[1.0] * 5, overflow=[1.0] * 5))
    assert finding.state is State.PRESENT
    assert "skipped for overflow 5 times" in finding.summary


def test_a_scale_of_one_without_overflows_is_absent() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[1.0] * 5, loss=[3.0] * 5)) is State.ABSENT


def test_a_scale_that_still_falls_at_the_end_of_a_few_records_cannot_be_told() -> None:
    assert state("loss_scale_falls", run_of(loss_scale=[64.0, 32.0, 16.0, 8.0, 4.0])) is State.UNKNOWN
    assert state("loss_scale_falls", run_of(loss_scale=[64.0, 32.0, 16.0, 16.0, 16.0, 32.0])) is State.ABSENT


@pytest.mark.parametrize(("scale", "answer"), [(0.125, State.PRESENT), (1024.0, State.ABSENT)])
def test_a_scale_that_is_told_once_as_a_step_is_skipped_is_present_below_one(scale: float, answer: State) -> None:
    run = run_of(loss=[2.0] * 30, loss_scale={20: scale}, overflow={20: 1.0})
    assert state("loss_scale_falls", run) is answer


def test_a_small_scale_at_which_no_step_is_skipped_is_absent() -> None:
    assert state("loss_scale_falls", run_of(loss=[2.0] * 30, loss_scale=[0.125] * 30)) is State.ABSENT
