from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

FLAT = noisy(np.full(100, 2.3), 0.01)


def test_a_gradient_that_is_zero_throughout_is_present() -> None:
    run = run_of(grad_norm=np.zeros(30), loss=noisy(np.full(30, 2.0), 0.02))
    assert state("grad_norm_zero", run) is State.PRESENT


def test_a_gradient_that_is_zero_from_some_step_on_is_present_with_that_step() -> None:
    finding = seen("grad_norm_zero", run_of(grad_norm=[1.0] * 30 + [0.0] * 20))
    assert finding.state is State.PRESENT
    assert finding.steps == [31]


def test_single_zeros_are_absent() -> None:
    assert state("grad_norm_zero", run_of(grad_norm=[0.5, 0.0, 0.4, 0.3, 0.0, 0.6] * 5, kind="grpo")) is State.ABSENT


def test_a_norm_that_is_not_computed_cannot_tell() -> None:
    assert state("grad_norm_zero", run_of(grad_norm=np.zeros(60), loss=decay(60))) is State.UNKNOWN


def test_a_single_record_cannot_tell() -> None:
    assert state("grad_norm_zero", run_of(grad_norm=[0.0], loss=[1.0])) is State.UNKNOWN


@pytest.mark.parametrize(("kind", "level"), [("sft", 5e-4), ("grpo", 1e-6), ("supervised", 1e-8), ("unknown", 1e-8)])
def test_a_tiny_norm_at_an_ordinary_loss_is_present(kind: str, level: float) -> None:
    run = run_of(grad_norm=noisy(np.full(100, level), 0.3), loss=FLAT, kind=kind)
    assert state("grad_norm_vanishing", run) is State.PRESENT


def test_a_norm_that_falls_a_thousandfold_is_present() -> None:
    run = run_of(grad_norm=np.concatenate([np.full(30, 5.0), np.full(70, 1e-3)]), loss=FLAT)
    assert state("grad_norm_vanishing", run) is State.PRESENT


@pytest.mark.parametrize(("kind", "level"), [("sft", 0.05), ("grpo", 0.002), ("unknown", 1e-4)])
def test_a_small_norm_is_absent(kind: str, level: float) -> None:
    assert state("grad_norm_vanishing", run_of(grad_norm=np.full(100, level), loss=FLAT, kind=kind)) is State.ABSENT


def test_a_norm_that_falls_with_the_loss_is_absent() -> None:
    run = run_of(grad_norm=np.geomspace(1, 1e-6, 100), loss=decay(100, 2.0, 0.001, 12))
    assert state("grad_norm_vanishing", run) is State.ABSENT


def test_zeros_cannot_tell() -> None:
    assert state("grad_norm_vanishing", run_of(grad_norm=np.zeros(100), loss=FLAT)) is State.UNKNOWN


def test_two_norms_that_are_rounding_errors_are_enough() -> None:
    assert state("grad_norm_vanishing", run_of(loss=[0.1, 0.1], grad_norm=[8e-19, 4e-19])) is State.PRESENT


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("kind", "level"), [("sft", 300.0), ("grpo", 30.0)])
def test_norms_in_the_unstable_band_are_present(kind: str, level: float, seed: int) -> None:
    norm = noisy(np.full(100, level), 0.3, seed)
    assert state("grad_norm_high", run_of(grad_norm=norm, kind=kind)) is State.PRESENT


@pytest.mark.parametrize(("kind", "level"), [("sft", 8.0), ("sft", 30.0), ("grpo", 0.8)])
def test_norms_below_it_are_absent(kind: str, level: float) -> None:
    assert state("grad_norm_high", run_of(grad_norm=noisy(np.full(100, level), 0.3), kind=kind)) is State.ABSENT


def test_a_single_spike_is_another_symptom() -> None:
    norm = np.ones(100)
    norm[50] = 1e4
    assert state("grad_norm_high", run_of(grad_norm=norm, kind="sft")) is State.ABSENT


@pytest.mark.parametrize("kind", ["unknown", "rl", "pretraining", "diffusion"])
def test_of_kinds_without_a_known_band_it_cannot_be_told(kind: str) -> None:
    assert state("grad_norm_high", run_of(grad_norm=np.full(100, 1e5), kind=kind)) is State.UNKNOWN


