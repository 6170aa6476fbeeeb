from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

NAME = "loss_spikes_regular"


def spiked(*at: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    curve = 1 + 2 * np.exp(-np.arange(400) / 60) + np.random.default_rng(0).normal(0, 0.03, 400)
    curve[list(at)] += 4
    return curve


def test_jumps_at_even_distances_are_seen() -> None:
    assert state(NAME, run_of(loss=spiked(80, 160, 240, 320))) is State.PRESENT


def test_jumps_at_any_distance_are_not() -> None:
    assert state(NAME, run_of(loss=spiked(80, 110, 240, 330))) is State.ABSENT


@pytest.mark.parametrize("at", [(), (100,), (100, 200)])
def test_fewer_than_three_jumps_cannot_tell(at: tuple[int, ...]) -> None:
    assert state(NAME, run_of(loss=spiked(*at))) is State.UNKNOWN


def test_a_distance_of_one_epoch_is_said_to_be_one() -> None:
    epoch = np.arange(1, 401) / 80
    assert "an epoch is 80 steps" in seen(NAME, run_of(loss=spiked(80, 160, 240, 320), epoch=epoch)).summary


def test_a_distance_that_is_no_epoch_is_not_said_to_be_one() -> None:
    epoch = np.arange(1, 401) / 55
    assert "epoch" not in seen(NAME, run_of(loss=spiked(80, 160, 240, 320), epoch=epoch)).summary


def test_a_jump_in_the_steep_fall_is_found_one_distance_before() -> None:
    steps = np.arange(300)
    curve = 0.2 + 4 * np.exp(-steps / 20) + np.random.default_rng(0).normal(0, 0.02, 300)
    curve[[38, 39, 113, 114, 188, 189, 263, 264]] += 1.2
    finding = seen(NAME, run_of(loss=curve))
    assert finding.steps[0] == 39
    assert finding.values["count"] == 4


def test_no_jump_is_made_up_one_distance_before() -> None:
    finding = seen(NAME, run_of(loss=spiked(140, 240, 340)))
    assert finding.steps[0] == 141
    assert finding.values["count"] == 3
