from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import noisy, run_of_records, state


def resumed(extra: NDArray[np.float64]) -> Run:
    loss = noisy(np.linspace(4.0, 3.8, 160), 0.02)
    records = [{"step": float(at), "loss": float(loss[at])} for at in range(100)]
    records += [{"step": float(at), "loss": float(loss[at] + extra[at - 90])} for at in range(90, 160)]
    return run_of_records(records)


def test_a_jump_that_is_made_up_again_is_present() -> None:
    assert state("loss_settles_after_resume", resumed(1.5 * np.exp(-np.arange(70) / 8))) is State.PRESENT


def test_a_jump_that_stays_is_absent() -> None:
    assert state("loss_settles_after_resume", resumed(np.full(70, 1.5))) is State.ABSENT


def test_a_fall_at_the_resume_is_absent() -> None:
    assert state("loss_settles_after_resume", resumed(np.where(np.arange(70) < 40, -0.6, 0.0))) is State.ABSENT


def test_a_run_that_was_never_resumed_cannot_tell() -> None:
    run = run_of_records({"step": float(at), "loss": 4.0 - at / 100} for at in range(100))
    assert state("loss_settles_after_resume", run) is State.UNKNOWN
