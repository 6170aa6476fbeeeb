from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import run_of, state

NAME = "minority_missed"
FALLING = np.exp(-np.arange(100) / 30)


def evaluated(**metrics: list[float]) -> Run:
    curves = {
        f"eval_{name}": {10.0 * (number + 1): value for number, value in enumerate(values)}
        for name, values in metrics.items()
    }
    return run_of({"loss": FALLING, **curves})


def test_classes_that_are_never_found_are_seen() -> None:
    run = evaluated(recall_0=[1.0, 1.0, 0.99, 1.0, 1.0], recall_1=[0, 0, 0, 0, 0], recall_2=[0, 0.1, 0, 0.05, 0.0])
    assert state(NAME, run) is State.PRESENT


@pytest.mark.parametrize("name", ["metrics/recall({})", "val_recall[{}]", "{}/recall", "val/tpr_{}", "eval_{}_recall"])
def test_the_name_of_a_class_stands_where_people_write_it(name: str) -> None:
    found = {"ok": [1.0] * 5, "crack": [0.0] * 5, "pore": [0.0, 0.05, 0.0, 0.0, 0.02]}
    curves = {name.format(label): dict(enumerate(values, 1)) for label, values in found.items()}
    assert state(NAME, run_of({"loss": FALLING, **curves})) is State.PRESENT


@pytest.mark.parametrize("name", ["eval_recall_at_{}", "val_recall@{}"])
def test_the_first_k_answers_are_no_classes(name: str) -> None:
    curves = {name.format(rank): dict.fromkeys(range(1, 6), value) for rank, value in ((1, 0.04), (50, 0.97))}
    assert state(NAME, run_of({"loss": FALLING, **curves})) is State.UNKNOWN


def test_classes_that_are_found_in_the_end_are_not() -> None:
    run = evaluated(recall_0=[1.0, 1.0, 0.99, 0.98, 0.98], recall_1=[0, 0.2, 0.5, 0.7, 0.8])
    assert state(NAME, run) is State.ABSENT


def test_a_model_that_finds_no_class_well_is_not() -> None:
    run = evaluated(recall_0=[0.5, 0.4, 0.6, 0.5, 0.5], recall_1=[0.05, 0.0, 0.1, 0.05, 0.05])
    assert state(NAME, run) is State.ABSENT


def test_a_macro_score_far_below_the_accuracy_is_seen() -> None:
    run = evaluated(accuracy=[0.97] * 5, f1_macro=[0.33] * 5)
    assert state(NAME, run) is State.PRESENT


def test_one_near_the_accuracy_is_not() -> None:
    run = evaluated(accuracy=[0.9, 0.92, 0.95, 0.96, 0.96], f1_macro=[0.5, 0.6, 0.7, 0.78, 0.8])
    assert state(NAME, run) is State.ABSENT


def test_the_accuracy_alone_cannot_tell() -> None:
    assert state(NAME, evaluated(accuracy=[0.97] * 5)) is State.UNKNOWN


def test_an_f1_near_zero_beside_a_good_accuracy_is_seen() -> None:
    run = evaluated(accuracy=[0.79, 0.79, 0.79, 0.79, 0.79, 0.8], f1=[0, 0, 0, 0, 0.02, 0.04])
    assert state(NAME, run) is State.PRESENT


def test_an_f1_that_comes_up_in_the_end_is_not() -> None:
    run = evaluated(accuracy=[0.79, 0.79, 0.8, 0.82, 0.84, 0.86], f1=[0, 0, 0.1, 0.3, 0.5, 0.6])
    assert state(NAME, run) is State.ABSENT


def test_an_f1_near_zero_beside_an_accuracy_of_a_half_is_another_fault() -> None:
    run = evaluated(accuracy=[0.49] * 6, f1=[0.0] * 6)
    assert state("one_answer_for_all", run) is State.PRESENT
    assert state(NAME, run) is State.UNKNOWN


def test_recalls_by_class_are_found_under_the_names_of_plain_loops() -> None:
    recalls = {"recall_class0": np.full(20, 1.0), "recall_class1": np.zeros(20)}
    assert state("minority_missed", run_of(recalls)) is State.PRESENT


def test_the_one_class_that_is_looked_for_may_be_named_and_pixels_may_be_the_answers() -> None:
    zero = [0.0] * 6
    run = evaluated(pixel_accuracy=[0.99] * 6, iou_lesion=zero, iou_background=[0.99] * 6, recall_lesion=zero)
    assert state(NAME, run) is State.PRESENT
    assert state("eval_metric_zero", run) is not State.PRESENT, "most answers are right"
