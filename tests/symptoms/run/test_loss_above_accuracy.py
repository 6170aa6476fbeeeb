from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run, Scalar
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state


def classifier(loss: float, accuracy: float, config: Mapping[str, Scalar] | None = None, fall: float = 12) -> Run:
    train = noisy(decay(200, float(np.log(10)), loss, fall), 0.02)
    evaluations = {step: float(train[step - 1]) for step in range(5, 201, 5)}
    return run_of(loss=train, eval_loss=evaluations, eval_accuracy=dict.fromkeys(evaluations, accuracy), config=config)


def test_a_loss_of_one_and_a_half_where_nearly_all_is_right_is_present() -> None:
    finding = seen("loss_above_accuracy", classifier(1.5, 0.97))
    assert finding.state is State.PRESENT
    assert finding.values["classes"] == pytest.approx(10, abs=1)
    assert finding.values["calibrated_at_most"] < 0.3


def test_an_accuracy_in_per_cent_is_one() -> None:
    assert state("loss_above_accuracy", classifier(1.5, 97.0)) is State.PRESENT


def test_the_loss_of_a_calibrated_classifier_is_absent() -> None:
    assert state("loss_above_accuracy", classifier(0.9, 0.7)) is State.ABSENT


def test_a_loss_that_still_falls_is_absent() -> None:
    assert state("loss_above_accuracy", classifier(0.5, 0.97, fall=0.9)) is State.ABSENT


def test_a_loss_that_rises_on_the_evaluation_set_is_absent() -> None:
    rising = {step: 0.5 + 0.01 * step for step in range(10, 201, 10)}
    run = run_of(loss=decay(200, 2.3, 0.1), eval_loss=rising, eval_accuracy=dict.fromkeys(rising, 0.9))
    assert state("loss_above_accuracy", run) is State.ABSENT


def test_with_label_smoothing_or_without_an_accuracy_it_cannot_be_told() -> None:
    assert state("loss_above_accuracy", classifier(1.5, 0.97, {"label_smoothing_factor": 0.1})) is State.UNKNOWN
    assert state("loss_above_accuracy", run_of(loss=decay(200))) is State.UNKNOWN


def test_of_a_model_that_came_trained_the_first_loss_tells_no_number_of_classes() -> None:
    loss, evaluations = noisy(np.full(200, 0.62), 0.05, 1), dict.fromkeys(range(10, 201, 10), 0.62)
    run = run_of(loss=loss, eval_loss=evaluations, eval_accuracy=dict.fromkeys(evaluations, 0.9))
    assert state("loss_above_accuracy", run) is State.ABSENT
