from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "loss_spike_nats"
STEPS = np.arange(2000)


def curve(height: float, width: float, at: tuple[int, ...] = (1000, 1350, 1800)) -> NDArray[np.float64]:
    """Return the loss of a language model from scratch, with jumps that fade within so many records."""
    loss = noisy(2.8 + 8.0 * np.exp(-STEPS / 200), 0.01)
    for first in at:
        loss[first:] += height * np.exp(-(STEPS[first:] - first) / width)
    return loss


def test_jumps_by_nats_that_take_several_records_are_seen() -> None:
    finding = seen(NAME, run_of(loss=curve(2.5, 5)))
    assert finding.state is State.PRESENT
    assert finding.values["count"] == 3
    assert 2.0 < finding.values["height"] < 3.0
    assert 1001 in finding.steps


def test_one_record_that_jumps_may_be_one_batch() -> None:
    assert state(NAME, run_of(loss=curve(2.5, 0.1, (1000,)))) is State.ABSENT


def test_jumps_as_hard_text_makes_them_are_absent() -> None:
    assert state(NAME, run_of(loss=curve(0.8, 5))) is State.ABSENT


def test_a_model_that_comes_trained_is_not_judged() -> None:
    assert state(NAME, run_of(loss=curve(2.5, 5) - 7.0)) is State.UNKNOWN


def test_without_a_jump_there_is_nothing_to_measure() -> None:
    assert state(NAME, run_of(loss=curve(0, 5))) is State.UNKNOWN
