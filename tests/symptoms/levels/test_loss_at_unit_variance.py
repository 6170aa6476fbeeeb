from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "loss_at_unit_variance"
ONE = noisy(np.full(80, 1.0), 0.01, 1)


def test_a_diffusion_model_that_predicts_nothing_is_seen() -> None:
    finding = seen(NAME, run_of(loss=ONE, kind="diffusion"))
    assert finding.state is State.PRESENT
    assert finding.values["level"] == pytest.approx(1, abs=0.01)


def test_a_squared_error_is_known_by_the_absolute_one_beside_it_or_by_its_name() -> None:
    assert state(NAME, run_of(loss=ONE, mae=np.sqrt(ONE) * 0.8)) is State.PRESENT
    assert state(NAME, run_of(loss=ONE, mse=ONE)) is State.PRESENT


def test_a_fall_below_one_or_another_level_is_absent() -> None:
    assert state(NAME, run_of(loss=decay(80, 1.0, 0.05), kind="diffusion")) is State.ABSENT
    assert state(NAME, run_of(loss=1.2 * ONE, mae=np.sqrt(1.2 * ONE) * 0.8)) is State.ABSENT


def test_where_nothing_says_that_it_is_a_squared_error_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=ONE)) is State.UNKNOWN
    assert state(NAME, run_of(loss=ONE, mae=0.3 * ONE)) is State.UNKNOWN
