from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def test_a_stretch_of_zero_is_present_with_its_step() -> None:
    finding = seen("lr_zero", run_of(learning_rate=[1e-4] * 50 + [0.0] * 20))
    assert finding.state is State.PRESENT
    assert finding.steps == [51]


def test_a_rate_rounded_to_zero_while_the_loss_is_learnt_is_not_taken_for_zero() -> None:
    falling = np.geomspace(10, 7, 40)
    assert state("lr_zero", run_of(learning_rate=[0.0] * 40, loss=falling)) is State.UNKNOWN
    assert state("lr_zero", run_of(learning_rate=[1e-4] * 20 + [0.0] * 20, loss=falling)) is State.UNKNOWN
    assert state("lr_zero", run_of(learning_rate=[1e-4] * 20 + [0.0] * 20, loss=[2.0] * 40)) is State.PRESENT
    exact = np.concatenate([np.linspace(1.234567e-4, 1.1e-6, 20), np.zeros(20)])
    assert state("lr_zero", run_of(learning_rate=exact, loss=falling)) is State.PRESENT


def test_a_schedule_that_ends_at_zero_is_absent() -> None:
    assert state("lr_zero", run_of(learning_rate=np.linspace(1e-4, 0, 50))) is State.ABSENT


def test_without_a_rate_it_cannot_be_told() -> None:
    assert state("lr_zero", run_of(loss=[1.0] * 20)) is State.UNKNOWN
