from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "loss_at_unigram"
STEPS = np.arange(400)
STUCK = noisy(7.2 + (10.82 - 7.2) * np.exp(-STEPS / 15), 0.02)


def test_a_loss_that_stands_at_the_frequencies_of_tokens_is_seen() -> None:
    finding = seen(NAME, run_of(loss=STUCK, config={"vocab_size": 50257}))
    assert finding.state is State.PRESENT
    assert math.isclose(finding.values["uniform_guess"], math.log(50257))
    assert finding.steps[0] < 100


def test_the_first_loss_tells_the_vocabulary_where_the_configuration_does_not() -> None:
    assert state(NAME, run_of(loss=STUCK)) is State.PRESENT


def test_a_loss_that_goes_on_falling_is_absent() -> None:
    falling = noisy(2.8 + 8 * np.exp(-STEPS / 150), 0.02)
    assert state(NAME, run_of(loss=falling, config={"vocab_size": 50257})) is State.ABSENT


def test_a_loss_that_stands_below_is_absent() -> None:
    learnt = noisy(3.5 + 7.3 * np.exp(-STEPS / 15), 0.02)
    assert state(NAME, run_of(loss=learnt)) is State.ABSENT


def test_a_small_vocabulary_may_hold_no_more_than_its_frequencies() -> None:
    letters = noisy(2.9 + (4.17 - 2.9) * np.exp(-STEPS / 15), 0.01)
    assert state(NAME, run_of(loss=letters, config={"vocab_size": 65})) is State.UNKNOWN


def test_a_trained_model_starts_elsewhere() -> None:
    tuned = noisy(1.6 + 0.4 * np.exp(-STEPS / 15), 0.02)
    assert state(NAME, run_of(loss=tuned, config={"vocab_size": 50257})) is State.UNKNOWN


def test_an_excerpt_from_the_middle_cannot_tell() -> None:
    excerpt = dict(zip((5000.0 + 10 * STEPS).tolist(), STUCK.tolist(), strict=True))
    assert state(NAME, run_of(loss=excerpt)) is State.UNKNOWN
