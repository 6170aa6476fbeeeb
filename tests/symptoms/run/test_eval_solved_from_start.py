from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "eval_solved_from_start"
EPOCHS = np.arange(20)
TRAIN = 0.05 + 0.64 * np.exp(-EPOCHS / 8)


def test_an_evaluation_that_is_perfect_while_training_is_at_chance_is_seen() -> None:
    finding = seen(NAME, run_of(loss=TRAIN, eval_loss=noisy(np.full(20, 0.02), 0.001)))
    assert finding.state is State.PRESENT
    assert finding.values["first"] < 0.03
    assert finding.values["training_first"] > 0.6


def test_an_evaluation_that_falls_along_with_training_is_absent() -> None:
    assert state(NAME, run_of(loss=TRAIN, eval_loss=0.15 * TRAIN)) is State.ABSENT


def test_an_easy_task_that_both_solve_in_the_first_epoch_is_absent() -> None:
    train = np.concatenate([[0.3], np.full(19, 0.02)])
    assert state(NAME, run_of(loss=train, eval_loss=np.full(20, 0.021))) is State.ABSENT


def test_a_loss_summed_over_micro_batches_is_absent() -> None:
    falling = 2.0 + 1.3 * np.exp(-EPOCHS / 5)
    assert state(NAME, run_of(loss=16 * falling, eval_loss=falling)) is State.ABSENT


def test_two_evaluations_cannot_tell() -> None:
    assert state(NAME, run_of(loss=TRAIN, eval_loss={5: 0.02, 10: 0.02})) is State.UNKNOWN


def test_without_a_training_loss_it_cannot_be_told() -> None:
    assert state(NAME, run_of(eval_loss=np.full(20, 0.02))) is State.UNKNOWN
