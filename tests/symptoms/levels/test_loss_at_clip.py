from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


@pytest.mark.parametrize(
    ("loss", "accuracy"), [(8.0590, 0.5), (14.506, 0.1), (5.7257, 0.6448), (17.2694, 0.5), (15.79, 0.0202)]
)
def test_sure_answers_that_are_wrong_as_often_as_the_accuracy_says_are_present(loss: float, accuracy: float) -> None:
    run = run_of(loss=[2.1, 1.7, *[loss] * 8], accuracy=[0.2, 0.3, *[accuracy] * 8])
    finding = seen("loss_at_clip", run)
    assert finding.state is State.PRESENT
    assert finding.steps == [3]


def test_the_bound_itself_is_known_without_an_accuracy() -> None:
    assert state("loss_at_clip", run_of(loss=[9.8, 9.9, *[87.3365] * 5])) is State.PRESENT


def test_a_loss_that_comes_by_the_value_is_absent() -> None:
    run = run_of(loss=noisy(decay(60, 12.0, 6.0), 0.01), accuracy=np.full(60, 0.5))
    assert state("loss_at_clip", run) is State.ABSENT


def test_a_model_that_learns_is_absent() -> None:
    run = run_of(loss=decay(60, 2.3, 0.2), accuracy=np.linspace(0.1, 0.95, 60))
    assert state("loss_at_clip", run) is State.ABSENT


def test_without_an_accuracy_other_losses_cannot_tell() -> None:
    assert state("loss_at_clip", run_of(loss=decay(60, 20.0, 12.0))) is State.UNKNOWN


def test_a_loss_of_a_hundred_is_that_of_an_answer_kept_above_e_to_minus_a_hundred() -> None:
    assert state("loss_at_clip", run_of(loss=[100.0] * 6)) is State.PRESENT
    assert (
        state("loss_at_clip", run_of(loss=[100.0] * 6, accuracy=[0.003, 0.011, 0.001, 0.02, 0.004, 0.013]))
        is State.PRESENT
    )
