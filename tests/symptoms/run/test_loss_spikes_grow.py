from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


def with_jumps(heights: list[float]) -> Run:
    loss = noisy(decay(600, 6.0, 3.0), 0.02)
    for number, height in enumerate(heights):
        at = 120 + 70 * number
        loss[at : at + 4] += height * np.exp(-np.arange(4) / 2)
    return run_of(loss=loss)


def test_jumps_that_become_higher_are_present() -> None:
    assert state("loss_spikes_grow", with_jumps([0.8, 1.1, 1.5, 1.9, 2.4, 3.0])) is State.PRESENT


def test_jumps_of_one_height_are_absent() -> None:
    assert state("loss_spikes_grow", with_jumps([1.5, 1.4, 1.6, 1.5, 1.45, 1.55])) is State.ABSENT


def test_jumps_that_become_lower_are_absent() -> None:
    assert state("loss_spikes_grow", with_jumps([3.0, 2.4, 1.9, 1.5, 1.1, 0.9])) is State.ABSENT


def test_two_jumps_cannot_tell() -> None:
    assert state("loss_spikes_grow", with_jumps([1.0, 3.0])) is State.UNKNOWN
