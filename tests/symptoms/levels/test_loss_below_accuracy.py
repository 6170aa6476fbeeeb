from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "loss_below_accuracy"


def test_a_loss_that_wrong_answers_cannot_have_is_seen() -> None:
    finding = seen(NAME, run_of(loss=decay(6, 0.9, 0.01), accuracy=[0.0] * 6))
    assert finding.state is State.PRESENT
    assert finding.values["least"] == pytest.approx(np.log(2))


def test_an_accuracy_in_per_cent_is_read_as_a_share() -> None:
    assert state(NAME, run_of(loss=[0.004] * 8, accuracy=[40.0, 41.0] * 4)) is State.PRESENT
    assert state(NAME, run_of(loss=[0.004] * 8, accuracy=[98.0, 99.0] * 4)) is State.ABSENT


@pytest.mark.parametrize(
    ("loss", "right"), [(1.2, 0.5), (0.05, 0.6), (0.002, 0.9)], ids=["usual", "focal", "few wrong"]
)
def test_a_loss_that_such_answers_may_have_is_sound(loss: float, right: float) -> None:
    assert state(NAME, run_of(loss=[loss] * 8, accuracy=[right] * 8)) is State.ABSENT


def test_three_records_cannot_tell() -> None:
    assert state(NAME, run_of(loss=[0.01] * 3, accuracy=[0.0] * 3)) is State.UNKNOWN


@pytest.mark.parametrize("metrics", [{"eval_cer": [100.0, 92.0, *[74.0] * 8]}, {"eval_bleu": [2.0, *[6.0] * 9]}])
def test_a_loss_near_zero_beside_written_answers_that_are_wrong_is_seen(metrics: dict[str, list[float]]) -> None:
    loss = decay(10, 5.4, 0.06, 9)
    assert state(NAME, run_of(metrics, loss=loss, eval_loss=loss)) is State.PRESENT
    assert state(NAME, run_of(metrics, loss=loss, eval_loss=np.linspace(3, 2, 10))) is State.ABSENT


def test_written_answers_that_get_right_as_the_loss_falls_are_sound() -> None:
    loss = decay(10, 5.4, 0.06, 9)
    run = run_of({"eval_wer": np.linspace(1.1, 0.05, 10)}, loss=loss, eval_loss=loss)
    assert state(NAME, run) is State.ABSENT


@pytest.mark.parametrize(("reached", "answer"), [(0.3, State.PRESENT), (1.9, State.UNKNOWN)])
def test_an_accuracy_of_evaluation_that_never_changes_is_held_against_its_loss(reached: float, answer: State) -> None:
    losses = dict(zip(range(5, 101, 5), decay(20, 2.3, reached), strict=True))
    run = run_of(loss=decay(100, 2.3, reached), eval_loss=losses, eval_accuracy=dict.fromkeys(losses, 0.1))
    assert state("loss_below_accuracy", run) is answer
