"""What evaluates badly because training exploded before says nothing of how evaluation and training compare."""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import run_of, state

COMPARING = ("eval_bad_from_start", "eval_gap_grows", "eval_never_improves")
SETTLED = np.concatenate([np.linspace(1.6, 30, 5), [1e9, 1e7, 900.0, 40.0], 1.7 + 2 * np.exp(-np.arange(91) / 30)])
EVALUATED = {10 * (number + 1): 6e8 * (1 + number / 8) for number in range(9)}


@pytest.mark.parametrize("symptom", COMPARING)
def test_evaluation_of_exploded_weights_is_not_compared_with_training(symptom: str) -> None:
    assert state(symptom, run_of(loss=SETTLED, eval_loss=EVALUATED)) is State.UNKNOWN


@pytest.mark.parametrize("symptom", COMPARING[1:])
def test_a_jump_that_evaluation_does_not_show_hides_nothing(symptom: str) -> None:
    high = {step: 4 + step / 20 for step in EVALUATED}
    assert state(symptom, run_of(loss=SETTLED, eval_loss=high)) is State.PRESENT
