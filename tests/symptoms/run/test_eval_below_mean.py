from __future__ import annotations

import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, state

NAME = "eval_below_mean"
FALLING = [3.0 - at / 50 for at in range(100)]


@pytest.mark.parametrize("name", ["val_r2", "eval/r2_score", "val_R2", "validation_r_squared", "R2"])
def test_predictions_worse_than_the_mean_are_seen(name: str) -> None:
    values = {10 * (at + 1): -3.0 + at / 5 for at in range(10)}
    assert state(NAME, run_of({"loss": FALLING, name: values})) is State.PRESENT


def test_a_regression_that_comes_above_the_mean_is_not() -> None:
    values = {10 * (at + 1): -1.0 + at / 5 for at in range(10)}
    assert state(NAME, run_of({"loss": FALLING, "val_r2": values})) is State.ABSENT


def test_without_such_a_measure_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=FALLING)) is State.UNKNOWN
