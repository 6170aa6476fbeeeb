from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, state


def test_an_evaluation_far_better_than_training_is_present() -> None:
    run = run_of(loss=decay(100, 3, 2), eval_loss=dict.fromkeys((25, 50, 75, 100), 0.4))
    assert state("eval_below_train", run) is State.PRESENT


def test_the_gap_of_dropout_is_absent() -> None:
    loss = decay(100, 3, 2)
    run = run_of(loss=loss, eval_loss={step: 0.75 * float(loss[step - 1]) for step in (25, 50, 75, 100)})
    assert state("eval_below_train", run) is State.ABSENT


def test_an_evaluation_that_comes_to_lie_below_training_is_present() -> None:
    loss = decay(100, 3, 2)
    levels = {25: 2.6, 50: 1.8, 75: 1.2, 100: 1.1}
    assert state("eval_below_train", run_of(loss=loss, eval_loss=levels)) is State.PRESENT


def test_an_evaluation_that_was_as_far_below_from_the_first_on_is_absent() -> None:
    loss = decay(100, 3, 2)
    run = run_of(loss=loss, eval_loss={step: 0.55 * float(loss[step - 1]) for step in (25, 50, 75, 100)})
    assert state("eval_below_train", run) is State.ABSENT


def test_two_small_losses_are_absent() -> None:
    run = run_of(loss=np.full(100, 0.04), eval_loss={50: 0.01, 100: 0.01})
    assert state("eval_below_train", run) is State.ABSENT


def test_without_a_training_loss_it_cannot_be_told() -> None:
    assert state("eval_below_train", run_of(eval_loss=decay(10))) is State.UNKNOWN


def test_half_a_nat_below_is_present_for_tokens_only() -> None:
    loss, evaluations = np.full(100, 4.0), dict.fromkeys(range(10, 101, 10), 3.1)
    assert state("eval_below_train", run_of(loss=loss, eval_loss=evaluations, kind="pretraining")) is State.PRESENT
    assert state("eval_below_train", run_of(loss=loss, eval_loss=evaluations, kind="supervised")) is State.ABSENT


def test_half_of_a_loss_that_has_nearly_gone_is_absent() -> None:
    loss, evaluations = decay(200, 3.5, 0.25, 12), dict.fromkeys(range(100, 201, 10), 0.1)
    assert state("eval_below_train", run_of(loss=loss, eval_loss=evaluations)) is State.ABSENT


def test_a_negative_evaluation_loss_is_on_no_scale_to_compare_and_absent() -> None:
    loss, evaluations = np.full(100, 2.0), dict.fromkeys(range(10, 101, 10), -1.0)
    assert state("eval_below_train", run_of(loss=loss, eval_loss=evaluations)) is State.ABSENT


@pytest.mark.parametrize(("times", "expected"), [(1.0, State.ABSENT), (36.0, State.UNKNOWN)])
def test_a_loss_that_may_be_summed_over_an_epoch_cannot_be_judged(times: float, expected: State) -> None:
    evaluation = [1.1 - 0.03 * at for at in range(12)]
    rows = [
        {"epoch": 1.0 + at, "loss": times * one, "eval_loss": one, "accuracy": 0.5} for at, one in enumerate(evaluation)
    ]
    assert state("eval_below_train", run_of_records(rows)) is expected
