from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state

ROUGH = noisy(np.full(12, 1.1), 0.2, 1)


@pytest.mark.parametrize("share", [0.5, 0.3333, 0.25, 0.1, 10.0, 50.0])
def test_one_in_k_at_all_evaluations_is_present(share: float) -> None:
    assert state("accuracy_at_guess", run_of(loss=ROUGH, eval_accuracy=np.full(12, share))) is State.PRESENT


@pytest.mark.parametrize("share", [0.5378, 0.87, 0.1135])
def test_the_share_of_a_larger_class_is_absent(share: float) -> None:
    assert state("accuracy_at_guess", run_of(loss=ROUGH, eval_accuracy=np.full(12, share))) is State.ABSENT


def test_training_that_gets_beyond_it_is_absent() -> None:
    run = run_of(loss=decay(12), accuracy=np.linspace(0.5, 0.9, 12), eval_accuracy=np.full(12, 0.5))
    assert state("accuracy_at_guess", run) is State.ABSENT


def test_a_loss_that_falls_beside_an_evaluation_of_few_rows_is_absent() -> None:
    assert state("accuracy_at_guess", run_of(loss=decay(12), eval_accuracy=np.full(12, 0.5))) is State.ABSENT


def test_an_accuracy_that_moves_is_absent() -> None:
    run = run_of(loss=ROUGH, eval_accuracy=[0.5] * 11 + [0.5003])
    assert state("accuracy_at_guess", run) is State.ABSENT


def test_four_evaluations_cannot_tell() -> None:
    assert state("accuracy_at_guess", run_of(loss=ROUGH, eval_accuracy=[0.5] * 4)) is State.UNKNOWN
