from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def test_a_stretch_of_zero_is_present_with_its_step() -> None:
    finding = seen("lr_zero", run_of(learning_rate=[1e-4] * 50 + [0.0] * 20))
    assert finding.state is State.PRESENT
    assert finding.steps == [51]


def test_a_schedule_that_ends_at_zero_is_absent() -> None:
    assert state("lr_zero", run_of(learning_rate=np.linspace(1e-4, 0, 50))) is State.ABSENT


def test_without_a_rate_it_cannot_be_told() -> None:
    assert state("lr_zero", run_of(loss=[1.0] * 20)) is State.UNKNOWN
