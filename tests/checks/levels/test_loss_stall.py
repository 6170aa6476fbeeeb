from __future__ import annotations

import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


@pytest.mark.parametrize("seed", range(5))
def test_a_fall_that_stops_near_a_guess_by_frequency_is_present(seed: int) -> None:
    run = run_of(loss=noisy(decay(300, 10.8, 7.0, 40), 0.005, seed), config={"vocab_size": 50257})
    assert state("loss_stall", run) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_plateau_at_a_low_level_is_absent(seed: int) -> None:
    run = run_of(loss=noisy(decay(300, 2.0, 1.2, 40), 0.05, seed), config={"vocab_size": 50257})
    assert state("loss_stall", run) is State.ABSENT


def test_without_the_number_of_classes_it_cannot_be_told() -> None:
    assert state("loss_stall", run_of(loss=noisy(decay(300, 2.3, 1.9, 40), 0.005))) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(5))
def test_a_level_that_only_noise_sets_apart_from_the_first_records_is_absent(seed: int) -> None:
    run = run_of(loss=noisy([0.66, *[0.63] * 199], 0.06, seed), config={"num_labels": 2})
    assert state("loss_stall", run) is not State.PRESENT


def test_a_classifier_that_stands_still_for_a_dozen_epochs_is_enough() -> None:
    epochs = [4.6, 4.4, 4.2, 4.0, 3.91, 3.92, 3.9, 3.91, 3.9, 3.92, 3.91, 3.9, 3.91, 3.9]
    run = run_of({"loss": epochs}, config={"num_labels": 100}, every=100)
    assert state("loss_stall", run) is State.PRESENT
    learns = [4.6 * 0.9**epoch for epoch in range(13)]
    assert state("loss_stall", run_of({"loss": learns}, config={"num_labels": 100}, every=100)) is State.ABSENT


@pytest.mark.parametrize(
    ("mixup", "evaluated", "answer"), [(0.8, 0.3, State.UNKNOWN), (0.8, 1.8, State.PRESENT), (0.0, 0.3, State.PRESENT)]
)
def test_mixed_labels_keep_a_loss_up_where_evaluation_learns(mixup: float, evaluated: float, answer: State) -> None:
    loss, evaluation = decay(300, 2.3, 1.4, 40), dict.fromkeys(range(50, 301, 50), evaluated)
    run = run_of(loss=noisy(loss, 0.005), eval_loss=evaluation, config={"num_labels": 10, "mixup": mixup})
    assert state("loss_stall", run) is answer
