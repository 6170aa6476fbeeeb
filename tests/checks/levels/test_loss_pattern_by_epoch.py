from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def over_epochs(curve: NDArray[np.float64], per_epoch: int = 40) -> Run:
    return run_of(loss=noisy(curve, 0.04), epoch=np.arange(1, len(curve) + 1) / per_epoch)


def test_sources_one_after_the_other_in_each_of_three_epochs_are_present() -> None:
    blocks = np.tile(np.repeat([0.0, 0.6, -0.4, 0.2], 10), 3)
    assert state("loss_pattern_by_epoch", over_epochs(decay(120, 1.6, 1.1) + blocks)) is State.PRESENT


def test_noise_alone_is_absent() -> None:
    assert state("loss_pattern_by_epoch", over_epochs(decay(120, 1.6, 1.1))) is State.ABSENT


def test_a_staircase_is_absent() -> None:
    assert state("loss_pattern_by_epoch", over_epochs(np.repeat([1.4, 1.1, 0.8], 40))) is not State.PRESENT


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


SIX = np.tile([0.0, 0.5, -0.3, 0.2, 0.6, -0.5], 8)


@pytest.mark.parametrize("seed", range(4))
def test_six_records_an_epoch_show_it_in_eight_epochs(seed: int) -> None:
    run = run_of(loss=noisy(decay(48, 1.9, 1.4) + SIX, 0.04, seed), epoch=np.arange(1, 49) / 6)
    assert state("loss_pattern_by_epoch", run) is State.PRESENT


@pytest.mark.parametrize("tails", ["normal", "t3", "lognormal"])
@pytest.mark.parametrize("seed", range(12))
def test_wide_noise_in_short_epochs_is_absent(seed: int, tails: str) -> None:
    run = run_of(loss=noisy(decay(48), 0.25, seed, tails), epoch=np.arange(1, 49) / 6)
    assert state("loss_pattern_by_epoch", run) is State.ABSENT


def test_six_records_an_epoch_cannot_tell_in_five_epochs() -> None:
    run = run_of(loss=(decay(48, 1.9, 1.4) + SIX)[:30], epoch=np.arange(1, 31) / 6)
    assert state("loss_pattern_by_epoch", run) is State.UNKNOWN


def test_the_length_of_an_epoch_follows_from_rows_and_batch() -> None:
    blocks = np.tile(np.repeat([0.0, 0.6, -0.4, 0.2], 10), 3)
    config = {"train_rows": 1280, "per_device_train_batch_size": 32}
    run = run_of(loss=noisy(decay(120, 1.6, 1.1) + blocks, 0.04), config=config)
    assert state("loss_pattern_by_epoch", run) is State.PRESENT


def test_rows_grouped_by_length_as_configured_are_a_remark() -> None:
    blocks = np.tile(np.repeat([0.0, 0.6, -0.4, 0.2], 10), 3)
    run = run_of(
        loss=noisy(decay(120, 1.6, 1.1) + blocks, 0.04), epoch=np.arange(1, 121) / 40, config={"group_by_length": True}
    )
    finding = seen("loss_pattern_by_epoch", run)
    assert finding.state is State.ABSENT
    assert "length" in finding.summary


@pytest.mark.parametrize(("passes", "expected"), [(4, State.PRESENT), (3, State.ABSENT)])
def test_small_ups_and_downs_are_present_where_many_passes_agree(passes: int, expected: State) -> None:
    blocks = np.tile(np.repeat([0.0, 0.1, -0.1, 0.06], 10), passes)
    run = run_of(loss=noisy(2 + blocks, 0.005), epoch=np.arange(1, len(blocks) + 1) / 40)
    assert state("loss_pattern_by_epoch", run) is expected


def test_a_pattern_that_the_learning_rate_shares_is_unknown() -> None:
    cycle = 0.5 + 0.5 * np.cos(np.arange(160) * np.pi / 10)
    run = run_of(loss=noisy(1.2 + cycle, 0.02), learning_rate=1e-3 * (cycle + 0.01), epoch=np.arange(1, 161) / 40)
    assert state("loss_pattern_by_epoch", run) is State.UNKNOWN
