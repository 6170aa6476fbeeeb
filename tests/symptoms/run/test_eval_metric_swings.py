from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, decay, run_of, seen, state

NAME = "eval_metric_swings"
STEPS = range(10, 401, 10)


def _at(values: object) -> dict[float, float]:
    return dict(zip(STEPS, np.asarray(values, dtype=float).tolist(), strict=True))


@pytest.mark.parametrize("scale", [1, 100])
def test_an_accuracy_between_a_fifth_and_nine_tenths_is_seen(scale: float) -> None:
    swings = np.random.default_rng(1).uniform(0.2, 0.9, 40)
    finding = seen(NAME, run_of(loss=decay(400, 1.6, 0.1), eval_accuracy=_at(scale * swings)))
    assert finding.state is State.PRESENT
    assert finding.values["highest"] - finding.values["lowest"] > 0.4


def test_a_loss_that_doubles_and_halves_is_seen_where_no_accuracy_is_logged() -> None:
    swings = np.exp(np.random.default_rng(1).uniform(-2, 2, 40))
    assert state(NAME, run_of(loss=decay(400, 1.6, 0.1), eval_loss=_at(swings))) is State.PRESENT


def test_twenty_rows_that_are_mostly_right_are_absent() -> None:
    few = np.random.default_rng(1).binomial(20, decay(40, 0.3, 0.85)) / 20
    assert state(NAME, run_of(loss=decay(400, 1.6, 0.1), eval_accuracy=_at(few))) is State.ABSENT


def test_swings_that_are_over_in_the_first_half_are_absent() -> None:
    swings = np.random.default_rng(1).uniform(0.2, 0.9, 40)
    swings[20:] = 0.9
    assert state(NAME, run_of(loss=decay(400, 1.6, 0.1), eval_accuracy=_at(swings))) is State.ABSENT


@pytest.mark.parametrize(
    "loss", [np.full(400, 1.6), np.exp(np.random.default_rng(2).uniform(-2, 1, 400)) * decay(400, 2, 0.2)]
)
def test_where_training_does_not_fall_or_swings_as_well_it_is_absent(loss: Curve) -> None:
    swings = np.random.default_rng(1).uniform(0.2, 0.9, 40)
    assert state(NAME, run_of(loss=loss, eval_accuracy=_at(swings))) is State.ABSENT


def test_a_handful_of_evaluations_cannot_tell() -> None:
    assert state(NAME, run_of(loss=decay(400), eval_accuracy={100: 0.2, 200: 0.9, 300: 0.3})) is State.UNKNOWN


def test_an_accuracy_that_gets_better_by_leaps_does_not_swing() -> None:
    accuracy = [0.025, 0.0, 0.003, 0.03, 0.034, 0.168, 0.13, 0.404, 0.391, 0.644]
    loss = [0.722, 0.691, 0.661, 0.563, 0.406, 0.263, 0.181, 0.136, 0.109, 0.091]
    assert state(NAME, run_of(loss=loss, eval_accuracy=accuracy)) is State.ABSENT


def test_a_training_loss_that_falls_fast_is_no_swing_of_its_own() -> None:
    loss = [2.3 * 0.7**epoch for epoch in range(12)]
    swinging = [0.49, 0.52, 0.85, 0.5, 0.86, 0.49, 0.88, 0.51, 0.87, 0.5, 0.88, 0.49]
    assert state(NAME, run_of(loss=loss, eval_accuracy=swinging)) is State.PRESENT
