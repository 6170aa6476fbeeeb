from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.models import State
from tests.runs import decay, run_of, state

TOKENS = {"vocab_size": 50_257}
GUESS = math.log(50_257)


@pytest.mark.parametrize(
    ("times", "expected"),
    [(1.0, State.ABSENT), (1.1, State.ABSENT), (1.3, State.ABSENT), (1.5, State.PRESENT)],
    ids=["a guess", "a head drawn wide", "a second head", "a bad start"],
)
def test_a_language_model_from_scratch_begins_at_a_guess(times: float, expected: State) -> None:
    run = run_of(loss=decay(100, times * GUESS, 5.0), config=TOKENS, kind="pretraining")
    assert state("initial_loss_high", run) is expected


def test_a_sum_over_micro_batches_is_told_once() -> None:
    config = {**TOKENS, "gradient_accumulation_steps": 8}
    run = run_of(loss=decay(100, 8 * GUESS, 40.0), config=config, kind="pretraining")
    assert state("loss_scale_suspicious", run) is State.PRESENT
    assert state("initial_loss_high", run) is State.UNKNOWN


def test_a_classifier_begins_at_a_guess_give_or_take_its_head() -> None:
    wide = run_of(loss=decay(100, 3.4, 0.5), config={"num_labels": 10})
    solved = run_of(loss=decay(100, 0.4, 0.1), config={"num_labels": 10})
    assert state("initial_loss_high", wide) is State.ABSENT
    assert state("initial_loss_low", solved) is State.PRESENT


@pytest.mark.parametrize(("share", "stated"), [(0.9, False), (0.01, True)])
def test_a_loss_that_is_mostly_a_squared_error_does_not_begin_at_a_guess(share: float, stated: bool) -> None:
    loss = decay(100, 30.0, 4.0)
    run = run_of(loss=loss, mse=share * loss, config={"num_labels": 256})
    assert (state("initial_loss_high", run) is State.PRESENT) is stated


def test_first_steps_that_raise_a_loss_for_a_moment_are_not_its_start() -> None:
    back_at_once = {5: 4.33, 10: 1.72, 15: 1.11, **dict.fromkeys(range(20, 400, 5), 0.4)}
    stays = {5: 4.33, 10: 4.1, 15: 3.6, **dict.fromkeys(range(20, 400, 5), 1.0)}
    assert state("initial_loss_high", run_of(loss=back_at_once, config={"num_labels": 10})) is State.UNKNOWN
    assert state("initial_loss_high", run_of(loss=stays, config={"num_labels": 10})) is State.PRESENT


@pytest.mark.parametrize(
    ("times", "expected"),
    [(330.0, State.PRESENT), (64.0, State.UNKNOWN)],
    ids=["far above a sum", "a sum over the rows"],
)
def test_a_loss_that_stays_high_is_compared_with_guesses_as_often_right(times: float, expected: State) -> None:
    right = decay(60, 0.11, 0.55)
    run = run_of(loss=decay(60, times * math.log(10), times), accuracy=right, config={"batch_size": 64})
    assert state("initial_loss_high", run) is expected


def test_one_high_record_at_the_start_of_a_run_that_is_as_noisy_further_on_is_no_leap(tmp_path: Path) -> None:
    loss = np.random.default_rng(7).gamma(4, 0.25, 3000) * (1.5 + 1.5 * np.exp(-np.arange(3000) / 500))
    loss[:4] = [2.096, 2.2207, 8.5903, 2.7716]
    loss[11] = 8.0507
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{step},{value:.4f}\n" for step, value in enumerate(loss)))
    answer = diagnose_run(path)
    assert {finding.symptom: finding.state for finding in answer.findings}["loss_jumps_at_start"] is State.ABSENT
    assert answer.hypotheses[0].cause == "healthy"


def range_test(path: Path, *, last: float) -> Path:
    rate = np.geomspace(1e-7, last, 100)
    noise = np.random.default_rng(3).normal(0, 0.02, 100)
    loss = 2.3 - 1.2 * np.clip((np.log10(rate) + 4.5) / 2.6, 0, 1) + 90 * np.clip(rate - 0.02, 0, None) ** 1.2 + noise
    rows = (f"{step},{rate[step]:.3e},{loss[step]:.4f}\n" for step in range(100))
    path.write_text("iter,lr,loss\n" + "".join(rows))
    return path


def test_a_range_test_of_the_learning_rate_is_known_for_what_it_is(tmp_path: Path) -> None:
    answer = diagnose_run(range_test(tmp_path / "lr_find.csv", last=1.0))
    assert answer.hypotheses[0].cause == "healthy"
    assert answer.verdict.kind == "not judged"
    assert "it is a learning-rate range test, whose rate rises from 1e-07 to 1 by one factor" in answer.verdict.headline


def test_a_rate_that_rises_by_less_is_no_range_test(tmp_path: Path) -> None:
    answer = diagnose_run(range_test(tmp_path / "log.csv", last=5e-6))
    assert "range test" not in answer.verdict.headline
