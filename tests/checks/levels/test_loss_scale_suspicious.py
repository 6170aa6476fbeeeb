from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state

EVALUATIONS = {step: 1.8 - step / 400 for step in (50, 100, 150, 200)}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("number", "configured"), [(4, True), (16, True), (8, False)])
def test_a_training_loss_that_is_a_multiple_of_the_evaluation_loss_is_present(
    number: int, configured: bool, seed: int
) -> None:
    loss = noisy([number * (1.8 - step / 400) for step in range(1, 201)], 0.01, seed)
    config = {"gradient_accumulation_steps": number} if configured else None
    finding = seen("loss_scale_suspicious", run_of(loss=loss, eval_loss=EVALUATIONS, config=config))
    assert finding.state is State.PRESENT
    assert finding.values["number"] == number


def test_a_first_loss_that_is_a_multiple_of_a_uniform_guess_is_present() -> None:
    run = run_of(
        loss=decay(100, 8 * 10.8, 30),
        config={"vocab_size": 50257, "gradient_accumulation_steps": 8},
        kind="pretraining",
    )
    assert state("loss_scale_suspicious", run) is State.PRESENT


def test_a_fine_tune_that_sums_over_micro_batches_is_present() -> None:
    run = run_of(loss=decay(100, 69, 16), config={"gradient_accumulation_steps": 16}, kind="sft")
    assert state("loss_scale_suspicious", run) is State.PRESENT


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.5, 2.0])
def test_a_training_loss_on_the_scale_of_the_evaluation_loss_is_absent(factor: float) -> None:
    loss = [factor * (1.8 - step / 400) for step in range(1, 201)]
    run = run_of(loss=loss, eval_loss=EVALUATIONS, config={"gradient_accumulation_steps": 8})
    assert state("loss_scale_suspicious", run) is State.ABSENT


def test_a_bad_initialisation_is_no_multiple() -> None:
    run = run_of(loss=decay(100, 31.0), config={"vocab_size": 50257}, kind="pretraining")
    assert state("initial_loss_high", run) is State.PRESENT
    assert state("loss_scale_suspicious", run) is State.UNKNOWN


@pytest.mark.parametrize("times", [4, 8, 16])
def test_a_first_loss_that_happens_to_be_a_multiple_is_a_bad_start_where_nothing_is_accumulated(times: float) -> None:
    run = run_of(loss=decay(100, times * 2.303), config={"num_labels": 10})
    assert state("initial_loss_high", run) is State.PRESENT
    assert state("loss_scale_suspicious", run) is State.UNKNOWN


@pytest.mark.parametrize("times", [1 / 8, 4, 12])
def test_a_loss_that_is_a_multiple_of_the_logarithm_of_its_perplexity_is_present(times: float) -> None:
    nats = noisy(decay(50, 4.0, 2.0), 0.02)
    finding = seen("loss_scale_suspicious", run_of(loss=times * nats, perplexity=np.exp(nats)))
    assert finding.state is State.PRESENT
    assert finding.values["number"] == max(times, 1 / times)
    assert "perplexity" in finding.summary


@pytest.mark.parametrize("times", [1.0, 1 / np.log(2), np.log(2), 1.3, 2.0])
def test_bits_and_words_are_no_multiple_of_the_perplexity(times: float) -> None:
    nats = noisy(decay(50, 4.0, 2.0), 0.02)
    run = run_of(loss=times * nats, perplexity=np.exp(nats), config={"vocab_size": 5000}, kind="pretraining")
    assert state("loss_scale_suspicious", run) is State.ABSENT


def test_a_loss_with_terms_beside_that_of_the_perplexity_is_no_multiple_of_it() -> None:
    nats = noisy(decay(50, 4.0, 0.5), 0.02)
    run = run_of(loss=nats + 2.0, perplexity=np.exp(nats), config={"vocab_size": 60}, kind="pretraining")
    assert state("loss_scale_suspicious", run) is State.ABSENT


def test_without_anything_to_compare_with_it_cannot_be_told() -> None:
    assert state("loss_scale_suspicious", run_of(loss=decay(100, 40))) is State.UNKNOWN


