from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


def test_a_gradient_norm_that_becomes_nan_is_present_with_its_step() -> None:
    norm = np.ones(50)
    norm[20:] = math.nan
    finding = seen("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(50)))
    assert finding.state is State.PRESENT
    assert finding.steps == [21]


def test_a_single_overflow_that_a_scaler_skips_is_remarked_only() -> None:
    norm = np.ones(300)
    norm[100] = math.inf
    finding = seen("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(300)))
    assert finding.state is State.ABSENT
    assert "step 101" in finding.summary


def test_overflows_of_the_first_steps_alone_are_remarked_only() -> None:
    norm = np.ones(60)
    norm[:6] = math.inf
    assert state("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(60))) is State.ABSENT
    norm[30:34] = math.inf
    assert state("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(60))) is State.PRESENT


def test_without_gradient_norms_it_cannot_be_told() -> None:
    assert state("grad_norm_nonfinite", run_of(loss=decay(50))) is State.UNKNOWN