def test_a_gradient_norm_that_becomes_nan_is_present_with_its_step() -> None:
    norm = np.ones(50)
    norm[20:] = math.nan
    finding = seen("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(50)))
    assert finding.state is State.PRESENT
    assert finding.steps == [21]


def test_a_single_overflow_that_a_scaler_skips_is_remarked_only() -> None:
    norm = np.ones(300)
    norm[100] = math.inf
    finding = seen("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(300)))
    assert finding.state is State.ABSENT
    assert "step 101" in finding.summary


def test_overflows_of_the_first_steps_alone_are_remarked_only() -> None:
    norm = np.ones(60)
    norm[:6] = math.inf
    assert state("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(60))) is State.ABSENT
    norm[30:34] = math.inf
    assert state("grad_norm_nonfinite", run_of(grad_norm=norm, loss=decay(60))) is State.PRESENT


def test_without_gradient_norms_it_cannot_be_told() -> None:
    assert state("grad_norm_nonfinite", run_of(loss=decay(50))) is State.UNKNOWN


CLASSIFIER = {"num_labels": 10, "per_device_train_batch_size": 32}


def test_a_classifier_whose_norm_is_far_below_what_its_labels_alone_give_is_present() -> None:
    run = run_of(grad_norm=noisy(np.full(100, 0.004), 0.2), loss=FLAT, config=CLASSIFIER, kind="supervised")
    assert state("grad_norm_vanishing", run) is State.PRESENT


def test_a_classifier_whose_norm_is_above_that_of_its_labels_is_absent() -> None:
    run = run_of(grad_norm=noisy(np.full(100, 0.4), 0.2), loss=FLAT, config=CLASSIFIER, kind="supervised")
    assert state("grad_norm_vanishing", run) is State.ABSENT


def test_a_small_norm_of_a_classifier_that_has_learnt_is_absent() -> None:
    run = run_of(grad_norm=np.full(100, 0.004), loss=decay(100, 2.3, 0.8), config=CLASSIFIER, kind="supervised")
    assert state("grad_norm_vanishing", run) is State.ABSENT


@pytest.mark.parametrize(("norm", "expected"), [(0.168, State.PRESENT), (0.3, State.ABSENT)])
def test_a_norm_that_the_last_bias_alone_would_have_is_told_at_chance(norm: float, expected: State) -> None:
    run = run_of(grad_norm=noisy(np.full(100, norm), 0.2), loss=FLAT, config=CLASSIFIER, kind="supervised")
    assert state("grad_norm_of_labels", run) is expected


def test_the_norm_of_labels_cannot_be_told_without_classes_and_batch() -> None:
    assert state("grad_norm_of_labels", run_of(grad_norm=np.full(100, 0.168), loss=FLAT)) is State.UNKNOWN


@pytest.mark.parametrize(
    ("norm", "loss", "expected"),
    [
        ([np.nan] * 20, [2.0] * 20, State.PRESENT),
        ([np.nan] * 20, [2.0] * 10 + [np.nan] * 10, State.ABSENT),
        ([1.0] * 10 + [np.nan] * 10, [2.0] * 20, State.ABSENT),
    ],
)
def test_norms_of_which_none_is_finite_beside_sound_losses_are_told(
    norm: list[float], loss: list[float], expected: State
) -> None:
    assert state("grad_norm_never_finite", run_of(grad_norm=norm, loss=loss)) is expected


INFINITE_AT_THE_END = [*np.linspace(120.0, 200.0, 12), *[math.inf] * 68]


@pytest.mark.parametrize(
    ("later", "expected"),
    [(np.full(68, 2.2), State.PRESENT), (np.linspace(2.2, 4.0, 68), State.ABSENT)],
    ids=["the loss stands still", "the loss rises"],
)
def test_a_loss_that_stands_still_where_all_norms_are_infinite_is_told(
    later: NDArray[np.float64], expected: State
) -> None:
    loss = noisy(np.concatenate([np.linspace(4.0, 2.2, 12), later]), 0.01)
    assert state("grad_norm_never_finite", run_of(grad_norm=INFINITE_AT_THE_END, loss=loss)) is expected
    assert state("grad_norm_nonfinite", run_of(grad_norm=INFINITE_AT_THE_END, loss=loss)) is State.PRESENT


def test_a_norm_that_is_infinite_while_the_loss_is_learnt_on_is_not_that_of_the_step() -> None:
    loss = noisy(np.linspace(4.0, 1.0, 80), 0.01)
    assert state("grad_norm_nonfinite", run_of(grad_norm=INFINITE_AT_THE_END, loss=loss)) is State.UNKNOWN


def test_norms_of_which_none_is_finite_while_the_loss_is_learnt_are_not_computed() -> None:
    assert state("grad_norm_nonfinite", run_of(grad_norm=[np.nan] * 60, loss=decay(60))) is State.UNKNOWN


@pytest.mark.parametrize("kind", ["supervised", "pretraining", "unknown"])
def test_norms_far_above_those_of_any_sound_run_of_such_a_loss_are_present(kind: str) -> None:
    norms = noisy(np.full(15, 1e7), 0.5)
    assert state("grad_norm_high", run_of(loss=np.full(15, 4.0), grad_norm=norms, kind=kind)) is State.PRESENT


def test_norms_of_a_loss_as_large_as_they_are_do_not_count() -> None:
    run = run_of(loss=np.full(15, 5000.0), grad_norm=np.full(15, 9000.0), kind="supervised")
    assert state("grad_norm_high", run) is State.ABSENT


@pytest.mark.parametrize(("skipped", "expected"), [(True, State.ABSENT), (False, State.PRESENT)])
def test_infinite_norms_of_steps_that_a_scaler_says_it_skipped_are_a_remark(skipped: bool, expected: State) -> None:
    lost = range(120, 600, 120)
    norm = [math.inf if step in lost else 1.0 for step in range(0, 700, 10)]
    counts = [sum(one <= step for one in lost) if skipped else 0 for step in range(0, 700, 10)]
    run = run_of(grad_norm=norm, loss=decay(70), skipped_steps=counts, every=10)
    assert state("grad_norm_nonfinite", run) is expected
