from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, state

NAME = "eval_learns_nothing"
LEARNT_BY_HEART = np.linspace(2.32, 1.9, 100)
AT = [10 * number for number in range(1, 11)]
FLAT = dict(zip(AT, [2.30, 2.29, 2.31, 2.30, 2.32, 2.31, 2.33, 2.34, 2.33, 2.36], strict=True))
GUESSES = dict(zip(AT, [0.10, 0.11, 0.09, 0.10, 0.12, 0.10, 0.11, 0.09, 0.12, 0.11], strict=True))


def test_shuffled_labels_learnt_by_heart_are_seen() -> None:
    assert state(NAME, run_of(loss=LEARNT_BY_HEART, eval_loss=FLAT, eval_accuracy=GUESSES)) is State.PRESENT


def test_accuracies_in_per_cent_are_the_same() -> None:
    percent = {at: 100 * share for at, share in GUESSES.items()}
    assert state(NAME, run_of(loss=LEARNT_BY_HEART, eval_loss=FLAT, eval_accuracy=percent)) is State.PRESENT


def test_an_evaluation_that_improves_before_it_rises_is_overfitting() -> None:
    rising = dict(zip(AT, [2.3, 2.0, 1.8, 1.7, 1.8, 1.9, 2.0, 2.1, 2.2, 2.3], strict=True))
    assert state(NAME, run_of(loss=LEARNT_BY_HEART, eval_loss=rising, eval_accuracy=GUESSES)) is State.ABSENT


def test_answers_that_get_better_under_a_flat_loss_are_learning() -> None:
    better = {at: 0.1 + at / 250 for at in AT}
    assert state(NAME, run_of(loss=LEARNT_BY_HEART, eval_loss=FLAT, eval_accuracy=better)) is State.ABSENT


def test_a_model_that_comes_trained_is_no_such_case() -> None:
    known = {at: value / 2 for at, value in FLAT.items()}
    assert state(NAME, run_of(loss=LEARNT_BY_HEART, eval_loss=known, eval_accuracy=GUESSES)) is State.ABSENT


def test_where_training_stands_still_too_it_cannot_be_told() -> None:
    run = run_of(loss=np.full(100, 2.3) + np.tile([0.01, -0.01], 50), eval_loss=FLAT, eval_accuracy=GUESSES)
    assert state(NAME, run) is State.UNKNOWN


def test_an_evaluation_that_gets_better_each_time_while_training_begins_is_no_such_case() -> None:
    begins, slowly = np.linspace(2.32, 2.15, 100), dict(zip(AT, np.linspace(2.3, 2.29, 10).tolist(), strict=True))
    assert state(NAME, run_of(loss=begins, eval_loss=slowly, eval_accuracy=GUESSES)) is State.ABSENT
    assert state(NAME, run_of(loss=begins, eval_loss=FLAT, eval_accuracy=GUESSES)) is State.PRESENT


@pytest.mark.parametrize(("right", "answer"), [(0.11, State.PRESENT), (0.25, State.ABSENT)])
def test_an_accuracy_above_that_of_a_guess_is_something(right: float, answer: State) -> None:
    evaluations = {step: 2.3 + 0.02 * step for step in range(5, 101, 5)}
    accuracy = dict.fromkeys(evaluations, right)
    run = run_of(loss=decay(100, 2.3, 0.1), eval_loss=evaluations, eval_accuracy=accuracy)
    assert state("eval_learns_nothing", run) is answer


@pytest.mark.parametrize(("classes", "right"), [(6, 0.43), (10, 0.3), (100, 0.12)])
def test_what_is_above_a_guess_among_known_classes_was_learnt_before_the_first_evaluation(
    classes: int, right: float
) -> None:
    evaluations = {step: 0.9 * np.log(classes) + 0.007 * step for step in range(10, 101, 10)}
    loss = decay(100, 0.6 * np.log(classes), 0.02)  # its first record is of many steps, too
    for share, answer in ((right, State.ABSENT), (1.1 / classes, State.PRESENT)):
        accuracy = dict.fromkeys(evaluations, share)
        run = run_of(loss=loss, eval_loss=evaluations, eval_accuracy=accuracy, config={"num_classes": classes})
        assert state(NAME, run) is answer


def _epochs(first: float, right: float = 0.1) -> list[dict[str, float]]:
    trained, losses = decay(20, first, 0.98), decay(20, 2.3, 0.1)
    return [
        {"epoch": at, "loss": one, "accuracy": good, "val_loss": 2.31 + 0.1 * at, "val_accuracy": right}
        for at, (one, good) in enumerate(zip(losses.tolist(), trained.tolist(), strict=True))
    ]
