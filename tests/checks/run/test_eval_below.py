from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


def test_an_evaluation_far_better_than_training_is_present() -> None:
    run = run_of(loss=decay(100, 3, 2), eval_loss=dict.fromkeys((25, 50, 75, 100), 0.4))
    assert state("eval_below_train", run) is State.PRESENT


@pytest.mark.parametrize("name", ["mixup", "smoothing", "cutmix_alpha", "head/loss/label_smooth_val"])
def test_an_evaluation_far_better_than_training_says_nothing_where_labels_are_mixed(name: str) -> None:
    levels = dict.fromkeys((25, 50, 75, 100), 0.4)
    run = run_of(loss=decay(100, 3, 2), eval_loss=levels, config={name: 0.8})
    assert state("eval_below_train", run) is State.UNKNOWN
    assert state("loss_scale_suspicious", run) is not State.PRESENT


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"dropout": 0.5}, State.UNKNOWN),
        ({"augment": "strong"}, State.UNKNOWN),
        ({"dropout": 0.1, "augment": "off"}, State.PRESENT),
    ],
)
def test_an_evaluation_far_better_than_training_says_nothing_where_settings_make_training_rows_harder(
    config: dict[str, float | str], answer: State
) -> None:
    run = run_of(loss=decay(100, 3, 2), eval_loss=dict.fromkeys((25, 50, 75, 100), 0.4), config=config)
    assert state("eval_below_train", run) is answer


def test_the_gap_of_dropout_is_absent() -> None:
    loss = decay(100, 3, 2)
    run = run_of(loss=loss, eval_loss={step: 0.75 * float(loss[step - 1]) for step in (25, 50, 75, 100)})
    assert state("eval_below_train", run) is State.ABSENT


def test_an_evaluation_that_comes_to_lie_below_training_is_present() -> None:
    loss = decay(100, 3, 2)
    levels = {25: 2.6, 50: 1.8, 75: 1.2, 100: 1.1}
    run = run_of(loss=loss, eval_loss=levels)
    assert state("eval_below_train", run) is State.PRESENT
    assert state("eval_below_grows", run) is State.PRESENT


def test_an_evaluation_after_a_steep_fall_is_beside_what_training_has_come_to_by_then() -> None:
    loss = np.concatenate([np.full(10, 9.0), np.linspace(9, 3, 10)])
    assert state("eval_below_train", run_of(loss=loss, eval_loss={10: 9.0, 20: 2.9})) is State.ABSENT
    assert state("eval_below_train", run_of(loss=loss, eval_loss={10: 9.0, 20: 0.9})) is State.PRESENT


def test_one_that_lay_below_from_the_first_evaluation_on_has_not_come_there() -> None:
    run = run_of(loss=decay(100, 3, 2), eval_loss=dict.fromkeys((25, 50, 75, 100), 0.4))
    assert state("eval_below_grows", run) is State.ABSENT


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


def of_quotient(quotient: float, kind: str = "sft") -> Run:
    loss = noisy(decay(120, 1.5, 1.1), 0.02)
    return run_of(loss=loss, eval_loss={at: float(loss[at - 1]) / quotient for at in range(20, 121, 20)}, kind=kind)


@pytest.mark.parametrize(
    ("quotient", "answer"), [(3.3, State.PRESENT), (1.3, State.UNKNOWN), (1.0, State.UNKNOWN), (0.5, State.UNKNOWN)]
)
def test_a_training_loss_is_held_against_evaluation(quotient: float, answer: State) -> None:
    assert state("train_far_above_eval", of_quotient(quotient)) is answer
    below = state("eval_below_train", of_quotient(quotient))
    assert below is (State.PRESENT if answer is State.PRESENT else State.ABSENT)


def test_a_classifier_with_strong_augmentation_cannot_tell() -> None:
    assert state("train_far_above_eval", of_quotient(3.3, "supervised")) is State.UNKNOWN


LAGS = "train_lags_eval"
AT = range(25, 401, 25)
STUCK = decay(400, 2.3, 1.9)
LEARNT = {step: float(decay(400, 2.3, 1.2)[step - 1]) for step in AT}


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_improves_beside_a_stuck_training_loss_is_seen(seed: int) -> None:
    finding = seen(LAGS, run_of(loss=noisy(STUCK, 0.05, seed), eval_loss=LEARNT))
    assert finding.state is State.PRESENT
    assert finding.state is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_training_loss_that_falls_too_is_another_symptom(seed: int) -> None:
    loss = decay(400, 2.3, 0.8)
    run = run_of(loss=noisy(loss, 0.05, seed), eval_loss={step: float(loss[step - 1]) / 1.5 for step in AT})
    assert state(LAGS, run) is State.ABSENT


def test_a_training_loss_that_augmentation_holds_up_is_sound() -> None:
    train = [6.85, 6.18, 5.63, 5.11, 4.98, 4.57, 4.31, 4.12]
    evaluation = [6.64, 4.61, 3.66, 3.18, 2.79, 2.53, 2.38, 2.27]
    assert seen(LAGS, run_of(loss=train, eval_loss=evaluation)).summary == "eval_below_train is seen instead"


def test_in_the_first_epochs_training_may_stay_behind() -> None:
    loss, evaluation = [5.99, 5.98, 6.25, 6.27, 5.96], [5.19, 5.195, 5.19, 5.13, 5.02]
    assert state(LAGS, run_of(loss=loss, eval_loss=evaluation)) is State.UNKNOWN


def test_a_set_that_is_easier_from_the_start_is_sound() -> None:
    run = run_of(loss=noisy(STUCK, 0.05), eval_loss={step: float(STUCK[step - 1]) / 1.4 for step in AT})
    assert state(LAGS, run) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
def test_a_modest_gap_as_dropout_makes_it_is_sound(seed: int) -> None:
    run = run_of(loss=noisy(STUCK, 0.05, seed), eval_loss={step: float(STUCK[step - 1]) / 1.08 for step in AT})
    assert state(LAGS, run) is State.ABSENT


def test_three_evaluations_cannot_tell() -> None:
    run = run_of(loss=noisy(STUCK, 0.05), eval_loss=dict.fromkeys((100, 200, 300), 1.2))
    assert state(LAGS, run) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state(LAGS, run_of(loss=np.ones(20))) is State.UNKNOWN


@pytest.mark.parametrize("setting", ["mixup", "cutmix_alpha", "label_smoothing"])
def test_labels_that_are_mixed_or_smoothed_keep_the_training_loss_up(setting: str) -> None:
    assert state(LAGS, run_of(loss=noisy(STUCK, 0.05), eval_loss=LEARNT, config={setting: 0.2})) is State.UNKNOWN
    assert state(LAGS, run_of(loss=noisy(STUCK, 0.05), eval_loss=LEARNT, config={setting: 0.0})) is State.PRESENT
