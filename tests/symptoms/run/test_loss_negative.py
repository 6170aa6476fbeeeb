from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, state


def test_a_loss_that_falls_below_zero_is_seen() -> None:
    assert state("loss_negative", run_of(loss=1 - np.arange(100) / 20)) is State.PRESENT


def test_one_rounding_error_below_zero_is_not() -> None:
    assert state("loss_negative", run_of(loss=[1.0, 0.5, 0.1, 0.01, -1e-9, *[0.01] * 30])) is State.ABSENT


def test_a_policy_loss_is_not_judged() -> None:
    assert state("loss_negative", run_of(loss=[-0.1] * 20, kind="grpo")) is State.UNKNOWN
