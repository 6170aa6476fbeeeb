"""`loss_repeats`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "loss_repeats"
EPOCH = np.round(noisy([1.1] * 8, 0.1), 4)


@pytest.mark.parametrize("records", [14, 16, 40])
def test_losses_that_come_again_number_by_number_are_present(records: int) -> None:
    finding = seen(NAME, run_of(loss=np.tile(EPOCH, 5)[:records]))
    assert finding.state is State.PRESENT
    assert finding.values["period"] == 8
    assert finding.values["records"] == records - 8


def test_a_model_that_stops_learning_is_present_from_there_on() -> None:
    learnt = np.linspace(3, 1.2, 16)
    finding = seen(NAME, run_of(loss=np.concatenate([learnt, np.tile(EPOCH, 3)])))
    assert finding.state is State.PRESENT
    assert finding.steps == [25]


def test_a_pattern_that_comes_again_roughly_is_absent() -> None:
    assert state(NAME, run_of(loss=np.tile(EPOCH, 4) - np.linspace(0, 0.01, 32))) is State.ABSENT


def test_rounded_losses_that_swing_between_two_numbers_are_absent() -> None:
    assert state(NAME, run_of(loss=np.tile([0.01, 0.02], 20))) is State.ABSENT


def test_a_constant_loss_is_absent() -> None:
    assert state(NAME, run_of(loss=np.full(20, 0.7))) is State.ABSENT


def test_a_few_records_are_unknown() -> None:
    assert state(NAME, run_of(loss=EPOCH)) is State.UNKNOWN
