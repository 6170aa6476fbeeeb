from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "eval_loss_constant"
AT = range(25, 201, 25)
LOSS = decay(200)


def test_an_evaluation_loss_that_is_one_number_throughout_is_present() -> None:
    finding = seen(NAME, run_of(loss=LOSS, eval_loss=dict.fromkeys(AT, 2.302585124969)))
    assert finding.values["evaluations"] == len(AT)
    assert finding.steps == [25]


def test_one_that_changes_in_the_fifth_digit_is_absent() -> None:
    levels = {step: 2.3025 - step * 1e-6 for step in AT}
    assert state(NAME, run_of(loss=LOSS, eval_loss=levels)) is State.ABSENT


def test_one_that_is_logged_with_two_digits_cannot_tell() -> None:
    assert state(NAME, run_of(loss=LOSS, eval_loss=dict.fromkeys(AT, 2.3))) is State.UNKNOWN


def test_two_evaluations_cannot_tell() -> None:
    assert state(NAME, run_of(loss=LOSS, eval_loss={100: 2.302585, 200: 2.302585})) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=np.ones(20))) is State.UNKNOWN


def test_few_digits_are_enough_where_all_of_the_evaluation_stands_still() -> None:
    at = (50, 100, 150, 200)
    still = {"eval_accuracy": dict.fromkeys(at, 0.875), "eval_f1": dict.fromkeys(at, 0.85)}
    assert state(NAME, run_of(still, loss=LOSS, eval_loss=dict.fromkeys(at, 0.375))) is State.PRESENT
    moving = {**still, "eval_f1": {50: 0.85, 100: 0.86, 150: 0.85, 200: 0.87}}
    assert state(NAME, run_of(moving, loss=LOSS, eval_loss=dict.fromkeys(at, 0.375))) is State.UNKNOWN


def test_the_sign_of_a_constant_loss_is_told() -> None:
    run = run_of(loss=np.linspace(-1, -50, 100), eval_loss=dict.fromkeys(range(10, 100, 10), -55.13612))
    assert "eval_loss is -55.13612 at all" in seen("eval_loss_constant", run).summary
