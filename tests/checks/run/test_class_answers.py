from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "one_answer_for_all"


def evaluated(metrics: dict[str, list[float]], classes: int | None = None) -> Run:
    curves = {
        f"eval_{name}": {10.0 * (number + 1): value for number, value in enumerate(values)}
        for name, values in metrics.items()
    }
    return run_of({"loss": decay(100), **curves}, config={} if classes is None else {"num_labels": classes})


ONE = {
    "balanced accuracy": {"accuracy": [0.71] * 6, "balanced_accuracy": [0.3333] * 6},
    "macro F1": {"accuracy": [0.62] * 6, "macro_f1": [0.3827] * 6},
    "all are called positive": {"accuracy": [0.41] * 6, "recall": [1.0] * 6, "precision": [0.41] * 6},
    "correlation": {"accuracy": [0.7] * 6, "mcc": [0.0] * 6},
    "nothing is found where little is right": {"accuracy": [0.55] * 6, "f1": [0.0] * 6},
    "the entropy of two classes": {"accuracy": [0.8] * 6, "loss": [0.5004, 0.5006, 0.5, 0.501, 0.5003, 0.5005]},
    "R2": {"r2": [-0.002, 0.0, 0.001, -0.001, 0.0, 0.0]},
}


@pytest.mark.parametrize("metrics", ONE.values(), ids=ONE.keys())
def test_metrics_that_one_answer_for_all_has_to_the_digit_are_seen(metrics: dict[str, list[float]]) -> None:
    finding = seen(NAME, evaluated(metrics))
    assert finding.state is State.PRESENT
    assert finding.steps == [10.0]
    assert finding.values["evaluations"] == 6


OTHERWISE = {
    "rare classes are learnt late": {
        "accuracy": [0.9, 0.9, 0.9, 0.92, 0.95, 0.97],
        "balanced_accuracy": [0.25, 0.25, 0.25, 0.8, 0.85, 0.9],
    },
    "balanced accuracy near one in three": {
        "accuracy": [0.5, 0.52, 0.53, 0.5, 0.51, 0.52],
        "balanced_accuracy": [0.334, 0.3321, 0.3389, 0.331, 0.3355, 0.3338],
    },
    "classes of equal size": {"accuracy": [0.5, 0.7, 0.8, 0.9, 0.9, 0.9], "macro_f1": [0.49, 0.69, 0.8, 0.9, 0.9, 0.9]},
    "a saturated model whose mistakes cost less": {"accuracy": [0.97] * 6, "loss": [0.09] * 6},
    "a calibrated model that goes on": {
        "accuracy": [0.7, 0.74, 0.78, 0.8, 0.82, 0.83],
        "loss": [0.61, 0.57, 0.52, 0.5, 0.47, 0.45],
    },
    "targets that are next to noise": {"r2": [0.001, 0.004, 0.007, 0.009, 0.011, 0.012]},
    "a set of one class": {"accuracy": [1.0] * 6, "recall_0": [1.0] * 6, "recall_1": [0.0] * 6, "f1": [1.0] * 6},
}


@pytest.mark.parametrize("metrics", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_answers_that_differ_are_not(metrics: dict[str, list[float]]) -> None:
    assert state(NAME, evaluated(metrics)) is State.ABSENT


def test_the_configured_number_of_classes_holds() -> None:
    of_three: dict[str, list[float]] = {"accuracy": [0.71] * 6, "balanced_accuracy": [0.3333] * 6}
    assert state(NAME, evaluated(of_three, 3)) is State.PRESENT
    assert state(NAME, evaluated(of_three, 5)) is State.ABSENT


def test_scores_that_rank_rows_below_the_threshold_are_only_remarked() -> None:
    finding = seen(NAME, evaluated({"accuracy": [0.55] * 6, "f1": [0.0] * 6, "auc": [0.6, 0.7, 0.8, 0.85, 0.87, 0.88]}))
    assert finding.state is State.ABSENT
    assert "0.88" in finding.summary


def test_three_evaluations_and_an_accuracy_alone_cannot_tell() -> None:
    assert state(NAME, evaluated({"accuracy": [0.7] * 3, "mcc": [0.0] * 3})) is State.UNKNOWN
    assert state(NAME, evaluated({"accuracy": [0.7] * 6})) is State.UNKNOWN


def test_classes_that_are_missed_are_told_once() -> None:
    run = evaluated(
        {"accuracy": [0.97] * 6, "recall_0": [1.0] * 6, "recall_1": [0.0] * 6, "balanced_accuracy": [0.5] * 6}
    )
    assert state("minority_missed", run) is State.PRESENT
    assert state(NAME, run) is State.UNKNOWN


def test_an_f1_that_is_the_mean_of_one_answer_over_several_classes_is_seen() -> None:
    f1 = 2 * 0.95 / 1.95 / 4
    run = run_of(loss=np.linspace(1.4, 0.9, 24), eval_accuracy=dict.fromkeys(range(4, 25, 4), 0.95),
                 eval_f1=dict.fromkeys(range(4, 25, 4), round(f1, 4)))  # fmt: skip
    assert state("one_answer_for_all", run) is State.PRESENT


@pytest.mark.parametrize("names", [("IoU/background", "IoU/lesion"), ("val_dice_organ", "val_dice_tumor")])
def test_a_class_that_is_never_found_while_another_one_is_points_to_its_rarity(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    rows = ["epoch,train_loss,val_loss,{},{},val_pixel_acc".format(*names)]
    for epoch in range(1, 51):
        learnt = 1 - 0.9**epoch
        rows.append(
            f"{epoch},{1 - 0.8 * learnt:.4f},{1.03 - 0.8 * learnt:.4f},{0.98 * learnt:.4f},0.0,{0.97 * learnt:.4f}"
        )
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows) + "\n")
    diagnosis = diagnose_run(path)
    assert diagnosis.leader == "class_imbalance"
    assert "eval_metric_zero" not in {f.symptom for f in diagnosis.findings if f.state is State.PRESENT}


def test_a_class_that_is_found_late_is_not_missed() -> None:
    late = [0.0] * 3 + [0.3, 0.5, 0.6]
    run = evaluated({"iou_road": [0.5, 0.8, 0.9, 0.93, 0.95, 0.96], "iou_tree": late})
    assert state("minority_missed", run) is State.ABSENT
