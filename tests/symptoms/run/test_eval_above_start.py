from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

AT = range(25, 401, 25)
LOSS = decay(400, 2.3, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_an_evaluation_worse_than_the_first_training_loss_is_present(seed: int) -> None:
    run = run_of(loss=noisy(LOSS, 0.05, seed), eval_loss={step: 2.0 + step / 100 for step in AT})
    assert state("eval_above_start", run) is State.PRESENT


def test_where_training_began_is_told() -> None:
    finding = seen("eval_above_start", run_of(loss=LOSS, eval_loss=dict.fromkeys(AT, 5.0)))
    assert finding.values["start"] == pytest.approx(2.2, abs=0.2)
    assert finding.values["eval"] == 5.0


@pytest.mark.parametrize("seed", range(5))
def test_a_gap_below_the_start_is_another_symptom(seed: int) -> None:
    run = run_of(loss=noisy(LOSS, 0.05, seed), eval_loss=dict.fromkeys(AT, 2.0))
    assert state("eval_above_start", run) is State.ABSENT


def test_of_a_memorised_training_set_it_says_nothing() -> None:
    run = run_of(loss=decay(400, 2.3, 0.01, 30), eval_loss=dict.fromkeys(AT, 6.0))
    assert state("eval_above_start", run) is State.ABSENT


def test_without_an_evaluation_it_cannot_be_told() -> None:
    assert state("eval_above_start", run_of(loss=np.ones(20))) is State.UNKNOWN


def test_of_boosted_trees_it_cannot_be_told_as_their_first_loss_is_that_of_a_fitted_tree() -> None:
    loss, evaluation = [0.5 * 0.97**n + 0.02 for n in range(100)], [0.6 + n / 100 for n in range(100)]
    assert state("eval_above_start", run_of(loss=loss, eval_loss=evaluation, kind="boosting")) is State.UNKNOWN
