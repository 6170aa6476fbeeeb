from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "train_lags_eval"
AT = range(25, 401, 25)
STUCK = decay(400, 2.3, 1.9)
LEARNT = {step: float(decay(400, 2.3, 1.2)[step - 1]) for step in AT}


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_improves_beside_a_stuck_training_loss_is_seen(seed: int) -> None:
    finding = seen(NAME, run_of(loss=noisy(STUCK, 0.05, seed), eval_loss=LEARNT))
    assert finding.values["factor"] == pytest.approx(1.58, abs=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_training_loss_that_falls_too_is_another_symptom(seed: int) -> None:
    loss = decay(400, 2.3, 0.8)
    run = run_of(loss=noisy(loss, 0.05, seed), eval_loss={step: float(loss[step - 1]) / 1.5 for step in AT})
    assert state(NAME, run) is State.ABSENT


def test_a_training_loss_that_augmentation_holds_up_is_sound() -> None:
    train = [6.85, 6.18, 5.63, 5.11, 4.98, 4.57, 4.31, 4.12]
    evaluation = [6.64, 4.61, 3.66, 3.18, 2.79, 2.53, 2.38, 2.27]
    assert state(NAME, run_of(loss=train, eval_loss=evaluation)) is State.ABSENT


def test_in_the_first_epochs_training_may_stay_behind() -> None:
    loss, evaluation = [5.99, 5.98, 6.25, 6.27, 5.96], [5.19, 5.195, 5.19, 5.13, 5.02]
    assert state(NAME, run_of(loss=loss, eval_loss=evaluation)) is State.UNKNOWN


def test_a_set_that_is_easier_from_the_start_is_sound() -> None:
    run = run_of(loss=noisy(STUCK, 0.05), eval_loss={step: float(STUCK[step - 1]) / 1.4 for step in AT})
    assert state(NAME, run) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
def test_a_modest_gap_as_dropout_makes_it_is_sound(seed: int) -> None:
    run = run_of(loss=noisy(STUCK, 0.05, seed), eval_loss={step: float(STUCK[step - 1]) / 1.08 for step in AT})
    assert state(NAME, run) is State.ABSENT


def test_three_evaluations_cannot_tell() -> None:
    run = run_of(loss=noisy(STUCK, 0.05), eval_loss=dict.fromkeys((100, 200, 300), 1.2))
    assert state(NAME, run) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=np.ones(20))) is State.UNKNOWN


@pytest.mark.parametrize("setting", ["mixup", "cutmix_alpha", "label_smoothing"])
def test_labels_that_are_mixed_or_smoothed_keep_the_training_loss_up(setting: str) -> None:
    assert state(NAME, run_of(loss=noisy(STUCK, 0.05), eval_loss=LEARNT, config={setting: 0.2})) is State.UNKNOWN
    assert state(NAME, run_of(loss=noisy(STUCK, 0.05), eval_loss=LEARNT, config={setting: 0.0})) is State.PRESENT
