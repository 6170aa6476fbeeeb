from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, state


def test_a_norm_that_grows_a_hundredfold_is_present() -> None:
    run = run_of(grad_norm=noisy(0.3 * np.exp(np.linspace(0, 5, 200)), 0.02), loss=np.linspace(4, 3, 200))
    assert state("grad_norm_grows_far", run) is State.PRESENT


def test_a_norm_that_grows_by_a_factor_of_six_is_absent() -> None:
    run = run_of(grad_norm=noisy(0.3 * np.exp(np.linspace(0, 1.8, 200)), 0.02), loss=np.linspace(4, 3, 200))
    assert state("grad_norm_growing", run) is State.PRESENT
    assert state("grad_norm_grows_far", run) is State.ABSENT


def test_few_norms_cannot_tell() -> None:
    assert state("grad_norm_grows_far", run_of(grad_norm=[0.1, 1.0, 10.0])) is State.UNKNOWN
