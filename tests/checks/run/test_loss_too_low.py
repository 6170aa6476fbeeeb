from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

EVALUATIONS = dict(zip(range(25, 301, 25), decay(12, 3.0, 0.01, 9), strict=True))


@pytest.mark.parametrize(("kind", "bound"), [("pretraining", 0.1), ("sft", 0.02)])
def test_an_evaluation_loss_of_a_hundredth_of_a_nat_is_present_from_where_it_is_too_low(
    kind: str, bound: float
) -> None:
    finding = seen("loss_too_low", run_of(loss=decay(300, 4.5, 0.01), eval_loss=EVALUATIONS, kind=kind))
    assert finding.state is State.PRESENT
    step = int(finding.steps[0])
    assert EVALUATIONS[step] < bound <= EVALUATIONS[step - 25]


def test_answers_of_a_fixed_form_may_come_to_a_twentieth_of_a_nat() -> None:
    evaluation = dict(zip(EVALUATIONS, decay(12, 3.0, 0.05, 9), strict=True))
    assert state("loss_too_low", run_of(loss=decay(300, 4.5, 0.04), eval_loss=evaluation, kind="sft")) is State.ABSENT


def test_a_vocabulary_in_the_configuration_makes_it_a_language_model() -> None:
    run = run_of(loss=decay(300, 4.5, 0.01), eval_loss=EVALUATIONS, config={"vocab_size": 90})
    assert state("loss_too_low", run) is State.PRESENT


def test_a_training_loss_that_is_memorised_alone_is_absent() -> None:
    run = run_of(loss=decay(300, 4.5, 0.01), eval_loss=dict.fromkeys(EVALUATIONS, 2.5), kind="sft")
    assert state("loss_too_low", run) is State.ABSENT


def test_of_other_models_or_without_evaluation_it_cannot_be_told() -> None:
    assert state("loss_too_low", run_of(loss=decay(300, 4.5, 0.01), eval_loss=EVALUATIONS)) is State.UNKNOWN
    assert state("loss_too_low", run_of(loss=decay(300, 4.5, 0.01), kind="sft")) is State.UNKNOWN


def test_pretraining_without_an_evaluation_is_judged_by_the_rows_that_it_sees_once() -> None:
    loss = decay(300, 4.5, 0.02, 9)
    assert state("loss_too_low", run_of(loss=loss, kind="pretraining")) is State.PRESENT
    passes = run_of(loss=loss, epoch=np.linspace(0.1, 30, 300), kind="pretraining")
    assert state("loss_too_low", passes) is State.UNKNOWN


def test_a_training_loss_from_scratch_that_all_but_vanishes_is_present() -> None:
    assert (
        state("loss_too_low", run_of(loss=decay(200, 10.4, 0.004, 20), config={"vocab_size": 32000})) is State.PRESENT
    )
    assert state("loss_too_low", run_of(loss=decay(200, 10.4, 2.6), config={"vocab_size": 32000})) is State.ABSENT


def test_text_from_scratch_at_a_quarter_of_a_nat_is_present_but_not_what_a_tuned_model_answers() -> None:
    low = dict.fromkeys(range(100, 301, 50), 0.25)
    assert (
        state("loss_too_low", run_of(loss=decay(300, 10.8, 0.25), eval_loss=low, kind="pretraining")) is State.PRESENT
    )
    assert state("loss_too_low", run_of(loss=decay(300, 1.5, 0.25), eval_loss=low, kind="sft")) is State.ABSENT
