from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


def classifier(loss: float, accuracy: float, config: Mapping[str, Scalar] | None = None, fall: float = 12) -> Run:
    train = noisy(decay(200, float(np.log(10)), loss, fall), 0.02)
    evaluations = {step: float(train[step - 1]) for step in range(5, 201, 5)}
    return run_of(loss=train, eval_loss=evaluations, eval_accuracy=dict.fromkeys(evaluations, accuracy), config=config)


def test_a_loss_above_one_where_nearly_all_is_right_is_present() -> None:
    finding = seen("loss_above_accuracy", classifier(1.2, 0.97))
    assert finding.state is State.PRESENT
    assert finding.values["classes"] == pytest.approx(10, abs=1)
    assert finding.values["calibrated_at_most"] < 0.3


def test_an_accuracy_in_per_cent_is_one() -> None:
    assert state("loss_above_accuracy", classifier(1.2, 97.0)) is State.PRESENT


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


def test_an_answer_that_is_right_and_unsure_from_the_first_record_on_tells_no_number_of_classes() -> None:
    """A contrastive loss is over the rows of a batch, and its scale is that of a temperature."""
    right = list(np.linspace(60.7, 81.0, 20))
    assert state("loss_above_accuracy", run_of(loss=decay(20, 2.49, 1.75), accuracy=right)) is State.ABSENT


def test_of_means_over_epochs_the_first_tells_the_number_of_classes() -> None:
    loss = [1.327, 1.204, 1.109, 1.053, 1.007, 0.975, 0.955, 0.922, 0.916, 0.9, 0.888, 0.882, 0.88, 0.88, 0.878]
    right = [0.43, 0.58, 0.68, 0.77, 0.8, 0.81, 0.83, 0.855, 0.86, 0.86, 0.87, 0.87, 0.875, 0.88, 0.88]
    rows = [
        {"epoch": at + 1, "loss": one, "accuracy": other}
        for at, (one, other) in enumerate(zip(loss, right, strict=True))
    ]
    assert seen("loss_at_softmax_floor", run_of_records(rows)).values["classes"] == 4
