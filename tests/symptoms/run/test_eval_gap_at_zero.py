from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "eval_gap_at_zero"
AT = range(25, 401, 25)
GONE = decay(400, 2.3, 0.01, 15)


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_stays_at_half_while_training_is_known_by_heart_is_seen(seed: int) -> None:
    finding = seen(NAME, run_of(loss=noisy(GONE, 0.1, seed), eval_loss=dict.fromkeys(AT, 1.2)))
    assert finding.values["eval"] == 1.2
    assert finding.steps[0] < 150


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_that_is_nearly_gone_too_is_sound(seed: int) -> None:
    run = run_of(loss=noisy(GONE, 0.1, seed), eval_loss={step: float(GONE[step - 1]) + 0.1 for step in AT})
    assert state(NAME, run) is State.ABSENT


def test_a_training_loss_well_above_zero_is_another_symptom() -> None:
    run = run_of(loss=decay(400, 2.3, 0.5), eval_loss=dict.fromkeys(AT, 1.5))
    assert state(NAME, run) is State.ABSENT


def test_three_evaluations_cannot_tell() -> None:
    assert state(NAME, run_of(loss=GONE, eval_loss=dict.fromkeys((100, 200, 300), 1.2))) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=np.ones(20))) is State.UNKNOWN


def test_a_training_loss_that_is_on_its_way_down_has_not_gone() -> None:
    run = run_of(loss=decay(400, 2.3, 0.18, 15), eval_loss=dict.fromkeys(AT, 1.2))
    assert state(NAME, run) is State.ABSENT


def test_where_a_little_of_the_training_loss_is_left_the_gap_must_be_wider() -> None:
    nearly = noisy(decay(400, 2.3, 0.11, 15), 0.1)
    assert state(NAME, run_of(loss=nearly, eval_loss=dict.fromkeys(AT, 1.6))) is State.PRESENT
    assert state(NAME, run_of(loss=nearly, eval_loss=dict.fromkeys(AT, 0.6))) is State.ABSENT


@pytest.mark.parametrize(("last", "expected"), [(0.72, State.UNKNOWN), (0.61, State.PRESENT)])
def test_a_score_that_still_gets_better_says_that_what_is_learnt_serves(last: float, expected: State) -> None:
    recall = dict(zip(AT, np.linspace(0.58, last, len(AT)), strict=True))
    run = run_of({"eval_recall@1": recall}, loss=noisy(GONE, 0.1), eval_loss=dict.fromkeys(AT, 1.2))
    assert state(NAME, run) is expected


def test_an_evaluation_that_still_falls_does_not_stay() -> None:
    falling = dict(zip(AT, np.linspace(1.6, 1.0, len(AT)), strict=True))
    assert state(NAME, run_of(loss=noisy(GONE, 0.1), eval_loss=falling)) is State.UNKNOWN
