from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, noisy, run_of, seen, state

NAME = "accuracy_below_chance"
RISING = noisy(2.3 + 0.08 * np.exp(np.arange(100) / 15), 0.02)


@pytest.mark.parametrize("scale", [1, 100])
def test_a_loss_that_rises_as_hardly_anything_is_right_any_more_is_present(scale: float) -> None:
    right = scale * 0.1 * np.exp(-np.arange(100) / 10)
    finding = seen(NAME, run_of(loss=RISING, accuracy=right))
    assert finding.state is State.PRESENT
    assert finding.values["accuracy"] < 0.01


@pytest.mark.parametrize(
    ("loss", "right"),
    [
        (RISING, np.linspace(0.1, 0.1002, 100)),
        (RISING, np.linspace(0.7, 0.1, 100)),
        (RISING[::-1], np.linspace(0.1, 0.9, 100)),
        (RISING[::-1], np.linspace(0.001, 0.0011, 100)),
    ],
    ids=["as a guess", "from good to a guess", "learns", "falls where little is right by its nature"],
)
def test_what_is_no_worse_than_a_guess_or_learns_is_absent(loss: Curve, right: Curve) -> None:
    assert state(NAME, run_of(loss=loss, accuracy=right)) is State.ABSENT


def test_evaluation_tells_where_no_training_accuracy_is_logged() -> None:
    steps = range(10, 101, 10)
    losses = {step: 2.3 + 0.1 * step for step in steps}
    right = {step: 0.1 * 0.5 ** (step / 10) for step in steps}
    assert state(NAME, run_of(loss=RISING, eval_loss=losses, eval_accuracy=right)) is State.PRESENT
    assert state(NAME, run_of(loss=RISING, eval_accuracy=right)) is State.UNKNOWN


@pytest.mark.parametrize(
    ("loss", "right", "instead"), [(RISING, 0.1, "accuracy_at_guess"), (RISING[::-1], 0.001, "accuracy_stands_still")]
)
def test_an_accuracy_that_is_one_number_is_told_as_that_instead(loss: Curve, right: float, instead: str) -> None:
    run = run_of(loss=loss, accuracy=np.full(100, right))
    assert state(instead, run) is State.PRESENT
    assert state(NAME, run) is State.UNKNOWN
