from __future__ import annotations

import math

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("level", "size"), [(10.8, 0.005), (2.3, 0.03), (0.69, 0.02)])
def test_a_loss_that_stays_where_it_began_is_present(level: float, size: float, seed: int) -> None:
    assert state("loss_plateau", run_of(loss=noisy(np.full(200, level), size, seed))) is State.PRESENT


@pytest.mark.parametrize(("classes", "configured"), [(2, False), (2, True), (10, True), (1000, True)])
def test_a_loss_that_settles_at_a_uniform_guess_is_present_and_says_so(classes: int, configured: bool) -> None:
    chance = math.log(classes)
    loss = noisy(decay(100, 1.2 * chance, chance, 20), 0.003)
    finding = seen("loss_plateau", run_of(loss=loss, config={"num_labels": classes} if configured else None))
    assert finding.state is State.PRESENT
    assert finding.values["uniform_guess"] == pytest.approx(chance)
    assert f"ln({classes})" in finding.summary


def test_eight_records_at_ln_2_are_enough() -> None:
    loss = [0.7113, 0.6933, 0.6933, 0.6933, 0.6932, 0.6932, 0.6932, 0.6931]
    assert state("loss_plateau", run_of(loss=loss, every=10)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_fast_fall_to_a_plateau_is_progress(seed: int) -> None:
    assert state("loss_plateau", run_of(loss=noisy(decay(300, 1.4, 1.2, 40), 0.05, seed))) is State.ABSENT


@pytest.mark.parametrize("seed", range(5))
def test_noise_that_could_hide_progress_cannot_tell(seed: int) -> None:
    finding = seen("loss_plateau", run_of(loss=noisy(np.full(30, 1.3), 0.4, seed)))
    assert finding.state is not State.PRESENT


def test_a_log_from_the_middle_of_a_run_cannot_tell() -> None:
    loss = {100_000 + 100 * record: 2.5 + 0.01 * math.sin(record) for record in range(100)}
    assert state("loss_plateau", run_of(loss=loss)) is State.UNKNOWN


def test_eight_flat_records_elsewhere_cannot_tell() -> None:
    assert state("loss_plateau", run_of(loss=[1.31, 1.3, 1.32, 1.3, 1.31, 1.3, 1.3, 1.31])) is State.UNKNOWN


def test_where_noise_hides_the_progress_an_evaluation_loss_that_stands_still_decides() -> None:
    loss = noisy(np.full(40, 9.0), 0.3, 1)
    standing, falling = dict.fromkeys(range(5, 41, 5), 9.4), dict(zip(range(5, 41, 5), decay(8, 9.4, 7.0), strict=True))
    assert state("loss_plateau", run_of(loss=loss, eval_loss=standing)) is State.PRESENT
    assert state("loss_plateau", run_of(loss=loss, eval_loss=falling)) is not State.PRESENT


def test_a_flat_loss_of_a_model_that_is_right_from_the_start_cannot_be_told() -> None:
    loss = noisy(np.full(200, 0.6), 0.1, 1)
    right, wrong = dict.fromkeys(range(20, 201, 20), 0.9), dict.fromkeys(range(20, 201, 20), 0.2)
    assert state("loss_plateau", run_of(loss=loss, eval_accuracy=right)) is State.UNKNOWN
    assert state("loss_plateau", run_of(loss=loss, eval_accuracy=wrong)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_loss_that_falls_shows_the_progress_of_a_noisy_training_loss(seed: int) -> None:
    loss = noisy(decay(200, 0.69, 0.64, 60), 0.06, seed)
    steps = range(25, 201, 25)
    falling = dict(zip(steps, decay(8, 0.685, 0.64, 3), strict=True))
    assert state("loss_plateau", run_of(loss=loss, eval_loss=falling)) is State.ABSENT
    flat = noisy(np.full(200, 0.66), 0.06, seed)
    assert state("loss_plateau", run_of(loss=flat, eval_loss=dict.fromkeys(steps, 0.67))) is State.PRESENT


def test_a_loss_that_rises_is_no_plateau() -> None:
    assert state("loss_plateau", run_of(loss=np.linspace(10.4, 11.0, 30), every=10)) is not State.PRESENT


def test_a_few_records_from_the_middle_that_come_near_ln_2_cannot_tell() -> None:
    loss = dict(zip(range(510, 570, 10), [0.692, 0.648, 0.672, 0.697, 0.709, 0.7], strict=True))
    assert state("loss_plateau", run_of(loss=loss)) is State.UNKNOWN


def test_an_excerpt_from_the_middle_of_an_epoch_cannot_tell() -> None:
    flat = noisy(np.full(14, 0.91), 0.01, 0)
    records = [{"loss": float(loss), "epoch": 0.66 + row / 400} for row, loss in enumerate(flat)]
    assert state("loss_plateau", run_of_records(records)) is State.UNKNOWN


def test_a_few_records_from_the_middle_at_chance_cannot_tell() -> None:
    loss = {step: 6.9 + 0.01 * (step % 2) for step in range(103, 110)}
    assert state("loss_plateau", run_of(loss=loss)) is State.UNKNOWN


@pytest.mark.parametrize("end", [0.694, 1.098, 1.386])
def test_a_loss_that_falls_and_ends_where_few_classes_would_be_guessed_is_no_plateau(end: float) -> None:
    assert state("loss_plateau", run_of(loss=noisy(decay(200, 1.4 * end, end, 40), 0.004))) is State.ABSENT
    known = run_of(loss=noisy(decay(200, 1.4 * end, end, 10), 0.004), config={"num_labels": round(np.exp(end))})
    assert state("loss_plateau", known) is State.PRESENT


def test_what_keeps_a_noisy_flat_log_from_being_judged_is_its_noise() -> None:
    finding = seen("loss_plateau", run_of(loss=noisy([10.0] * 16, 1.6), every=10))
    assert finding.state is State.UNKNOWN
    assert "noise could hide progress" in finding.summary


@pytest.mark.parametrize("error", ["eval_loss", "eval_mse"])
def test_errors_of_batches_may_vary_while_that_of_the_evaluation_stands(error: str) -> None:
    loss = noisy(np.full(61, 3.6), 0.3, 1)
    run = run_of({error: dict.fromkeys(range(10, 61, 10), 4.02)}, loss=loss)
    assert state("loss_plateau", run_of(loss=loss)) is State.UNKNOWN
    assert state("loss_plateau", run) is State.PRESENT


def test_pretraining_that_begins_below_a_guess_among_characters_comes_trained() -> None:
    loss = noisy(np.full(40, 2.4), 0.01)
    assert state("loss_plateau", run_of(loss=loss)) is State.PRESENT
    assert state("loss_plateau", run_of(loss=loss, kind="pretraining")) is State.UNKNOWN
    assert state("loss_plateau", run_of(loss=2 * loss, kind="pretraining")) is State.PRESENT


def test_pretraining_from_scratch_that_stands_after_a_twentieth_is_present() -> None:
    loss = noisy(decay(60, 10.8, 10.3, 12), 0.001)
    assert state("loss_plateau", run_of(loss=loss, kind="pretraining")) is State.PRESENT
    assert state("loss_plateau", run_of(loss=loss)) is State.ABSENT
    assert state("loss_plateau", run_of(loss=np.linspace(10.8, 10.2, 60), kind="pretraining")) is State.ABSENT


@pytest.mark.parametrize("seed", range(10))
def test_tuning_that_gains_at_once_and_then_little_is_no_plateau(seed: int) -> None:
    loss = 0.9 + 0.25 * np.exp(-np.arange(250) / 20) + np.random.default_rng(seed).normal(0, 0.13, 250)
    assert state("loss_plateau", run_of(loss=loss, kind="sft")) is not State.PRESENT


@pytest.mark.parametrize("symptom", ["loss_plateau", "loss_at_chance"])
def test_of_the_first_steps_of_a_run_it_is_too_early_to_speak(symptom: str) -> None:
    flat = noisy(np.full(20, 2.303), 0.01)
    config = {"num_labels": 10}
    young = seen(symptom, run_of(loss=flat, kind="supervised", config=config))
    assert young.state is State.UNKNOWN
    assert "too early" in young.summary
    assert state(symptom, run_of(loss=flat, kind="supervised", config=config, every=10)) is State.PRESENT


def test_noise_that_hides_progress_does_not_hide_an_evaluation_that_makes_none() -> None:
    loss = noisy(np.full(60, 0.6), 0.25)
    flat, falling = ({step: 0.8 - fall * step for step in range(5, 61, 5)} for fall in (0.0002, 0.005))
    assert state("loss_plateau", run_of(loss=loss, kind="supervised")) is State.UNKNOWN
    assert state("loss_plateau", run_of(loss=loss, eval_loss=flat, kind="supervised")) is State.PRESENT
    assert state("loss_plateau", run_of(loss=loss, eval_loss=falling, kind="supervised")) is not State.PRESENT


def test_while_the_learning_rate_warms_up_it_is_too_early_to_speak() -> None:
    flat = noisy(np.full(100, 2.303), 0.01)
    climbing = run_of(loss=flat, learning_rate=np.linspace(0.01, 1, 100), kind="supervised", config={"num_labels": 10})
    assert state("loss_plateau", climbing) is State.UNKNOWN
    peak = run_of(loss=flat, learning_rate=np.minimum(np.linspace(0.01, 2, 100), 1), kind="supervised")
    assert state("loss_plateau", peak) is State.PRESENT


def test_rounds_that_are_evaluated_each_are_no_first_steps() -> None:
    flat = noisy(np.full(20, 2.303), 0.01)
    run = run_of(loss=flat, eval_loss=flat, kind="supervised", config={"num_labels": 10})
    assert state("loss_plateau", run) is State.PRESENT


@pytest.mark.parametrize("count", [5_000, 50_000])
def test_a_fall_within_the_first_records_of_a_long_log_is_progress(count: int) -> None:
    loss = noisy(2 + 8 * np.exp(-np.arange(count) / 30), 0.01)
    assert state("loss_plateau", run_of(loss=loss)) is State.ABSENT


def test_a_long_log_that_is_flat_from_its_first_record_is_still_present() -> None:
    assert state("loss_plateau", run_of(loss=noisy(np.full(5_000, 2.3), 0.02))) is State.PRESENT
