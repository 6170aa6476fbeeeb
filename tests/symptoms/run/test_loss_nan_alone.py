from __future__ import annotations

from math import nan

from mldebug_mcp.models import State
from tests.runs import run_of, state

NAME = "loss_nan_alone"
EVALUATED = {10: 1.64, 20: 1.64, 30: 1.64, 40: 1.64}


def test_a_loss_that_is_never_finite_beside_a_finite_evaluation_is_seen() -> None:
    assert state(NAME, run_of(loss=[nan] * 40, eval_loss=EVALUATED)) is State.PRESENT


def test_a_loss_that_was_finite_first_is_another_failure() -> None:
    assert state(NAME, run_of(loss=[1.6] * 5 + [nan] * 35, eval_loss=EVALUATED)) is State.ABSENT


def test_where_evaluation_fails_too_the_weights_are_spoilt() -> None:
    assert state(NAME, run_of(loss=[nan] * 40, eval_loss={**EVALUATED, 40: nan})) is State.ABSENT


def test_without_evaluation_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=[nan] * 40)) is State.UNKNOWN
