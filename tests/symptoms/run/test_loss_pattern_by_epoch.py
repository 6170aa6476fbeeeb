from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


def over_epochs(curve: NDArray[np.float64], per_epoch: int = 40) -> Run:
    return run_of(loss=noisy(curve, 0.04), epoch=np.arange(1, len(curve) + 1) / per_epoch)


def test_sources_one_after_the_other_in_each_of_three_epochs_are_present() -> None:
    blocks = np.tile(np.repeat([0.0, 0.6, -0.4, 0.2], 10), 3)
    assert state("loss_pattern_by_epoch", over_epochs(decay(120, 1.6, 1.1) + blocks)) is State.PRESENT


def test_noise_alone_is_absent() -> None:
    assert state("loss_pattern_by_epoch", over_epochs(decay(120, 1.6, 1.1))) is State.ABSENT


def test_a_staircase_is_absent() -> None:
    assert state("loss_pattern_by_epoch", over_epochs(np.repeat([1.4, 1.1, 0.8], 40))) is State.ABSENT


def test_sources_in_another_order_each_epoch_are_absent() -> None:
    blocks = np.concatenate(
        [np.repeat(order, 10) for order in ([0.0, 0.6, -0.4, 0.2], [0.6, 0.2, 0.0, -0.4], [-0.4, 0.0, 0.2, 0.6])]
    )
    assert state("loss_pattern_by_epoch", over_epochs(decay(120, 1.6, 1.1) + blocks)) is State.ABSENT


def test_one_epoch_cannot_tell() -> None:
    assert state("loss_pattern_by_epoch", over_epochs(decay(120, 1.6, 1.1), 200)) is State.UNKNOWN


def test_rows_in_the_order_of_their_difficulty_are_present() -> None:
    saw = np.tile(np.linspace(-0.45, 0.45, 40), 4)
    assert state("loss_pattern_by_epoch", over_epochs(1.2 + saw)) is State.PRESENT


def test_a_loss_that_climbs_through_all_epochs_is_absent() -> None:
    assert state("loss_pattern_by_epoch", over_epochs(np.linspace(1.2, 5.0, 160))) is State.ABSENT
