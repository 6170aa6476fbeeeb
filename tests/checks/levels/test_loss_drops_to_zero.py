from __future__ import annotations

import math

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


@pytest.mark.parametrize("before", [1, 10, 150])
def test_a_loss_that_is_zero_from_one_record_to_the_next_is_present_whenever_it_begins(before: int) -> None:
    finding = seen("loss_drops_to_zero", run_of(loss=np.concatenate([np.full(before, 2.0), np.zeros(20)])))
    assert finding.state is State.PRESENT
    assert finding.steps == [before + 1]


def test_a_loss_of_zero_from_the_start_is_absent() -> None:
    assert state("loss_drops_to_zero", run_of(loss=np.zeros(20))) is not State.PRESENT


def test_a_loss_that_comes_back_is_absent() -> None:
    assert state("loss_drops_to_zero", run_of(loss=[2.0, 1.9, 0.0, 0.0, 1.8, 1.7])) is State.ABSENT


def test_a_loss_that_is_memorised_and_rounded_is_absent() -> None:
    assert state("loss_drops_to_zero", run_of(loss=np.round(decay(100, 2.0, 0.0, 20), 4))) is State.ABSENT


def test_a_gradient_that_goes_on_speaks_against_it() -> None:
    run = run_of(loss=[2.0, 1.9, 0.0, 0.0, 0.0], grad_norm=[1.0, 1.1, 0.9, 1.2, 1.0])
    assert state("loss_drops_to_zero", run) is State.UNKNOWN


def test_a_gradient_that_is_not_finite_there_does_not() -> None:
    run = run_of(loss=[2.0, 1.9, 0.0, 0.0, 0.0], grad_norm=[1.0, 1.1, math.nan, math.nan, math.nan])
    assert state("loss_drops_to_zero", run) is State.PRESENT


def test_a_preference_loss_may_be_zero_by_its_margin() -> None:
    assert state("loss_drops_to_zero", run_of(loss=[0.6, 0.4, 0.0, 0.0], kind="preference")) is State.UNKNOWN


def test_in_a_short_excerpt_a_single_zero_is_enough() -> None:
    assert state("loss_drops_to_zero", run_of(loss=[2.7, 0.0])) is State.PRESENT
    assert state("loss_drops_to_zero", run_of(loss=[2.7] * 20 + [0.0])) is State.ABSENT


def test_a_single_zero_of_a_loss_that_was_falling_is_absent() -> None:
    assert state("loss_drops_to_zero", run_of(loss=[2.3, 0.4, 0.0])) is State.ABSENT


@pytest.mark.parametrize(
    ("first", "expected"), [(0.0001, State.UNKNOWN), (0.0002, State.UNKNOWN), (0.0912, State.PRESENT)]
)
def test_a_small_loss_of_four_decimals_may_be_rounded(first: float, expected: State) -> None:
    assert state("loss_drops_to_zero", run_of(loss=[first] * 2 + [0.0] * 18)) is expected
