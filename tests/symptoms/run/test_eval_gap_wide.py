from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

AT = range(25, 401, 25)
LOSS = decay(400, 2.3, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_twice_as_bad_as_training_is_present(seed: int) -> None:
    run = run_of(loss=noisy(LOSS, 0.05, seed), eval_loss={step: 2 * float(LOSS[step - 1]) for step in AT})
    assert state("eval_gap_wide", run) is State.PRESENT


def test_the_first_evaluation_of_the_gap_is_named() -> None:
    levels = {step: float(LOSS[step - 1]) + (0.7 if step >= 150 else 0.0) for step in AT}
    assert seen("eval_gap_wide", run_of(loss=noisy(LOSS, 0.05), eval_loss=levels)).steps == [150]


@pytest.mark.parametrize("seed", range(5))
def test_a_gap_of_a_quarter_is_absent(seed: int) -> None:
    run = run_of(loss=noisy(LOSS, 0.05, seed), eval_loss={step: 1.25 * float(LOSS[step - 1]) for step in AT})
    assert state("eval_gap_wide", run) is State.ABSENT


def test_a_gap_at_one_evaluation_is_absent() -> None:
    levels = {step: (3.0 if step == 300 else float(LOSS[step - 1])) for step in AT}
    assert state("eval_gap_wide", run_of(loss=noisy(LOSS, 0.05), eval_loss=levels)) is State.ABSENT


def test_a_memorised_training_set_is_another_symptom() -> None:
    run = run_of(loss=decay(400, 2.3, 0.01, 30), eval_loss=dict.fromkeys(AT, 2.0))
    assert state("eval_gap_wide", run) is State.ABSENT


def test_three_evaluations_cannot_tell() -> None:
    run = run_of(loss=noisy(LOSS, 0.05), eval_loss=dict.fromkeys((100, 200, 300), 3.0))
    assert state("eval_gap_wide", run) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state("eval_gap_wide", run_of(loss=np.ones(20))) is State.UNKNOWN


def test_in_a_short_log_training_began_where_its_first_record_stands() -> None:
    loss = [0.68, 0.47, 0.35, 0.28, 0.22, 0.16]
    run = run_of(loss=loss, eval_loss=[0.57, 0.49, 0.51, 0.56, 0.64, 0.77])
    assert seen("eval_gap_wide", run).values["start"] == 0.68
    assert state("eval_above_start", run) is State.ABSENT


def test_of_means_over_epochs_the_first_counts_as_the_start() -> None:
    loss = [1.8, 1.0, 0.7, 0.5, 0.3, 0.2, 0.15, 0.13] + [0.12] * 16
    evaluation = dict.fromkeys(range(1, 25), 0.4)
    run = run_of(loss=loss, eval_loss=evaluation)
    assert state("eval_gap_wide", run) is State.PRESENT
    assert state("eval_gap_wide", replace(run, step_name="epoch")) is State.ABSENT


def test_an_evaluation_below_zero_has_no_ratio() -> None:
    run = run_of(loss=noisy(LOSS, 0.05), eval_loss={step: -1e4 * step for step in AT})
    assert state("eval_gap_wide", run) is State.UNKNOWN


@pytest.mark.parametrize(("last", "expected"), [(0.45, State.ABSENT), (0.6, State.PRESENT)])
def test_an_evaluation_that_improves_all_along_may_lag_a_training_loss_that_is_not_memorised(
    last: float, expected: State
) -> None:
    evaluation = np.linspace(0.6, last, 12)
    run = run_of(loss=np.linspace(0.62, 0.2, 12), eval_loss=evaluation)
    assert state("eval_gap_wide", run) is expected


def test_one_that_improves_and_then_rises_does_not_serve_held_out_rows() -> None:
    evaluation = np.concatenate([np.linspace(0.6, 0.4, 6), np.linspace(0.42, 0.5, 6)])
    train = np.concatenate([np.linspace(0.62, 0.3, 6), np.linspace(0.28, 0.24, 6)])
    run = run_of(loss=train, eval_loss=evaluation)
    assert state("eval_gap_wide", run) is State.PRESENT


@pytest.mark.parametrize(("first", "expected"), [(1, State.PRESENT), (10, State.UNKNOWN)])
def test_an_excerpt_does_not_show_what_training_began_with(first: int, expected: State) -> None:
    at = range(first, first + 18)
    run = run_of(loss=dict.fromkeys(at, 0.36), eval_loss=dict.fromkeys(at, 0.9))
    assert state("eval_gap_wide", run) is expected


def test_a_classifier_that_serves_held_out_rows_well_and_knows_its_own_better_is_absent() -> None:
    evaluation = {step: 0.4 + 1.8 * float(np.exp(-step / 60)) for step in AT}
    assert state("eval_gap_wide", run_of(loss=decay(400, 2.3, 0.24, 8), eval_loss=evaluation)) is State.ABSENT


def test_an_accuracy_that_is_good_and_at_its_best_bears_a_gap() -> None:
    train = [0.52, 0.31, 0.22, 0.16, 0.12, 0.09]
    evaluation = [0.35, 0.27, 0.245, 0.24, 0.247, 0.251]
    good = run_of(loss=train, eval_loss=evaluation, eval_accuracy=[0.85, 0.89, 0.90, 0.905, 0.906, 0.907])
    worse = run_of(loss=train, eval_loss=evaluation, eval_accuracy=[0.85, 0.89, 0.90, 0.88, 0.87, 0.86])
    assert state("eval_gap_wide", good) is State.ABSENT
    assert state("eval_gap_wide", worse) is State.PRESENT
