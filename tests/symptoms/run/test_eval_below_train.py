from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, run_of, state


def test_an_evaluation_far_better_than_training_is_present() -> None:
    run = run_of(loss=decay(100, 3, 2), eval_loss=dict.fromkeys((25, 50, 75, 100), 0.4))
    assert state("eval_below_train", run) is State.PRESENT


def test_the_gap_of_dropout_is_absent() -> None:
    loss = decay(100, 3, 2)
    run = run_of(loss=loss, eval_loss={step: 0.75 * float(loss[step - 1]) for step in (25, 50, 75, 100)})
    assert state("eval_below_train", run) is State.ABSENT


def test_two_small_losses_are_absent() -> None:
    run = run_of(loss=np.full(100, 0.04), eval_loss={50: 0.01, 100: 0.01})
    assert state("eval_below_train", run) is State.ABSENT


def test_without_a_training_loss_it_cannot_be_told() -> None:
    assert state("eval_below_train", run_of(eval_loss=decay(10))) is State.UNKNOWN
