"""The course of a curve in numbers and words: what an eye would say of it."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.course import Course, course_of
from mldebug_mcp.logs import Series
from mldebug_mcp.logs.columns import Floats

NOISE = np.random.default_rng(0).normal(0, 0.02, 400)
STEP = np.arange(1.0, 401.0)


def course(value: Floats, step: Floats = STEP) -> Course:
    found = course_of(Series("loss", step[: len(value)], value))
    assert found is not None
    return found


def test_a_loss_that_falls_and_then_stands_is_said_to_rest_since_about_then() -> None:
    seen = course(np.maximum(3 - STEP / 50, 1.0) + NOISE)
    assert [one.up for one in seen.moves] == [False]
    assert seen.rests_since == pytest.approx(100, abs=30)
    assert str(seen).startswith("falls to ")
    assert seen.moves[0].to == pytest.approx(1, abs=0.05)
    assert seen.noise == pytest.approx(0.02, rel=0.3)


@pytest.mark.parametrize("seed", range(20))
def test_every_value_beside_a_step_is_the_one_logged_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    curve = np.exp(np.cumsum(rng.normal(0, 0.05, 400)) * rng.choice([0.2, 1, 3])) + rng.normal(0, 0.02, 400)
    curve[int(rng.integers(50, 350)) :] += rng.choice([0, 3])
    seen = course(curve)
    logged = dict(zip(STEP.tolist(), curve.tolist(), strict=True))
    assert {move.until: move.to for move in seen.moves} == {move.until: logged[move.until] for move in seen.moves}
    assert [move.until for move in seen.moves] == sorted(move.until for move in seen.moves)
    assert (seen.low, seen.high) == (logged[seen.low_at], logged[seen.high_at])


def test_white_noise_keeps_its_level() -> None:
    noise = np.random.default_rng(1).normal(0, 0.02, (50, 400))
    said = [str(course(2 + part)) for part in noise]
    assert said.count("keeps its level") >= 48


def test_a_hump_rises_and_falls() -> None:
    seen = course(1 + np.exp(-(((STEP - 200) / 40) ** 2)) + NOISE)
    assert [one.up for one in seen.moves] == [True, False]
    assert seen.moves[0].until == pytest.approx(200, abs=20)


def test_a_level_that_is_left_at_once_is_a_jump_at_that_step() -> None:
    seen = course(np.where(STEP < 251, 1.0, 2.0) + NOISE + (3 - STEP / 40) * (STEP < 80))
    assert [move.sudden_at for move in seen.moves if move.up] == [251]


def test_a_curve_that_is_exactly_the_same_from_a_step_on_is_frozen() -> None:
    seen = course(np.where(STEP < 300, 2 - STEP / 300 + NOISE, 0.75))
    assert seen.frozen_since == 300
    assert "frozen at 0.75 since 300" in str(seen)


def test_a_rise_ends_where_the_curve_is_frozen() -> None:
    assert str(course(np.minimum(STEP, 50.0))).startswith("rises to 50 by 50, frozen at 50 since 50")


def test_one_value_in_all_records_is_said_so() -> None:
    assert str(course(np.full(40, 0.1))) == "the same in every record"


def test_values_that_are_lost_are_told_with_the_first_step() -> None:
    value = 2 - STEP / 400 + NOISE
    value[200:] = np.nan
    assert "not finite from 201" in str(course(value))
    value = 2 - STEP / 400 + NOISE
    value[[30, 90]] = np.inf
    assert "not finite in 2 of 400 records, first at 31" in str(course(value))


def test_a_few_values_are_told_one_by_one() -> None:
    assert course(np.array([0.5, 0.7, 0.6])).points == ((1, 0.5), (2, 0.7), (3, 0.6))


def test_a_curve_without_a_finite_value_has_no_course() -> None:
    assert course_of(Series("loss", STEP[:3], np.full(3, np.nan))) is None
