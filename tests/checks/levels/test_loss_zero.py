from __future__ import annotations

import math

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, state


@pytest.mark.parametrize("loss", [np.zeros(20), np.full(20, 1e-6), [0.0, 0.0]])
def test_a_loss_of_zero_from_the_start_is_present(loss: list[float]) -> None:
    assert state("loss_zero", run_of(loss=loss)) is State.PRESENT


@pytest.mark.parametrize("norm", [0.0, math.nan])
def test_a_single_zero_with_no_gradient_is_present(norm: float) -> None:
    assert state("loss_zero", run_of(loss=[0.0], grad_norm=[norm])) is State.PRESENT


def test_a_single_zero_cannot_tell() -> None:
    assert state("loss_zero", run_of(loss=[0.0])) is State.UNKNOWN
    assert state("loss_zero", run_of(loss=[0.0], grad_norm=[0.57])) is State.UNKNOWN


def test_a_loss_that_is_memorised_late_is_absent() -> None:
    assert state("loss_zero", run_of(loss=decay(200, 2.0, 0.0, 30))) is State.ABSENT


def test_a_loss_that_is_learnt_to_be_zero_is_absent() -> None:
    assert state("loss_zero", run_of(loss=decay(400, 2.0, 0.0, 150))) is State.ABSENT


def test_of_a_loss_that_drops_to_zero_after_a_start_above_it_another_symptom_tells() -> None:
    assert state("loss_zero", run_of(loss=np.concatenate([np.full(10, 2.0), np.zeros(190)]))) is State.UNKNOWN


def test_of_a_policy_loss_it_cannot_be_told() -> None:
    assert state("loss_zero", run_of(loss=np.zeros(20), kind="grpo")) is State.UNKNOWN


@pytest.mark.parametrize(("margin", "expected"), [(17.0, State.ABSENT), (0.1, State.PRESENT)])
def test_of_preferences_that_are_told_apart_it_is_absent(margin: float, expected: State) -> None:
    run = run_of({"rewards/margins": [margin] * 20}, loss=np.zeros(20), kind="preference")
    assert state("loss_zero", run) is expected


def test_squares_of_small_errors_cannot_tell() -> None:
    assert state("loss_zero", run_of(loss=decay(20, 6e-5, 3e-5))) is State.UNKNOWN


@pytest.mark.parametrize("kind", ["sft", "pretraining"])
def test_a_language_model_has_no_loss_so_small(kind: str) -> None:
    assert state("loss_zero", run_of(loss=decay(20, 6e-5, 3e-5), kind=kind)) is State.PRESENT


def test_squares_that_are_small_from_the_first_record_on_cannot_be_told() -> None:
    assert state("loss_zero", run_of(loss=[0.038, 6.5e-6, 2e-6, *np.linspace(9e-7, 4e-7, 28)])) is State.UNKNOWN


def test_a_cross_entropy_that_is_gone_by_the_second_record_is_present() -> None:
    assert state("loss_zero", run_of(loss=[2.3, *[1e-6] * 30], config={"num_labels": 10})) is State.PRESENT
