from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, state


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("end", "size"), [(10.0, 0.003), (8.5, 0.01)])
def test_a_small_even_fall_is_present(end: float, size: float, seed: int) -> None:
    assert state("loss_slow", run_of(loss=noisy(np.linspace(10.8, end, 400), size, seed))) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
def test_a_decaying_rate_does_not_hide_it(seed: int) -> None:
    rate = np.linspace(1e-8, 0, 400)
    loss = 10.8 - 0.8 * np.cumsum(rate) / rate.sum()
    assert state("loss_slow", run_of(loss=noisy(loss, 0.003, seed), learning_rate=rate)) is State.PRESENT


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [3.0, 8.0])
def test_a_curve_that_bends_is_absent(rate: float, seed: int) -> None:
    assert state("loss_slow", run_of(loss=noisy(decay(400, 2.0, 1.6, rate), 0.01, seed))) is State.ABSENT


def test_no_progress_at_all_is_another_symptom() -> None:
    assert state("loss_slow", run_of(loss=noisy(np.full(400, 2.0), 0.01))) is not State.PRESENT


def test_an_excerpt_cannot_tell() -> None:
    loss = {50_000 + 10 * record: 3 - 0.001 * record for record in range(100)}
    assert state("loss_slow", run_of(loss=loss)) is State.UNKNOWN


def test_a_run_of_sixty_steps_has_hardly_begun() -> None:
    assert state("loss_slow", run_of(loss=np.linspace(2.3, 2.0, 60))) is State.UNKNOWN
    assert state("loss_slow", run_of(loss=np.linspace(2.3, 2.0, 160))) is State.PRESENT


def test_a_straight_fall_by_a_third_within_two_hundred_steps_is_not_slow() -> None:
    run = run_of(loss=noisy(np.linspace(10.9, 6.8, 20), 0.005), every=10)
    assert state("loss_slow", run) is State.ABSENT


def test_the_same_fall_over_twenty_thousand_steps_is() -> None:
    run = run_of(loss=noisy(np.linspace(10.9, 6.8, 20), 0.005), every=1000)
    assert state("loss_slow", run) is State.PRESENT


def test_what_a_drop_of_the_rate_brings_is_no_slow_progress() -> None:
    loss = np.concatenate([1 - 0.12 * (1 - np.exp(-np.arange(30) / 8)), np.linspace(0.84, 0.80, 50)])
    rate = np.where(np.arange(80) < 30, 1e-2, 1e-3)
    run = run_of(loss=loss, learning_rate=rate, every=100)
    assert state("loss_slow", run) is State.ABSENT


def test_a_drop_of_the_rate_after_a_few_records_cannot_tell() -> None:
    run = run_of(loss=np.linspace(1, 0.8, 40), learning_rate=np.where(np.arange(40) < 10, 1e-2, 1e-3), every=100)
    assert state("loss_slow", run) is State.UNKNOWN


def test_much_progress_of_which_a_good_third_comes_late_is_not_slow() -> None:
    falling = 3.3 - 1.25 * (1 - np.exp(-np.arange(160) / 90)) / (1 - np.exp(-160 / 90))
    run = run_of(loss=noisy(falling, 0.02), learning_rate=[4e-3] * 160)
    assert state("loss_slow", run) is State.ABSENT


def test_a_language_model_that_begins_below_a_guess_among_characters_comes_trained() -> None:
    loss = noisy(np.linspace(2.45, 2.3, 40), 0.003)
    assert state("loss_slow", run_of(loss=loss, every=10)) is State.PRESENT
    assert state("loss_slow", run_of(loss=loss, every=10, kind="pretraining")) is State.UNKNOWN


def test_a_curve_whose_fall_is_over_after_the_first_record_has_bent() -> None:
    loss = np.concatenate([[4.6], noisy(np.linspace(3.4, 3.0, 39), 0.003)])
    assert state("loss_slow", run_of(loss=loss, every=10)) is not State.PRESENT


def _by_epochs(loss: list[float]) -> Run:
    return run_of_records([{"epoch": 1.0 + at, "loss": one} for at, one in enumerate(loss)])


def test_fifteen_epochs_that_creep_down_a_straight_line_are_present() -> None:
    assert state("loss_slow", _by_epochs([1.46 - 0.007 * at for at in range(15)])) is State.PRESENT


@pytest.mark.parametrize(
    "loss",
    [
        [1.0 - 0.1 * (1 - 0.6**at) for at in range(15)],
        [0.69 - 0.0005 * at**2 for at in range(15)],
        [1.46 - 0.05 * at for at in range(15)],
        [1.4 + 0.02 * (at % 2) - 0.005 * at for at in range(15)],
    ],
    ids=["bends", "picks up", "fast", "to and fro"],
)
def test_so_few_epochs_tell_nothing_where_they(loss: list[float]) -> None:
    assert state("loss_slow", _by_epochs(loss)) is State.ABSENT


def test_fifteen_records_that_are_no_means_are_too_few() -> None:
    assert state("loss_slow", run_of(loss=[1.46 - 0.007 * at for at in range(15)], every=10)) is State.UNKNOWN


@pytest.mark.parametrize("name", ["loss_at_chance"])
@pytest.mark.parametrize(("last", "expected"), [(0.68, State.ABSENT), (0.694, State.PRESENT)])
def test_where_evaluation_creeps_below_a_guess_something_is_learnt(name: str, last: float, expected: State) -> None:
    loss, evaluation = np.linspace(0.697, 0.684, 20), np.linspace(0.6999, last, 20)
    rows = [{"epoch": 1.0 + at, "loss": loss[at], "eval_loss": evaluation[at]} for at in range(20)]
    run = run_of_records(rows, config={"num_labels": 2})
    assert state("loss_slow", run) is State.PRESENT
    assert state(name, run) is expected


def test_a_rate_of_fine_tuning_says_that_the_model_may_come_trained() -> None:
    straight = np.linspace(1.45, 1.3, 100)
    tuned = run_of(loss=straight, learning_rate=np.full(100, 1e-5), every=10)
    scratch = run_of(loss=straight, learning_rate=np.full(100, 1e-3), every=10)
    guess = run_of(loss=np.linspace(2.3026, 2.1, 100), learning_rate=np.full(100, 1e-5), every=10)
    assert state("loss_slow", tuned) is State.UNKNOWN
    assert state("loss_slow", scratch) is State.PRESENT
    assert state("loss_slow", guess) is State.PRESENT


def test_an_r2_that_creeps_up_from_that_of_the_mean_shows_slow_progress_where_batches_are_noisy() -> None:
    steps = range(5, 95, 5)
    noise = noisy(np.full(90, 0.9), 0.3)
    creeps = dict(zip(steps, np.linspace(0.01, 0.09, len(steps)), strict=True))
    assert state("loss_slow", run_of(loss=noise, eval_r2=creeps, kind="supervised")) is State.PRESENT
    learns = dict(zip(steps, np.linspace(0.01, 0.8, len(steps)), strict=True))
    assert state("loss_slow", run_of(loss=noise, eval_r2=learns, kind="supervised")) is not State.PRESENT
