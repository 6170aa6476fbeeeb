from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_a_loss_that_stays_that_of_a_guess_is_seen(classes: int) -> None:
    run = run_of(loss=[math.log(classes) + 0.001 * (step % 3) for step in range(40)], config={"num_labels": classes})
    assert state("loss_at_chance", run) is State.PRESENT


def test_a_loss_well_below_a_guess_is_not() -> None:
    run = run_of(loss=[2.3 - 0.02 * step for step in range(40)], config={"num_labels": 10})
    assert state("loss_at_chance", run) is State.ABSENT


def test_without_the_number_of_classes_it_cannot_be_told() -> None:
    assert state("loss_at_chance", run_of(loss=[2.3] * 39 + [2.31])) is State.UNKNOWN


def test_a_loss_that_stands_at_ln_2_is_seen_without_it() -> None:
    assert state("loss_at_chance", run_of(loss=[0.6931, 0.6935, 0.693] * 10, every=10)) is State.PRESENT


def test_a_loss_near_ln_2_is_seen_where_the_accuracy_keeps_to_a_half() -> None:
    loss, guessing = [0.7222, 0.7225, 0.7227, 0.722] * 5, [0.494, 0.507, 0.498, 0.509] * 5
    assert state("loss_at_chance", run_of(every=10, loss=loss, accuracy=guessing)) is State.PRESENT
    assert state("loss_at_chance", run_of(every=10, loss=loss, accuracy=[0.65, 0.66, 0.64, 0.65] * 5)) is State.UNKNOWN


def test_few_records_tell_where_the_log_begins_late() -> None:
    loss, guessing = [0.7222, 0.7225, 0.7227, 0.722], [0.494, 0.507, 0.498, 0.509]
    late = run_of(every=100, loss=loss, accuracy=guessing, epoch=[17.0, 17.5, 18.0, 18.5])
    early = run_of(every=100, loss=loss, accuracy=guessing, epoch=[0.0, 0.1, 0.2, 0.3])
    assert (state("loss_at_chance", late), state("loss_at_chance", early)) == (State.PRESENT, State.UNKNOWN)


def test_neither_a_loss_nor_an_accuracy_tells_among_how_many_classes_is_guessed() -> None:
    for loss, right in ((3.466, 0.03), (2.302, 0.1085), (2.081, 0.15)):
        run = run_of(loss=np.full(20, loss), accuracy=np.full(20, right), every=10, kind="supervised")
        found = seen("loss_at_chance", run)
        assert (found.state, found.summary) == (State.UNKNOWN, "the number of classes or tokens is not known")
        assert "ln(" not in seen("loss_plateau", run).summary


@pytest.mark.parametrize(
    "known", [{"config": {"num_labels": 10}}, {f"eval_accuracy/class_{at}": 0.1 for at in range(10)}]
)
def test_settings_and_metrics_of_each_class_tell_the_number_of_classes(known: dict[str, Any]) -> None:
    metrics = {name: np.full(20, value) for name, value in known.items() if name != "config"}
    run = run_of({"loss": np.full(20, 2.302), **metrics}, every=10, kind="supervised", config=known.get("config"))
    assert "ln(10)" in seen("loss_at_chance", run).summary


def test_a_loss_that_stays_above_that_of_a_guess_is_present() -> None:
    run = run_of(loss=noisy(decay(200, 4.9, 4.6), 0.01), kind="supervised", config={"num_labels": 32})
    assert state("loss_at_chance", run) is State.PRESENT


def test_a_summed_loss_is_another_symptom() -> None:
    loss = decay(200, 4 * 3.46, 4 * 1.5)
    run = run_of(
        loss=loss,
        eval_loss={step: float(loss[step - 1]) / 4 for step in range(20, 201, 20)},
        kind="supervised",
        config={"num_labels": 32},
    )
    assert state("loss_scale_suspicious", run) is State.PRESENT
    assert state("loss_at_chance", run) is State.ABSENT


def test_an_evaluation_that_is_better_than_a_guess_shows_that_nothing_is_guessed() -> None:
    loss = noisy(np.full(200, 3.46), 0.01)
    config = {"num_labels": 32}
    learning = run_of(loss=loss, eval_loss=dict.fromkeys(range(20, 201, 20), 1.9), kind="supervised", config=config)
    guessing = run_of(loss=loss, eval_loss=dict.fromkeys(range(20, 201, 20), 3.47), kind="supervised", config=config)
    assert state("loss_at_chance", learning) is State.ABSENT
    assert state("loss_at_chance", guessing) is State.PRESENT


def test_a_loss_that_has_fallen_to_where_two_classes_would_be_guessed_is_no_guess() -> None:
    assert state("loss_at_chance", run_of(loss=noisy(decay(200, 2.4, 0.694, 40), 0.003))) is not State.PRESENT
    assert state("loss_at_chance", run_of(loss=noisy(decay(200, 0.75, 0.694, 20), 0.003))) is State.PRESENT


