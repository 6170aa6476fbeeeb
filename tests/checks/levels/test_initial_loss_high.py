from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.judge import diagnose
from mldebug_mcp.models import State
from tests.runs import decay, run_of, run_of_records, state


def test_a_first_loss_far_above_a_uniform_guess_is_present() -> None:
    assert state("initial_loss_high", run_of(loss=decay(100, 9.0), config={"num_labels": 10})) is State.PRESENT


def test_a_first_loss_above_any_vocabulary_is_present() -> None:
    assert state("initial_loss_high", run_of(loss=decay(100, 60.0), kind="pretraining")) is State.PRESENT


def test_a_first_loss_near_a_uniform_guess_is_absent() -> None:
    assert state("initial_loss_high", run_of(loss=decay(100, 2.5), config={"num_labels": 10})) is State.ABSENT


def test_without_the_number_of_classes_it_cannot_be_told() -> None:
    assert state("initial_loss_high", run_of(loss=decay(100, 60.0))) is State.UNKNOWN


def test_thirty_nats_are_present_for_any_classifier() -> None:
    loss, accuracy = decay(100, 30.0, 0.5), {50: 0.8, 100: 0.9}
    assert state("initial_loss_high", run_of(loss=loss, eval_accuracy=accuracy)) is State.PRESENT
    assert state("initial_loss_high", run_of(loss=loss)) is State.UNKNOWN


def test_a_ctc_loss_has_no_scale() -> None:
    run = run_of(loss=decay(100, 120.0, 20.0), loss_ctc=decay(100, 200.0, 30.0), accuracy={50: 0.2, 100: 0.4})
    assert state("initial_loss_high", run) is State.UNKNOWN


def test_a_loss_that_stays_above_any_guess_beside_an_accuracy_may_be_a_regressions() -> None:
    loss, accuracy = decay(30, 260.0, 190.0), decay(30, 0.07, 0.09)
    assert state("initial_loss_high", run_of(loss=loss, accuracy=accuracy)) is State.UNKNOWN
    assert state("initial_loss_high", run_of(loss=loss, accuracy=accuracy, config={"num_labels": 9})) is State.PRESENT
    assert state("initial_loss_high", run_of(loss=loss, accuracy=accuracy, ppl=np.exp(loss))) is State.PRESENT


@pytest.mark.parametrize(("times", "expected"), [(1.0, State.ABSENT), (36.0, State.UNKNOWN)])
def test_a_loss_that_may_be_summed_over_an_epoch_cannot_be_judged(times: float, expected: State) -> None:
    evaluation = [1.1 - 0.03 * at for at in range(12)]
    rows = [
        {"epoch": 1.0 + at, "loss": times * one, "eval_loss": one, "accuracy": 0.5} for at, one in enumerate(evaluation)
    ]
    assert state("initial_loss_high", run_of_records(rows)) is expected


def test_a_model_that_comes_trained_begins_below_what_frequencies_give() -> None:
    llama = {"model_name_or_path": "meta-llama/Llama-3.2-1B"}
    assert state("initial_loss_high", run_of(loss=decay(100, 9.5, 5.0), config=llama)) is State.PRESENT
    assert state("initial_loss_high", run_of(loss=decay(100, 2.4, 1.2), config=llama)) is State.ABSENT


def test_a_tuning_loss_summed_over_micro_batches_is_another_symptom() -> None:
    run = run_of(loss=decay(100, 14.0, 8.0), config={"lora_r": 8, "gradient_accumulation_steps": 8})
    assert state("initial_loss_high", run) is State.ABSENT


@pytest.mark.parametrize(("tokens", "expected"), [(14, State.PRESENT), (50257, State.ABSENT)])
def test_an_accuracy_beside_a_known_vocabulary_guesses_among_no_more_than_its_tokens(
    tokens: int, expected: State
) -> None:
    run = run_of(loss=decay(100, 9.2, 0.5), accuracy=decay(100, 0.1, 0.8), config={"vocab_size": tokens})
    assert state("initial_loss_high", run) is expected


@pytest.mark.parametrize(("r2", "expected"), [(-7e5, State.PRESENT), (-0.4, State.ABSENT)])
def test_an_r2_far_below_zero_at_first_tells_it_of_a_regression(r2: float, expected: State) -> None:
    run = run_of({"eval_r2": {5: r2, 10: r2 / 10, 15: r2 / 40}}, loss=decay(20, 4000.0, 60.0), kind="supervised")
    assert state("initial_loss_high", run) is expected


def test_the_first_record_of_epochs_is_a_mean_and_no_vocabulary_is_invented_for_it() -> None:
    names = ("epoch", "train_loss", "train_acc", "val_acc", "lr")
    epochs = [(1, 377.3, 0.478, 0.524, 3.0), (2, 173.9, 0.543, 0.484, 3.0), (3, 55.3, 0.468, 0.384, 3.0)]
    rows = [*epochs, *((epoch, 2.0 - epoch / 100, 0.25, 0.24, 3.0) for epoch in range(4, 26))]
    answer = diagnose(run_of_records([dict(zip(names, row, strict=True)) for row in rows]))
    high = next(finding.summary for finding in answer.findings if finding.symptom == "initial_loss_high")
    assert high.startswith("the mean loss of the first epoch is 377.3 at epoch 1, where the learning rate is 3; ")
    assert high.endswith("a uniform guess has at most 12.48, even over the largest vocabularies")


@pytest.mark.parametrize(("classes", "expected"), [(1.1, State.ABSENT), (6.6, State.PRESENT)])
def test_where_the_loss_is_a_sum_of_parts_the_largest_is_compared_with_a_guess(classes: float, expected: State) -> None:
    boxes, overlap, part = decay(100, 0.6), decay(100, 0.9), decay(100, classes)
    run = run_of(
        loss=boxes + overlap + part, loss_bbox=boxes, loss_iou=overlap, loss_cls=part, config={"num_classes": 3}
    )
    assert state("initial_loss_high", run) is expected
    assert state("initial_loss_high", run_of(loss=boxes + overlap + part, config={"num_classes": 3})) is State.PRESENT


@pytest.mark.parametrize("names", [("kd_loss", "ce_loss"), ("soft_loss", "hard_loss"), ("loss_kl", "loss_cls")])
@pytest.mark.parametrize(("first", "expected"), [(2.25, State.ABSENT), (23.0, State.PRESENT)])
def test_a_term_for_a_teacher_comes_on_top_of_what_a_guess_has(
    names: tuple[str, str], first: float, expected: State
) -> None:
    soft, hard = decay(100, 29.0), decay(100, first)
    curves = {"loss": 0.8 * soft + 0.2 * hard, names[0]: soft, names[1]: hard}
    run = run_of(curves, config={"num_classes": 10, "temperature": 4.0, "alpha": 0.8})
    assert state("initial_loss_high", run) is expected


def test_the_whole_loss_of_a_student_says_nothing_of_its_start() -> None:
    student = run_of(loss=decay(100, 23.0), eval_teacher_accuracy={20: 0.9, 80: 0.9}, config={"num_classes": 10})
    assert state("initial_loss_high", student) is State.UNKNOWN
    assert state("initial_loss_high", run_of(loss=decay(100, 23.0), config={"num_classes": 10})) is State.PRESENT
