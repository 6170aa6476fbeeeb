from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, state

NAME = "eval_gap_within_epoch"
FALLING = 2 * np.exp(-np.arange(200) / 40)
RISING = {20 * (number + 1): value for number, value in enumerate([1.5, 1.2, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8])}


@pytest.mark.parametrize(("epochs", "answer"), [(1, State.PRESENT), (2, State.PRESENT), (8, State.ABSENT)])
def test_it_matters_how_often_the_data_were_seen_at_the_turn(epochs: int, answer: State) -> None:
    run = run_of(loss=FALLING, eval_loss=RISING, epoch=epochs * (np.arange(200) + 1) / 200)
    assert state(NAME, run) is answer


def test_an_evaluation_that_falls_is_sound() -> None:
    falling = {step: 2 - step / 200 for step in RISING}
    run = run_of(loss=FALLING, eval_loss=falling, epoch=(np.arange(200) + 1) / 200)
    assert state(NAME, run) is State.ABSENT


def test_without_the_epoch_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=FALLING, eval_loss=RISING)) is State.UNKNOWN


def test_a_counter_of_whole_epochs_does_not_tell_either() -> None:
    run = run_of(loss=FALLING, eval_loss=RISING, epoch=np.ones(200))
    assert state(NAME, run) is State.UNKNOWN


def test_the_steps_per_epoch_tell() -> None:
    run = run_of(loss=FALLING, eval_loss=RISING, config={"steps_per_epoch": 200})
    assert state(NAME, run) is State.PRESENT
