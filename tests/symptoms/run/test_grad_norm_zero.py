from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def test_a_gradient_that_is_zero_throughout_is_present() -> None:
    run = run_of(grad_norm=np.zeros(30), loss=noisy(np.full(30, 2.0), 0.02))
    assert state("grad_norm_zero", run) is State.PRESENT


def test_a_gradient_that_is_zero_from_some_step_on_is_present_with_that_step() -> None:
    finding = seen("grad_norm_zero", run_of(grad_norm=[1.0] * 30 + [0.0] * 20))
    assert finding.state is State.PRESENT
    assert finding.steps == [31]


def test_single_zeros_are_absent() -> None:
    assert state("grad_norm_zero", run_of(grad_norm=[0.5, 0.0, 0.4, 0.3, 0.0, 0.6] * 5, kind="grpo")) is State.ABSENT


def test_a_norm_that_is_not_computed_cannot_tell() -> None:
    assert state("grad_norm_zero", run_of(grad_norm=np.zeros(60), loss=decay(60))) is State.UNKNOWN


def test_a_single_record_cannot_tell() -> None:
    assert state("grad_norm_zero", run_of(grad_norm=[0.0], loss=[1.0])) is State.UNKNOWN
