from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


def test_an_accuracy_that_never_moves_while_the_loss_falls_is_present() -> None:
    assert state("accuracy_stands_still", run_of(loss=decay(30, 0.7, 0.3), accuracy=np.full(30, 0.62))) is State.PRESENT


def test_one_record_that_differs_does_not_hide_it() -> None:
    accuracy = [0.01, *[0.0056] * 29]
    assert state("accuracy_stands_still", run_of(loss=decay(30, 0.02, 0.01), accuracy=accuracy)) is State.PRESENT


def test_an_accuracy_that_rises_is_absent() -> None:
    run = run_of(loss=decay(30, 0.7, 0.3), accuracy=np.linspace(0.5, 0.8, 30))
    assert state("accuracy_stands_still", run) is State.ABSENT


def test_a_saturated_accuracy_is_absent() -> None:
    assert state("accuracy_stands_still", run_of(loss=decay(30, 0.2, 0.01), accuracy=np.full(30, 1.0))) is State.ABSENT


def test_where_the_loss_stands_still_too_it_cannot_be_told() -> None:
    run = run_of(loss=noisy(np.full(30, 0.69), 0.01), accuracy=np.full(30, 0.5))
    assert state("accuracy_stands_still", run) is State.UNKNOWN
