from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state

LOSS = noisy(decay(300, 10.8, 3.2, 9.0), 0.02)


def beside(gap: NDArray[np.float64], kind: str = "pretraining") -> Run:
    at = range(30, 301, 30)
    return run_of(
        loss=LOSS,
        eval_loss={step: float(LOSS[step - 3 : step].mean() + more) for step, more in zip(at, gap, strict=True)},
        kind=kind,
    )


def test_the_same_gap_of_a_nat_at_every_evaluation_is_present() -> None:
    assert state("eval_gap_steady", beside(np.full(10, 1.0))) is State.PRESENT


def test_a_gap_of_hundredths_is_absent() -> None:
    assert state("eval_gap_steady", beside(np.full(10, 0.05))) is State.ABSENT


def test_a_gap_that_widens_is_absent() -> None:
    assert state("eval_gap_steady", beside(np.linspace(0.5, 2.5, 10))) is State.ABSENT


def test_another_kind_of_loss_cannot_tell() -> None:
    assert state("eval_gap_steady", beside(np.full(10, 1.0), "supervised")) is State.UNKNOWN
