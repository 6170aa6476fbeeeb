from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state

GUESS = math.log(50_257)


def test_a_new_language_model_far_above_token_frequencies_after_two_thousand_steps_is_present() -> None:
    run = run_of(loss=noisy(decay(200, GUESS, 9.4, 2.0), 0.02), every=10, config={"vocab_size": 50_257})
    assert state("loss_at_unigram", run) is State.PRESENT


def test_one_that_has_learnt_them_is_absent() -> None:
    run = run_of(loss=noisy(decay(200, GUESS, 4.0), 0.02), every=10, config={"vocab_size": 50_257})
    assert state("loss_at_unigram", run) is State.ABSENT


def test_the_first_hundred_steps_are_too_few() -> None:
    run = run_of(loss=noisy(np.linspace(GUESS, 9.4, 100), 0.02), config={"vocab_size": 50_257})
    assert state("loss_at_unigram", run) is not State.PRESENT


def test_a_model_that_comes_trained_cannot_tell() -> None:
    assert state("loss_at_unigram", run_of(loss=np.full(200, 1.4), every=10, kind="sft")) is State.UNKNOWN
