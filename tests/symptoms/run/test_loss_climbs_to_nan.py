from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, state

NAME = "loss_climbs_to_nan"


def test_a_loss_that_climbs_first_is_seen() -> None:
    assert state(NAME, run_of(loss=[2.0, 1.9, 1.8, 1.8, 3.0, 9.0, 80.0, math.nan, math.nan])) is State.PRESENT


def test_one_that_is_nan_from_one_record_to_the_next_is_not() -> None:
    assert state(NAME, run_of(loss=[2.0, 1.9, 1.8, 1.8, 1.7, 1.8, 1.7, math.nan, math.nan])) is State.ABSENT


def test_a_finite_loss_is_not_judged() -> None:
    assert state(NAME, run_of(loss=[2.0, 1.9, 1.8, 1.8, 1.7])) is State.UNKNOWN


def test_nan_from_the_first_record_on_is_not_judged() -> None:
    assert state(NAME, run_of(loss=[math.nan] * 5)) is State.UNKNOWN


def test_an_infinity_out_of_nothing_cannot_be_told() -> None:
    loss = [*np.linspace(2.0, 1.0, 20), np.inf, np.nan, np.nan]
    assert state("loss_climbs_to_nan", run_of(loss=loss)) is State.UNKNOWN


def test_a_climb_by_powers_of_ten_is_seen_in_fewer_records() -> None:
    assert state("loss_climbs_to_nan", run_of(loss=[5.7e7, 3e18, 1e29, *[math.nan] * 10])) is State.PRESENT
    assert state("loss_climbs_to_nan", run_of(loss=[2.0, 9.0, *[math.nan] * 10])) is State.UNKNOWN
