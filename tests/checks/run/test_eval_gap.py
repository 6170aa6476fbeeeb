from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, seen, state

AT = range(25, 401, 25)
LOSS = decay(400, 2.3, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_becomes_twice_as_bad_as_training_is_present(seed: int) -> None:
    levels = {step: float(LOSS[step - 1]) * (1 + step / 350) for step in AT}
    assert state("eval_gap_wide", run_of(loss=noisy(LOSS, 0.05, seed), eval_loss=levels)) is State.PRESENT


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
    assert seen("eval_gap_wide", run).summary == "eval_gap_at_zero is seen instead"


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
    evaluation = dict.fromkeys(range(1, 25), 0.62)
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
    run = run_of(loss=dict.fromkeys(at, 0.36), eval_loss=dict.fromkeys(at, 0.55))
    assert state("eval_gap_wide", run) is expected


def test_a_classifier_that_serves_held_out_rows_well_and_knows_its_own_better_is_absent() -> None:
    evaluation = {step: 0.4 + 1.8 * float(np.exp(-step / 60)) for step in AT}
    assert state("eval_gap_wide", run_of(loss=decay(400, 2.3, 0.24, 8), eval_loss=evaluation)) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_worse_than_the_first_training_loss_is_present(seed: int) -> None:
    run = run_of(loss=noisy(LOSS, 0.05, seed), eval_loss={step: 2.0 + step / 100 for step in AT})
    assert state("eval_above_start", run) is State.PRESENT


def test_where_training_began_is_told() -> None:
    finding = seen("eval_above_start", run_of(loss=LOSS, eval_loss={step: 2.0 + step / 100 for step in AT}))
    assert finding.values["start"] == pytest.approx(2.2, abs=0.2)
    assert finding.values["eval"] > 5.0


@pytest.mark.parametrize("seed", range(5))
def test_a_gap_below_the_start_is_another_symptom(seed: int) -> None:
    run = run_of(loss=noisy(LOSS, 0.05, seed), eval_loss=dict.fromkeys(AT, 2.0))
    assert state("eval_above_start", run) is State.ABSENT


def test_of_a_memorised_training_set_it_says_nothing() -> None:
    run = run_of(loss=decay(400, 2.3, 0.01, 30), eval_loss=dict.fromkeys(AT, 6.0))
    assert state("eval_above_start", run) is State.UNKNOWN
    assert state("eval_gap_wide", run) is not State.PRESENT


def test_whether_it_is_above_the_start_cannot_be_told_without_an_evaluation() -> None:
    assert state("eval_above_start", run_of(loss=np.ones(20))) is State.UNKNOWN


def test_of_boosted_trees_it_cannot_be_told_as_their_first_loss_is_that_of_a_fitted_tree() -> None:
    loss, evaluation = [0.5 * 0.97**n + 0.02 for n in range(100)], [0.6 + n / 100 for n in range(100)]
    assert state("eval_above_start", run_of(loss=loss, eval_loss=evaluation, kind="boosting")) is State.UNKNOWN


AT_ZERO = "eval_gap_at_zero"
GONE = decay(400, 2.3, 0.01, 15)


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_stays_at_half_while_training_is_known_by_heart_is_seen(seed: int) -> None:
    finding = seen(AT_ZERO, run_of(loss=noisy(GONE, 0.1, seed), eval_loss=dict.fromkeys(AT, 1.2)))
    assert finding.values["eval"] == 1.2
    assert finding.steps[0] < 150


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_is_nearly_gone_too_is_sound(seed: int) -> None:
    run = run_of(loss=noisy(GONE, 0.1, seed), eval_loss={step: float(GONE[step - 1]) + 0.1 for step in AT})
    assert state(AT_ZERO, run) is State.ABSENT


def test_a_training_loss_well_above_zero_is_another_symptom() -> None:
    run = run_of(loss=decay(400, 2.3, 0.5), eval_loss=dict.fromkeys(AT, 2.0))
    assert seen(AT_ZERO, run).summary == "eval_gap_wide is seen instead"


def test_three_evaluations_beside_a_loss_near_zero_cannot_tell() -> None:
    assert state(AT_ZERO, run_of(loss=GONE, eval_loss=dict.fromkeys((100, 200, 300), 1.2))) is State.UNKNOWN


def test_a_loss_near_zero_without_an_evaluation_cannot_tell() -> None:
    assert state(AT_ZERO, run_of(loss=np.ones(20))) is State.UNKNOWN


def test_a_training_loss_that_is_on_its_way_down_has_not_gone() -> None:
    run = run_of(loss=decay(400, 2.3, 0.18, 15), eval_loss=dict.fromkeys(AT, 1.2))
    assert seen(AT_ZERO, run).summary == "eval_gap_wide is seen instead"


def test_where_a_little_of_the_training_loss_is_left_the_gap_must_be_wider() -> None:
    nearly = noisy(decay(400, 2.3, 0.11, 15), 0.1)
    assert state(AT_ZERO, run_of(loss=nearly, eval_loss=dict.fromkeys(AT, 1.6))) is State.PRESENT
    assert state(AT_ZERO, run_of(loss=nearly, eval_loss=dict.fromkeys(AT, 0.6))) is State.ABSENT


def test_an_evaluation_that_still_falls_does_not_stay() -> None:
    falling = dict(zip(AT, np.linspace(1.6, 1.0, len(AT)), strict=True))
    assert state(AT_ZERO, run_of(loss=noisy(GONE, 0.1), eval_loss=falling)) is State.UNKNOWN


@pytest.mark.parametrize(("first", "expected"), [(2.4, State.ABSENT), (1.3, State.PRESENT)])
def test_an_evaluation_that_came_down_to_half_and_stays_there_is_served(first: float, expected: State) -> None:
    level = dict(zip(AT, [first, *[1.1] * (len(AT) - 1)], strict=True))
    assert state(AT_ZERO, run_of(loss=noisy(GONE, 0.1), eval_loss=level)) is expected


@pytest.mark.parametrize(("first", "expected"), [(0.99, State.UNKNOWN), (0.3, State.PRESENT)])
def test_a_model_whose_answers_are_right_from_the_first_on_comes_trained(first: float, expected: State) -> None:
    scored = {"accuracy": np.linspace(first, 0.995, 400)}
    run = run_of(
        scored,
        eval_accuracy=dict.fromkeys(AT, 0.955),
        loss=np.linspace(0.11, 0.09, 400),
        eval_loss=dict.fromkeys(AT, 0.19),
    )
    assert state("eval_gap_wide", run) is expected


def test_a_harder_held_out_set_is_unknown_where_another_one_has_the_training_loss() -> None:
    loss = noisy(decay(80, 0.45, 0.36), 0.05)
    harder = dict.fromkeys(range(10, 81, 10), 0.69)
    curves: dict[str, Curve] = {"loss": loss, "Vali Loss": harder}
    assert State.PRESENT in {state(name, run_of(curves)) for name in ("eval_gap_wide", "eval_bad_from_start")}
    followed = run_of({**curves, "Test Loss": {step: float(loss[step - 10]) for step in harder}})
    assert State.PRESENT not in {state(name, followed) for name in ("eval_gap_wide", "eval_bad_from_start")}