def test_a_multiple_that_overfitting_makes_smaller_is_present() -> None:
    run = run_of(
        loss=[8 * (1.8 - step / 300) for step in range(1, 201)], eval_loss={50: 1.75, 100: 1.6, 150: 1.5, 200: 1.45}
    )
    finding = seen("loss_scale_suspicious", run)
    assert finding.state is State.PRESENT
    assert finding.values["number"] == 8


def test_a_multiple_that_comes_and_goes_is_absent() -> None:
    run = run_of(loss=[4.0] * 200, eval_loss={25: 1.0, 50: 0.5, 75: 1.6, 100: 0.9, 150: 0.8, 200: 0.7})
    assert state("loss_scale_suspicious", run) is State.ABSENT


@pytest.mark.parametrize(("times", "expected"), [(1.0, State.ABSENT), (36.0, State.UNKNOWN)])
def test_a_loss_that_may_be_summed_over_an_epoch_cannot_be_judged(times: float, expected: State) -> None:
    evaluation = [1.1 - 0.03 * at for at in range(12)]
    rows = [
        {"epoch": 1.0 + at, "loss": times * one, "eval_loss": one, "accuracy": 0.5} for at, one in enumerate(evaluation)
    ]
    assert state("loss_scale_suspicious", run_of_records(rows)) is expected


def test_a_training_loss_divided_once_too_often_is_present() -> None:
    loss = noisy([(10.8 - step / 40) / 16 for step in range(1, 201)], 0.002)
    evaluation = {step: 10.8 - step / 40 for step in (50, 100, 150, 200)}
    finding = seen(
        "loss_scale_suspicious", run_of(loss=loss, eval_loss=evaluation, config={"gradient_accumulation_steps": 16})
    )
    assert finding.state is State.PRESENT
    assert finding.values["number"] == 16


def test_a_steady_quotient_between_two_numbers_is_absent() -> None:
    loss = noisy([3.3 * (1.8 - step / 400) for step in range(1, 201)], 0.01)
    run = run_of(loss=loss, eval_loss=EVALUATIONS, config={"gradient_accumulation_steps": 4})
    assert state("loss_scale_suspicious", run) is State.ABSENT


def test_an_evaluation_that_is_about_as_many_times_worse_is_absent() -> None:
    loss = noisy([1.2 - step / 1000 for step in range(1, 201)], 0.03)
    evaluation = dict.fromkeys((50, 100, 150, 200), 3.6)
    run = run_of(loss=loss, eval_loss=evaluation, config={"gradient_accumulation_steps": 4})
    assert state("loss_scale_suspicious", run) is State.ABSENT


def test_a_first_loss_that_is_a_batch_of_uniform_guesses_is_present_and_one_beside_it_is_not() -> None:
    config = {"per_device_train_batch_size": 64}
    summed = run_of(loss=decay(100, 64 * 0.71, 12), eval_auc={50: 0.7, 100: 0.8}, config=config, kind="supervised")
    found = seen("loss_scale_suspicious", summed)
    assert found.state is State.PRESENT
    assert found.values["number"] == 64
    other = run_of(loss=decay(100, 30, 12), eval_auc={50: 0.7, 100: 0.8}, config=config, kind="supervised")
    assert state("loss_scale_suspicious", other) is not State.PRESENT


@pytest.mark.parametrize(("accuracies", "config", "expected"), [
    ((0.92, 0.94), {}, State.PRESENT), ((0.6, 0.96), {}, State.ABSENT), (None, {"dropout": 0.4}, State.UNKNOWN),
    (None, {"augment": "shift"}, State.UNKNOWN), (None, {"augment": "none"}, State.PRESENT),
    (None, {"dropout": 0.4, "gradient_accumulation_steps": 4}, State.PRESENT),
])  # fmt: skip
def test_a_multiple_that_wrong_answers_or_what_makes_rows_harder_explain_is_not(
    accuracies: tuple[float, float] | None, config: dict[str, float | str], expected: State
) -> None:
    loss = [4 * (1.8 - step / 400) for step in range(1, 201)]
    run = run_of(loss=loss, eval_loss=EVALUATIONS, config=config or None)
    if accuracies is not None:
        train, evaluation = [accuracies[0]] * 200, dict.fromkeys(EVALUATIONS, accuracies[1])
        run = run_of(loss=loss, eval_loss=EVALUATIONS, accuracy=train, eval_accuracy=evaluation)
    assert state("loss_scale_suspicious", run) is expected
