from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


def test_a_loss_that_falls_below_zero_is_seen() -> None:
    assert state("loss_negative", run_of(loss=1 - np.arange(100) / 20)) is State.PRESENT


def test_one_rounding_error_below_zero_is_not() -> None:
    assert state("loss_negative", run_of(loss=[1.0, 0.5, 0.1, 0.01, -1e-9, *[0.01] * 30])) is State.ABSENT


def test_a_policy_loss_is_not_judged() -> None:
    assert state("loss_negative", run_of(loss=[-0.1] * 20, kind="grpo")) is State.UNKNOWN


def test_a_loss_that_levels_off_below_zero_is_absent() -> None:
    assert state("loss_negative", run_of(loss=noisy(decay(200, 2.0, -6.0), 0.02))) is State.ABSENT


def test_a_loss_that_is_negative_all_along_and_does_not_fall_is_absent() -> None:
    assert state("loss_negative", run_of(loss=noisy(np.full(60, -12.7), 0.001))) is State.ABSENT


def test_beside_an_accuracy_a_loss_below_zero_is_seen_however_it_bends() -> None:
    run = run_of(loss=decay(40, 1.0, -3.0), accuracy=np.linspace(0.1, 0.2, 40))
    assert state("loss_negative", run) is State.PRESENT


def test_a_language_model_has_no_negative_loss() -> None:
    assert state("loss_negative", run_of(loss=decay(40, 1.0, -0.5), kind="sft")) is State.PRESENT


def test_a_loss_that_falls_ever_faster_is_seen_in_few_records() -> None:
    assert state("loss_negative", run_of(loss=[0.4, -20.0, -900.0, -8000.0, -40000.0, -120000.0])) is State.PRESENT


def test_a_configured_vocabulary_makes_it_a_cross_entropy() -> None:
    run = run_of(loss=decay(40, -4.0, -120.0), config={"vocab_size": 88})
    assert state("loss_negative", run) is State.PRESENT


def test_a_loss_that_grows_without_a_bound_below_zero_is_seen_though_a_decaying_rate_bends_it() -> None:
    assert state("loss_negative", run_of(loss=decay(300, -4.4, -150.0, 70))) is State.PRESENT
    assert state("loss_negative", run_of(loss=decay(300, -4.4, -12.0, 70))) is State.ABSENT


def test_a_loss_of_masks_is_not_far_below_zero() -> None:
    far = noisy(np.full(60, -900.0), 0.001)
    assert state("loss_negative", run_of(loss=far, eval_dice=[1.7] * 20)) is State.PRESENT
    assert state("loss_negative", run_of(loss=far)) is State.ABSENT


def test_a_dice_score_that_is_maximised_is_absent() -> None:
    assert state("loss_negative", run_of(loss=decay(40, 0.2, -0.9), eval_dice=decay(40, 0.1, 0.9))) is State.ABSENT


def test_a_loss_that_swings_about_zero_falls_nowhere() -> None:
    noise = np.random.default_rng(3).normal(0.0, 0.03, 200)
    assert state("loss_negative", run_of(loss=noise - np.linspace(0, 0.02, 200))) is State.ABSENT


@pytest.mark.parametrize(("name", "expected"), [("sigma_a", State.ABSENT), ("mse_a", State.PRESENT)])
def test_a_variance_that_is_learnt_with_the_rest_may_take_the_loss_below_zero(name: str, expected: State) -> None:
    run = run_of({name: decay(100, 1.0, 0.5)}, loss=1 - np.arange(100) / 20)
    assert state("loss_negative", run) is expected
