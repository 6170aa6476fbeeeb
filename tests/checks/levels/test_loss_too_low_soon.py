from __future__ import annotations

import math

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, seen, state

SOON = "loss_too_low"
BYTES = {"vocab_size": 256}
GUESS = math.log(256)
EVALUATIONS = range(50, 801, 50)


def evaluated(end: float, start: float = 5.0) -> dict[int, float]:
    return dict(zip(EVALUATIONS, decay(len(EVALUATIONS), start, end, 9).tolist(), strict=True))


def test_an_evaluation_loss_at_a_fifteenth_of_the_guess_after_some_hundred_steps_is_seen_from_there_on() -> None:
    evaluation = evaluated(0.4)
    finding = seen(SOON, run_of(loss=decay(800, GUESS, 0.4, 9), eval_loss=evaluation, config=BYTES))
    assert finding.state is State.PRESENT
    step = int(finding.steps[0])
    assert evaluation[step] < 0.1 * GUESS <= evaluation[step - 50]


def test_training_tells_in_its_first_pass_alone() -> None:
    loss = decay(800, GUESS, 0.4, 9)
    first = run_of(loss=loss, epoch=np.linspace(0.001, 0.9, 800), config=BYTES)
    later = run_of(loss=loss, epoch=np.linspace(0.001, 30, 800), config=BYTES)
    assert state(SOON, first) is State.PRESENT
    assert state(SOON, later) is State.UNKNOWN


@pytest.mark.parametrize(
    ("loss", "evaluation"),
    [
        (decay(800, GUESS, 0.02, 9), evaluated(2.5)),
        (decay(800, GUESS, 1.2, 9), evaluated(1.3)),
        (noisy(decay(800, GUESS, 0.9, 4), 0.1), evaluated(0.9)),
        (decay(800, GUESS, 2.0, 9), dict.fromkeys([50, 100], 4.0)),
    ],
    ids=["learnt by heart", "prose", "code", "a young run"],
)
def test_what_text_or_memory_gives_is_not(loss: Curve, evaluation: Curve) -> None:
    assert state(SOON, run_of(loss=loss, eval_loss=evaluation, config=BYTES)) is State.ABSENT


def test_code_after_many_thousand_steps_is_not() -> None:
    steps = range(1000, 100_001, 1000)
    loss = dict(zip([1, *steps], [10.8, *decay(100, 2.5, 0.8, 9)], strict=True))
    evaluation = dict(zip(steps, decay(100, 2.6, 0.8, 9), strict=True))
    assert state(SOON, run_of(loss=loss, eval_loss=evaluation, config={"vocab_size": 49_152})) is State.ABSENT


@pytest.mark.parametrize("config", [{"num_labels": 256}, {}], ids=["classes", "nothing"])
def test_of_classes_it_cannot_be_told(config: dict[str, int]) -> None:
    start = math.log(next(iter(config.values()), 256))
    run = run_of(loss=decay(800, start, 0.02, 9), eval_loss=evaluated(0.02, start), config=config)
    assert state(SOON, run) is State.UNKNOWN


def test_a_model_that_comes_trained_may_be_as_low() -> None:
    run = run_of(loss=decay(800, 1.4, 0.3, 9), eval_loss=evaluated(0.3, 1.4), config=BYTES)
    assert state(SOON, run) is State.ABSENT


def test_characters_at_a_thirtieth_of_the_guess_are_too_low() -> None:
    run = run_of(loss=decay(800, GUESS, 0.18, 12), eval_loss=evaluated(0.18), config=BYTES)
    assert state("loss_too_low", run) is State.PRESENT
