from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

EPOCH = (np.arange(300) + 1) / 100
STAIRS = np.repeat([1.2, 0.8, 0.45], 100)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epoch", [EPOCH, np.ceil(EPOCH) - 1], ids=["fractions", "whole numbers"])
def test_a_staircase_is_present_with_its_steps(epoch: np.ndarray[tuple[int], np.dtype[np.float64]], seed: int) -> None:
    finding = seen("loss_epoch_steps", run_of(loss=noisy(STAIRS, 0.1, seed), epoch=epoch))
    assert finding.state is State.PRESENT
    assert finding.steps == [101, 201]


def test_the_steps_per_epoch_may_be_configured() -> None:
    run = run_of(loss=noisy(STAIRS, 0.1), config={"steps_per_epoch": 100})
    assert state("loss_epoch_steps", run) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_an_even_fall_is_absent(seed: int) -> None:
    assert state("loss_epoch_steps", run_of(loss=noisy(decay(300), 0.05, seed), epoch=EPOCH)) is State.ABSENT


def test_falls_where_the_learning_rate_is_cut_are_absent() -> None:
    run = run_of(loss=noisy(STAIRS, 0.05), epoch=EPOCH, learning_rate=np.repeat([0.1, 0.01, 0.001], 100))
    assert state("loss_epoch_steps", run) is State.ABSENT


def test_without_epochs_it_cannot_be_told() -> None:
    assert state("loss_epoch_steps", run_of(loss=STAIRS)) is State.UNKNOWN


def test_one_record_per_epoch_cannot_tell() -> None:
    assert state("loss_epoch_steps", run_of(loss=decay(30), epoch=np.arange(30.0))) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(3))
def test_the_small_steps_of_a_sound_fine_tune_are_a_remark(seed: int) -> None:
    stairs = noisy(np.repeat([0.60, 0.55, 0.51], 100), 0.01, seed)
    finding = seen("loss_epoch_steps", run_of(loss=stairs, epoch=EPOCH))
    assert finding.state is State.ABSENT
    assert "epoch boundaries" in finding.summary


def test_the_steps_of_preference_tuning_over_two_epochs_are_a_remark() -> None:
    loss = noisy(np.repeat([0.52, 0.4], 60), 0.01)
    pairs = run_of(loss=loss, epoch=np.arange(1, 121) / 60, kind="preference")
    assert state("loss_epoch_steps", pairs) is State.ABSENT
    assert state("loss_epoch_steps", run_of(loss=loss, epoch=np.arange(1, 121) / 60, kind="sft")) is State.PRESENT
