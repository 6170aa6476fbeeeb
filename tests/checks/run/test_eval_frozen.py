from __future__ import annotations

import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, decay, run_of, state


@pytest.mark.parametrize("value", [0.0, 0.1, 0.5, 37.0])
def test_a_metric_that_never_moves_is_present(value: float) -> None:
    assert state("eval_metric_constant", run_of(eval_f1=[value] * 6, eval_loss=decay(6))) is State.PRESENT


@pytest.mark.parametrize(
    "metrics",
    [
        {"eval_accuracy": [1.0] * 6},
        {"eval_accuracy": [0.1, 0.1, 0.1, 0.1, 0.1, 0.2]},
        {"eval_bbox_mAP": [0.1, 0.2, 0.3, 0.3, 0.4, 0.4], "eval_bbox_mAP_s": [-1] * 6, "eval_bbox_mAP_m": [-1] * 6},
        {
            "eval_accuracy": [0.5, 0.6, 0.7, 0.7, 0.7, 0.7],
            "eval_f1": [0.4, 0.5, 0.6, 0.7, 0.8, 0.8],
            "eval_recall": [0.5] * 6,
        },
    ],
    ids=["saturated", "moves late", "no small objects", "one of three"],
)
def test_a_metric_that_moves_or_is_at_its_best_is_absent(metrics: dict[str, Curve]) -> None:
    assert state("eval_metric_constant", run_of(metrics)) is State.ABSENT


def test_clocks_counts_and_numbers_of_the_data_are_no_metrics() -> None:
    clocks = (
        "eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "eval_num_samples", "eval_loss",
        "eval_source_entropy", "eval_chance", "eval_baseline_accuracy", "eval_oracle(true_coef)", "eval_persistence",
    )  # fmt: skip
    assert state("eval_metric_constant", run_of(dict.fromkeys(clocks, [1.5] * 8))) is State.UNKNOWN


def test_a_number_of_frames_is_no_metric_and_an_accuracy_in_percent_is() -> None:
    assert state("eval_metric_constant", run_of(eval_over=[1639044.0] * 8)) is State.UNKNOWN
    assert state("eval_metric_constant", run_of(eval_accuracy=[25.0] * 8)) is State.PRESENT


def test_an_error_of_one_digit_may_be_rounded_and_an_error_of_three_is_constant() -> None:
    assert state("eval_metric_constant", run_of(eval_mae=[0.3] * 8, eval_loss=decay(8))) is State.UNKNOWN
    assert state("eval_metric_constant", run_of(eval_mae=[0.312] * 8, eval_loss=decay(8))) is State.PRESENT


def test_four_evaluations_cannot_tell() -> None:
    assert state("eval_metric_constant", run_of(eval_f1=[0.0] * 4)) is State.UNKNOWN


def test_an_accuracy_of_nearly_one_throughout_is_absent() -> None:
    run = run_of(loss=[1.0] * 60, eval_accuracy=dict.fromkeys(range(10, 61, 10), 0.977))
    assert state("eval_metric_constant", run) is State.ABSENT


def _majority(end: float) -> dict[str, Curve]:
    return {
        "loss": decay(15, 1.0, 0.6),
        "accuracy": decay(15, 0.5, end, 3.0),
        "eval_loss": decay(15, 0.9, 0.65),
        "eval_accuracy": [0.643, 0.643, 0.642, 0.641, *[0.64] * 11],
    }


def test_an_accuracy_at_which_training_arrives_too_is_present_though_a_few_answers_changed() -> None:
    assert state("eval_metric_constant", run_of(_majority(0.64))) is State.PRESENT


def test_an_accuracy_that_training_leaves_behind_is_absent() -> None:
    assert state("eval_metric_constant", run_of(_majority(0.95))) is State.ABSENT


def test_what_training_knew_from_its_first_record_need_not_move() -> None:
    assert state("eval_metric_constant", run_of(auc=[1.0] * 8, eval_auc=[0.55] * 8)) is State.ABSENT
    assert state("eval_metric_constant", run_of(auc=decay(8, 0.6, 1.0), eval_auc=[0.55] * 8)) is State.PRESENT


@pytest.mark.parametrize("name", ["BLEU", "ndcg@10", "recall@20", "rougeL"])
def test_what_is_measured_on_whole_outputs_needs_no_prefix(name: str) -> None:
    assert state("eval_metric_constant", run_of({name: [0.1] * 6}, loss=decay(6))) is State.PRESENT


def test_a_score_of_training_is_none_of_evaluation() -> None:
    assert state("eval_metric_constant", run_of({"recall": [0.0] * 6}, loss=decay(6))) is State.UNKNOWN


def test_an_error_rate_that_stands_at_its_worst_is_not_near_its_best() -> None:
    assert state(
        "eval_metric_constant", run_of(loss=decay(200), eval_cer=dict.fromkeys(range(25, 201, 25), 100.0))
    ) is (State.PRESENT)


@pytest.mark.parametrize("name", ["dice", "IoU", "f1", "mIoU"])
def test_a_score_of_a_class_beside_each_evaluation_loss_is_one_of_evaluation(name: str) -> None:
    zero = [0.0] * 6
    assert state("eval_metric_constant", run_of({name: zero}, eval_loss=decay(6))) is State.PRESENT


def test_a_score_of_training_is_none() -> None:
    alone, beside = {"f1": [0.0] * 6}, {"f1": [0.0] * 6, "eval_f1": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    assert state("eval_metric_constant", run_of(alone, loss=decay(6))) is State.UNKNOWN
    assert state("eval_metric_constant", run_of(beside, eval_loss=decay(6))) is State.ABSENT


@pytest.mark.parametrize("name", ["mean Average global foreground Dice", "mean Pseudo dice"])
def test_the_dice_of_nnunet_is_of_evaluation(name: str) -> None:
    assert state("eval_metric_constant", run_of({name: [0.0] * 6}, loss=decay(6))) is State.PRESENT


def test_a_perfect_score_beside_a_loss_that_falls_and_training_that_errs_is_told() -> None:
    loss = [1.5, 0.5, 0.3, 0.24, 0.19, 0.18, 0.15]
    trained = [0.61, 0.82, 0.9, 0.92, 0.95, 0.95, 0.96]
    run = run_of(loss=loss, accuracy=trained, eval_loss=loss, eval_accuracy=[1.0] * 7)
    assert state("eval_score_perfect", run) is State.PRESENT
    easy = run_of(loss=loss, accuracy=[0.99] * 7, eval_loss=loss, eval_accuracy=[1.0] * 7)
    assert state("eval_score_perfect", easy) is not State.PRESENT
