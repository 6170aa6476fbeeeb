from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "eval_perfect"
AT = range(25, 401, 25)
LOSS = decay(400, 2.6, 0.005, 20)


def test_an_evaluation_of_next_to_nothing_is_present() -> None:
    finding = seen(NAME, run_of(loss=LOSS, eval_loss={step: float(LOSS[step - 1]) for step in AT}))
    assert finding.values["share"] == pytest.approx(0.0025, abs=0.001)
    assert 25 <= finding.steps[0] <= 200


def test_a_good_classifier_is_sound() -> None:
    run = run_of(loss=LOSS, eval_loss={step: float(LOSS[step - 1]) + 0.04 for step in AT})
    assert state(NAME, run) is State.ABSENT


def test_one_perfect_evaluation_is_not_enough() -> None:
    levels = {step: (0.001 if step == 200 else 0.3) for step in AT}
    assert state(NAME, run_of(loss=LOSS, eval_loss=levels)) is State.ABSENT


def test_two_evaluations_cannot_tell() -> None:
    assert state(NAME, run_of(loss=LOSS, eval_loss={200: 0.001, 400: 0.001})) is State.UNKNOWN


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=np.ones(20))) is State.UNKNOWN
