from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "eval_accuracy_few_values"
TWO = [0.352, 0.352, 0.315, 0.315, 0.352, 0.315, 0.315, 0.315]


def test_an_accuracy_that_goes_between_two_numbers_is_present() -> None:
    finding = seen(NAME, run_of(eval_accuracy=TWO))
    assert "0.315 at 5" in finding.summary
    assert "0.352 at 3" in finding.summary


def test_one_in_per_cent_is_present_too() -> None:
    assert state(NAME, run_of(eval_accuracy=[100 * one for one in TWO])) is State.PRESENT


@pytest.mark.parametrize(("evaluations", "expected"), [(12, State.PRESENT), (9, State.ABSENT)])
def test_three_numbers_need_many_evaluations(evaluations: int, expected: State) -> None:
    assert state(NAME, run_of(eval_accuracy=([0.253, 0.287, 0.241] * 4)[:evaluations])) is expected


def test_an_accuracy_that_rises_in_steps_is_sound() -> None:
    assert state(NAME, run_of(eval_accuracy=[0.315] * 4 + [0.415] * 4)) is State.ABSENT


def test_a_good_one_is_sound() -> None:
    assert state(NAME, run_of(eval_accuracy=[0.992, 0.995, 0.992, 0.995, 0.992, 0.995])) is State.ABSENT


def test_a_constant_one_is_another_symptom() -> None:
    assert state(NAME, run_of(eval_accuracy=[0.315] * 8)) is not State.PRESENT


def test_one_evaluation_that_differs_is_no_going_to_and_fro() -> None:
    assert state(NAME, run_of(eval_accuracy=[0.352, *[0.315] * 7])) is State.ABSENT


def test_on_a_small_set_it_cannot_be_told() -> None:
    assert state(NAME, run_of(eval_accuracy=[0.35, 0.35, 0.3, 0.3, 0.35, 0.3, 0.3])) is State.UNKNOWN


def test_from_few_evaluations_it_cannot_be_told() -> None:
    assert state(NAME, run_of(eval_accuracy=TWO[:5])) is State.UNKNOWN


def test_an_accuracy_of_a_model_that_learns_is_sound() -> None:
    assert state(NAME, run_of(eval_accuracy=list(np.round(0.8 - 0.5 * decay(20), 3)))) is State.ABSENT
