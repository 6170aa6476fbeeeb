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


def test_an_evaluation_whose_loss_forbids_its_accuracy_is_seen_as_well() -> None:
    run = run_of(loss=np.geomspace(1.4, 1e-3, 40), eval_loss=dict.fromkeys(range(5, 41, 5), 0.002),
                 eval_accuracy=dict.fromkeys(range(5, 41, 5), 0.28), kind="supervised")  # fmt: skip
    assert state("loss_below_accuracy", run) is State.PRESENT
