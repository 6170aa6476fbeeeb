from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, seen, state

NAME = "loss_at_softmax_floor"
TEN = math.log(math.e + 9)


def _classifier(
    off: float, accuracy: float = 0.95, config: Mapping[str, Scalar] | None = None, scale: float = 1.0
) -> Run:
    """Ten classes, where the loss and the accuracy add up to ln(e + 9) and `off`."""
    shares = decay(20, 0.2, accuracy)
    draw = np.random.default_rng(1).normal(0, 0.005, 20)
    evaluation = {10 * (1 + at): float(TEN - one + off + draw[at]) for at, one in enumerate(shares)}
    right = {step: scale * float(one) for step, one in zip(evaluation, shares, strict=True)}
    return run_of(
        loss=decay(200, math.log(10), TEN - accuracy), eval_loss=evaluation, eval_accuracy=right, config=config
    )


@pytest.mark.parametrize("accuracy", [0.7, 0.95, 0.999])
def test_a_loss_that_adds_up_with_the_accuracy_to_the_bound_is_present(accuracy: float) -> None:
    finding = seen(NAME, _classifier(0.01, accuracy))
    assert finding.state is State.PRESENT
    assert finding.values["floor"] == pytest.approx(TEN - accuracy, abs=0.02)


@pytest.mark.parametrize("off", [-0.5, -0.1, 0.3])
def test_a_loss_below_the_bound_or_well_above_it_is_absent(off: float) -> None:
    assert state(NAME, _classifier(off, config={"num_labels": 10})) is not State.PRESENT


def test_an_accuracy_in_per_cent_is_one_even_where_it_begins_below_one_per_cent() -> None:
    run = _classifier(0.01, scale=100)
    run["eval_accuracy"].value[0] = 0.8
    assert state(NAME, run) is State.PRESENT


def test_a_single_evaluation_that_comes_there_by_chance_is_absent() -> None:
    shares = np.random.default_rng(2).uniform(0.2, 0.9, 40)
    shares[-5:] = 0.8
    losses = np.random.default_rng(3).uniform(0.3, 4.0, 40)
    losses[-5:] = TEN - 0.8
    steps = range(5, 201, 5)
    evaluation = dict(zip(steps, losses.tolist(), strict=True))
    right = dict(zip(steps, shares.tolist(), strict=True))
    run = run_of(loss=decay(200, math.log(10), 0.2), eval_loss=evaluation, eval_accuracy=right)
    assert state(NAME, run) is State.ABSENT


def test_without_the_number_of_classes_it_cannot_be_told() -> None:
    right = dict.fromkeys(range(10, 201, 10), 0.95)
    run = run_of(loss=decay(200, 0.9, 0.5), eval_loss=dict.fromkeys(right, 0.6), eval_accuracy=right)
    assert state(NAME, run) is State.UNKNOWN


@pytest.mark.parametrize("classes", [2, 4, 6, 10])
def test_right_and_sure_answers_tell_the_number_of_classes_by_the_floor_itself(classes: int) -> None:
    floor = math.log(math.e + classes - 1) - 1
    loss = np.array([1.1, *np.full(7, floor)]) + 0.001
    right = np.array([0.66, *np.ones(7)])
    rows = {"eval_loss": loss, "eval_accuracy": np.ones(8), "loss": loss, "accuracy": right}
    assert seen(NAME, run_of(rows, kind="supervised")).values["classes"] == classes


def test_right_answers_whose_loss_still_falls_do_not() -> None:
    loss = np.geomspace(1.1, 0.1, 8)
    assert (
        state(NAME, run_of(eval_loss=loss, eval_accuracy=np.ones(8), loss=loss, kind="supervised")) is not State.PRESENT
    )


def test_classes_are_counted_from_the_floor_where_the_first_epoch_has_learnt_already() -> None:
    rows = [
        {"epoch": 1 + at, "loss": loss, "accuracy": right, "val_loss": loss - 0.002, "val_accuracy": right}
        for at, (loss, right) in enumerate([(2.12, 0.42), (1.79, 0.75), (1.53, 0.96), *[(TEN - 1 + 0.006, 0.999)] * 17])
    ]
    finding = seen(NAME, run_of_records(rows))
    assert finding.values["classes"] == 10
    assert finding.values["floor"] == pytest.approx(finding.values["loss"], abs=0.01)