def test_a_few_epochs_that_all_stand_at_ln_2_are_enough() -> None:
    at_chance = [0.6944, 0.6931, 0.6930, 0.6929, 0.6928]
    epochs = run_of_records({"epoch": epoch, "loss": loss} for epoch, loss in enumerate(at_chance))
    assert state("loss_at_chance", epochs) is State.PRESENT
    assert state("loss_at_chance", run_of(loss=at_chance)) is State.UNKNOWN  # steps: it may yet learn
    falling = run_of_records({"epoch": epoch, "loss": loss} for epoch, loss in enumerate([0.72, 0.70, 0.68, 0.69]))
    assert state("loss_at_chance", falling) is State.UNKNOWN


@pytest.mark.parametrize(
    "metrics", [{"eval_cer": [96.0] + [100.0] * 19}, {"eval_wer": [1.0] * 20}, {"BLEU": [0.0] * 20}]
)
def test_a_loss_at_rest_while_no_answer_is_right_is_present(metrics: dict[str, list[float]]) -> None:
    run = run_of(metrics, loss=np.concatenate([[3.75, 2.2], np.linspace(2.0, 1.95, 18)]), every=100)
    assert state("loss_at_chance", run) is State.PRESENT
    assert state("loss_plateau", run) is State.UNKNOWN


@pytest.mark.parametrize("metrics", [{"eval_cer": [100.0] * 12 + [90.0, 70.0, 50.0, 30.0]}, {"eval_wer": [1.1] * 16}])
def test_a_recogniser_that_begins_to_learn_is_not(metrics: dict[str, list[float]]) -> None:
    run = run_of(metrics, loss=np.concatenate([[6.0, 3.0], np.linspace(2.4, 1.2, 14)]))
    assert state("loss_at_chance", run) is not State.PRESENT


def test_an_error_rate_of_one_per_cent_is_that_of_a_model_that_knows_all() -> None:
    run = run_of({"eval_wer": [1.31, 1.22, 1.18, 1.2, 1.19, 1.21]}, loss=[0.2, 0.12, 0.12, 0.12, 0.12, 0.12])
    assert state("loss_at_chance", run) is not State.PRESENT
    assert state("eval_metric_zero", run) is not State.PRESENT


def test_the_first_logs_of_an_epoch_are_no_means_over_epochs() -> None:
    loss = {0.02: 0.692, 0.04: 0.6897, 0.05: 0.6916, 0.07: 0.6878}
    records = [{"epoch": epoch, "loss": value} for epoch, value in loss.items()]
    assert state("loss_at_chance", run_of_records(records)) is State.UNKNOWN


def test_a_rough_loss_beside_an_accuracy_of_a_guess_is_present() -> None:
    rough = 2.31 + np.abs(np.random.default_rng(0).normal(0, 0.6, 40))
    guess = noisy(np.full(40, 0.11), 0.05)
    knows = np.linspace(0.1, 0.5, 40)
    ten = {"num_labels": 10}
    assert state("loss_at_chance", run_of(loss=rough, eval_accuracy=guess, config=ten)) is State.PRESENT
    assert state("loss_at_chance", run_of(loss=rough, eval_accuracy=knows, config=ten)) is State.ABSENT


def test_a_loss_a_hundred_times_that_of_a_guess_is_no_guess() -> None:
    run = run_of(loss=noisy(np.full(40, 420.0), 0.1), config={"vocab_size": 32})
    assert state("loss_at_chance", run) is State.ABSENT


def test_an_accuracy_of_next_to_nothing_tells_no_number_of_classes() -> None:
    run = run_of(loss=[2.0] * 40, accuracy=[1e-300] * 40, kind="pretraining")
    assert state("loss_at_chance", run) is State.UNKNOWN


def test_an_r2_that_never_leaves_that_of_the_mean_is_at_chance() -> None:
    evaluations = range(10, 101, 10)
    loss = np.full(100, 0.9)
    mean = dict(zip(evaluations, [0.003, -0.01, 0.005, 0.0, -0.2, 0.01, 0.002, -0.05, 0.004, 0.0], strict=True))
    assert state("loss_at_chance", run_of(loss=loss, eval_r2=mean)) is State.PRESENT
    learns = dict(zip(evaluations, np.linspace(0.0, 0.4, 10), strict=True))
    assert state("loss_at_chance", run_of(loss=loss, eval_r2=learns)) is not State.PRESENT


def test_few_noisy_records_at_chance_are_told_where_the_classes_are_known() -> None:
    loss = [1.86, 3.04, 2.03, 1.76, 1.67, 2.14, 2.01, 1.91, 1.85, 1.58, 1.63, 1.89, 1.87, 1.93, 1.89, 1.79, 1.68, 2.1]
    right = dict(zip(range(30, 190, 30), [0.207, 0.176, 0.207, 0.191, 0.176, 0.234], strict=True))
    about: dict[str, Any] = {"kind": "supervised", "every": 10, "config": {"num_labels": 6}}
    assert state("loss_at_chance", run_of(loss=loss, eval_accuracy=right, **about)) is State.PRESENT
