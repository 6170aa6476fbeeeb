from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


@pytest.mark.parametrize("seed", range(5))
def test_a_metric_that_jumps_at_random_is_present(seed: int) -> None:
    accuracy = np.random.default_rng(seed).uniform(0.1, 0.9, 30)
    assert state("eval_metric_flickers", run_of(eval_accuracy=accuracy)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_loss_that_jumps_at_random_is_present(seed: int) -> None:
    loss = noisy(np.full(60, 2.0), 0.7, seed, "lognormal")
    assert state("eval_metric_flickers", run_of(eval_loss=loss)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_noisy_metric_with_a_trend_is_absent(seed: int) -> None:
    accuracy = noisy(1 - decay(30, 0.9, 0.1), 0.05, seed)
    assert state("eval_metric_flickers", run_of(eval_accuracy=accuracy, eval_loss=decay(30))) is State.ABSENT


def test_small_random_changes_of_a_converged_metric_are_absent() -> None:
    assert state("eval_metric_flickers", run_of(eval_accuracy=noisy(np.full(30, 0.9), 0.03))) is State.ABSENT


def test_seven_evaluations_cannot_tell() -> None:
    assert state("eval_metric_flickers", run_of(eval_accuracy=[0.1, 0.9] * 3)) is State.UNKNOWN
