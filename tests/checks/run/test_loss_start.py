from __future__ import annotations

import math

import pytest

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
