from __future__ import annotations

import numpy as np

from mldebug_mcp.checks.learning_rate import rate_comes_back
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state

AT = np.arange(150)
RESTARTS = 0.05 * (1 + np.cos(np.pi * (AT % 30) / 30))
FOLLOWS = decay(150, 2.0, 1.0, 3) * (1 + 3 * RESTARTS)


def test_warm_restarts_come_back_once_each() -> None:
    assert rate_comes_back(run_of(learning_rate=RESTARTS)) == [30, 60, 90, 120]


def test_a_triangle_comes_back_from_each_of_its_feet() -> None:
    triangle = 0.01 + 0.09 * np.abs((AT % 40) / 20 - 1)
    assert rate_comes_back(run_of(learning_rate=triangle)) == [21, 61, 101, 141]


def test_warmup_decay_and_stages_do_not_come_back() -> None:
    warmed = np.minimum(1, (AT + 1) / 20) * (1 + np.cos(np.pi * AT / 150))
    assert rate_comes_back(run_of(learning_rate=warmed)) == []
    assert rate_comes_back(run_of(learning_rate=np.power(0.1, 1.0 + AT // 40))) == []
    assert rate_comes_back(run_of(loss=decay(120))) == []


def test_a_loss_that_follows_a_rate_that_comes_back_is_no_saw_nor_periodic_nor_falls_back() -> None:
    loss = noisy(FOLLOWS, 0.01)
    assert state("loss_sawtooth", run_of(loss=loss)) is State.PRESENT
    assert state("loss_sawtooth", run_of(loss=loss, learning_rate=RESTARTS)) is State.UNKNOWN
    waves = noisy(decay(150, 2.0, 1.0, 3) * (1 + 0.2 * np.sin(2 * np.pi * AT / 30)), 0.01)
    assert state("loss_periodic", run_of(loss=waves)) is State.PRESENT
    assert state("loss_periodic", run_of(loss=waves, learning_rate=RESTARTS)) is State.UNKNOWN
    assert state("loss_falls_back", run_of(loss=loss, learning_rate=RESTARTS)) is not State.PRESENT
