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
    loss = np.random.default_rng(7).gamma(3, 0.8, 3000) * (0.6 + 0.4 * np.exp(-np.arange(3000) / 900))
    loss[:4] = [2.096, 2.2207, 8.5903, 2.7716]
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{step},{value:.4f}\n" for step, value in enumerate(loss)))
    answer = diagnose_run(path)
    assert {finding.symptom: finding.state for finding in answer.findings}["loss_jumps_at_start"] is State.ABSENT
    assert answer.hypotheses[0].cause == "healthy"
