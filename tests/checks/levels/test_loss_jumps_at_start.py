from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "loss_jumps_at_start"


@pytest.mark.parametrize("seed", range(5))
def test_a_pretrained_model_that_is_ruined_in_the_first_steps_is_seen(seed: int) -> None:
    loss = noisy(decay(200, 4.5, 1.5), 0.05, seed)
    loss[0] = 0.7
    finding = seen(NAME, run_of(loss=loss))
    assert finding.values["first"] == 0.7
    assert finding.steps == [2]


@pytest.mark.parametrize("seed", range(5))
def test_a_fresh_model_that_gets_worse_at_first_is_seen(seed: int) -> None:
    loss = noisy(decay(200, 2.7, 1.0), 0.03, seed)
    loss[2:6] = 5.0
    assert state(NAME, run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(10))
def test_a_low_first_record_in_noise_is_none(seed: int) -> None:
    loss = noisy(np.full(200, 2.0), 0.4, seed)
    loss[0] = 1.1
    assert state(NAME, run_of(loss=loss)) is State.ABSENT


@pytest.mark.parametrize("seed", range(10))
def test_a_loss_that_only_falls_is_sound(seed: int) -> None:
    assert state(NAME, run_of(loss=noisy(decay(200, 4.5, 1.5), 0.1, seed))) is State.ABSENT


def test_a_leap_in_the_middle_is_another_symptom() -> None:
    loss = noisy(decay(200, 2.7, 1.0), 0.03)
    loss[80:84] = 5.0
    assert state(NAME, run_of(loss=loss)) is not State.PRESENT


def test_a_short_log_cannot_tell() -> None:
    assert state(NAME, run_of(loss=[1.0, 4.0, 3.0, 2.0])) is State.UNKNOWN
