from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "overflows_in_fp16"
LOSS = noisy(np.full(200, 2.3), 0.02)
LOST = np.full(200, np.inf)


def test_gradients_that_are_never_finite_beside_a_loss_at_rest_are_present() -> None:
    finding = seen(NAME, run_of(loss=LOSS, grad_norm=LOST, config={"fp16": True}))
    assert finding.state is State.PRESENT
    assert finding.values["share"] == 1


def test_a_loss_scale_that_moves_by_halves_tells_the_precision() -> None:
    scale = 2.0 ** np.maximum(16 - np.arange(200), -10)
    assert state(NAME, run_of(loss=LOSS, grad_norm=LOST, loss_scale=scale)) is State.PRESENT


@pytest.mark.parametrize("config", [{"bf16": True}, {"fp16": False, "bf16": False}])
def test_in_another_precision_it_is_absent(config: dict[str, bool]) -> None:
    loss = decay(50)
    loss[30:] = np.nan
    assert state(NAME, run_of(loss=loss, config=config)) is State.ABSENT


def test_where_nothing_tells_the_precision_it_is_unknown() -> None:
    assert state(NAME, run_of(loss=LOSS, grad_norm=LOST)) is State.UNKNOWN
    assert state(NAME, run_of(loss=LOSS, grad_norm=LOST, loss_scale=np.ones(200))) is State.UNKNOWN


def test_a_scaler_that_looks_for_its_scale_loses_steps_that_do_not_count() -> None:
    norm = np.ones(400)
    norm[:16] = np.inf
    norm[[150, 250, 350]] = np.inf
    assert state(NAME, run_of(loss=decay(400), grad_norm=norm, config={"fp16": True})) is State.UNKNOWN


def test_a_healthy_run_in_half_precision_is_not_judged() -> None:
    assert state(NAME, run_of(loss=decay(400), grad_norm=np.ones(400), config={"fp16": True})) is State.UNKNOWN
