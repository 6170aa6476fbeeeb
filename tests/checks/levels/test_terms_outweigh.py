from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

LM = decay(80, 4.0, 2.0)


def run_with(balance: float) -> Run:
    """A language model beside whose loss a term of that size is trained on."""
    evaluations = {step: float(LM[step - 1]) for step in (20, 40, 60, 80)}
    return run_of({"lm_loss": noisy(LM, 0.02)}, loss=noisy(LM + balance, 0.02), eval_loss=evaluations)


def test_a_term_that_is_most_of_the_loss_while_evaluation_measures_another_is_present_with_both() -> None:
    found = seen("terms_outweigh", run_with(100.0))
    assert found.state is State.PRESENT
    assert found.values["share"] < 0.05
    assert "lm_loss" in found.summary


def test_such_a_loss_is_no_multiple_of_the_evaluation_loss() -> None:
    assert state("loss_scale_suspicious", run_with(60.0)) is State.UNKNOWN


def test_a_small_term_beside_the_loss_is_not_present() -> None:
    assert state("terms_outweigh", run_with(0.3)) is not State.PRESENT
    assert state("terms_outweigh", run_with(3.0)) is State.ABSENT


def test_without_terms_or_evaluations_it_cannot_be_told() -> None:
    assert state("terms_outweigh", run_of(loss=np.asarray(LM))) is State.UNKNOWN
