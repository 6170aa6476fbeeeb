"""Facts of a run that rule causes out, or keep a number from being taken for a fault."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.runs import run_of

from mldebug_mcp import diagnose_run
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.models import Diagnosis, State

STEP = np.arange(1.0, 31.0)
NOISE = np.random.default_rng(0).normal(0, 1, 30)


def first(diagnosis: Diagnosis) -> str:
    return diagnosis.hypotheses[0].cause


def present(diagnosis: Diagnosis) -> set[str]:
    return {finding.symptom for finding in diagnosis.findings if finding.state is State.PRESENT}


def test_no_gradient_beside_rewards_that_differ_within_groups_is_no_fault_of_the_rewards() -> None:
    policy = {"loss": 0 * STEP, "grad_norm": 0 * STEP, "kl": 0 * STEP, "reward": 0.6 + 0.03 * NOISE}
    varied = run_of({**policy, "reward_std": 0.2 + 0.01 * NOISE, "frac_reward_zero_std": 0.25 + 0 * STEP}, kind="grpo")
    equal = run_of({**policy, "reward_std": 0 * STEP, "frac_reward_zero_std": 1 + 0 * STEP}, kind="grpo")
    assert first(diagnose(varied)) == "params_not_training"
    assert first(diagnose(equal)) in {"no_reward_variance", "reward_broken"}


def test_an_evaluation_that_ranks_like_a_guess_beside_perfect_training_is_not_healthy() -> None:
    step = np.arange(1.0, 101.0)
    scores = {"auc": np.minimum(1, 0.9 + 0.02 * step), "eval_auc": 0.52 - 0.0008 * step}
    diagnosis = diagnose(run_of(scores, kind="boosting"))
    assert {"eval_learns_nothing", "eval_score_falls"} <= present(diagnosis)
    assert first(diagnosis) in {"overfitting", "no_signal", "train_eval_mismatch"}


@pytest.mark.parametrize("name", ["eval_error", "eval_error_rate"])
def test_errors_of_a_guess_beside_a_loss_that_only_rises_say_that_nothing_was_learnt(name: str) -> None:
    step = np.arange(1.0, 101.0)
    losses = {"loss": 0.69 - 0.0028 * step, "eval_loss": 0.6934 + 0.0007 * step}
    wrong = {name: 0.53 + 0.01 * np.sin(step)}
    assert first(diagnose(run_of({**losses, **wrong}, kind="boosting"))) == "no_signal"
    right = {name: 0.5 * np.exp(-step / 30)}
    learns = {"loss": 0.69 * np.exp(-step / 60), "eval_loss": 0.69 * np.exp(-step / 70)}
    assert first(diagnose(run_of({**learns, **right}, kind="boosting"))) == "healthy"


def test_a_boosting_run_whose_evaluation_follows_is_left_alone() -> None:
    step = np.arange(1.0, 101.0)
    scores = {"auc": np.minimum(1, 0.9 + 0.02 * step), "eval_auc": 0.9 - 0.2 * np.exp(-step / 20)}
    assert first(diagnose(run_of(scores, kind="boosting"))) == "healthy"


def test_a_loss_that_rises_while_every_score_rises_to_its_best_does_not_diverge() -> None:
    step = np.arange(0.0, 2000.0, 200.0)
    loss = 4000 + 2.5 * step
    scores = {"eval_f1": 0.75 - 0.25 * np.exp(-step / 400), "eval_precision": 0.74 - 0.25 * np.exp(-step / 500)}
    assert "loss_divergence" not in present(diagnose(run_of({"loss": loss, **scores}, every=200)))
    level = {"eval_f1": 0.5 - 0.0001 * step}
    assert "loss_divergence" in present(diagnose(run_of({"loss": loss, **level}, every=200)))


@pytest.mark.parametrize(("end", "diverges"), [(9.0, False), (16.0, True)])
def test_a_loss_that_rises_while_that_of_evaluation_falls_to_its_lowest_does_not_diverge(
    end: float, diverges: bool
) -> None:
    epoch = np.arange(12.0)
    loss = np.array([15.5, 4.2, 2.3, 2.3, 2.1, 2.0, 4.6, 4.3, 4.2, 9.6, 9.1, 8.9])
    evaluation = np.where(epoch < 6, 15 - 0.2 * epoch, 14 + (end - 14) * (epoch - 6) / 5)
    assert ("loss_divergence" in present(diagnose(run_of(loss=loss, eval_loss=evaluation)))) is diverges


@pytest.mark.parametrize(("name", "stated"), [("eval_si_sdr_noisy", False), ("eval_pesq_noisy", True)])
def test_a_score_of_the_inputs_is_constant_next_to_that_of_what_a_model_makes_of_them(name: str, stated: bool) -> None:
    scores = {"eval_si_sdr": 3 + STEP / 40, name: np.full(len(STEP), -0.0307)}
    answer = diagnose(run_of({"loss": 2 * np.exp(-STEP / 20), **scores}))
    assert ("eval_metric_constant" in present(answer)) is stated


def test_a_loss_scale_below_one_that_still_falls_is_fp16_trouble_from_three_records() -> None:
    scale = {14300: 6.1e-5, 14350: 3.05e-5, 14400: 1.5e-5}
    diagnosis = diagnose(run_of(loss={14300: 0.71, 14350: 0.55, 14400: 0.66}, loss_scale=scale))
    assert "loss_scale_falls" in present(diagnosis)
    assert first(diagnosis) == "fp16_overflow"


def test_a_language_model_is_not_said_to_guess_between_two_classes() -> None:
    loss = 0.7 + 0.002 * NOISE
    assert "loss_at_chance" not in present(diagnose(run_of(loss=loss, kind="pretraining")))


def test_a_metric_that_is_no_longer_logged_is_said_so() -> None:
    until = dict(zip(STEP[:20].tolist(), (2 - STEP[:20] / 30).tolist(), strict=True))
    (loss,) = (
        one for one in diagnose(run_of(loss=until, grad_norm=1 + 0.1 * NOISE)).sheet.quantities if one.name == "loss"
    )
    assert "not logged after 20, while the log goes on to 30" in loss.curves[0].text


@pytest.mark.parametrize(
    ("later", "led_by"),
    [(np.full(60, 2.2), {"fp16_overflow"}), (np.geomspace(2.2, 400, 60), {"exploding_gradients", "lr_too_high"})],
    ids=["the loss stands still", "the loss explodes"],
)
def test_infinite_norms_that_move_nothing_are_no_exploding_gradients(
    later: NDArray[np.float64], led_by: set[str]
) -> None:
    wobble = np.random.default_rng(1).normal(0, 0.01, 72)
    norm = np.concatenate([np.linspace(120, 200, 12), np.full(60, np.inf)])
    loss = np.concatenate([np.linspace(4.0, 2.2, 12), later]) + wobble
    assert first(diagnose(run_of(loss=loss, grad_norm=norm))) in led_by


def test_a_loss_above_zero_without_a_gradient_has_labels() -> None:
    still = {"loss": 12 + 0.03 * NOISE, "grad_norm": 0 * STEP, "learning_rate": 1e-5 + 0 * STEP}
    assert first(diagnose(run_of(still, kind="sft"))) == "params_not_training"
    masked = {"loss": 0 * STEP, "grad_norm": 0 * STEP, "learning_rate": 1e-5 + 0 * STEP}
    assert first(diagnose(run_of(masked, kind="sft"))) == "all_labels_masked"


def test_an_evaluation_loss_that_goes_one_way_beside_a_constant_loss_says_that_something_is_trained() -> None:
    step = np.arange(1.0, 13.0)
    same = 0.6885 + 0 * step
    moving = run_of({"loss": same, "eval_loss": 0.703 + 0.0001 * np.floor(step / 2)}, kind="supervised")
    resting = run_of({"loss": same, "eval_loss": 0.703 + 0 * step}, kind="supervised")
    assert "loss_constant" not in present(diagnose(moving))
    assert "loss_constant" in present(diagnose(resting))


@pytest.mark.parametrize(("axis", "known_by_heart"), [("epoch", True), ("step", False)])
def test_rows_come_again_where_records_stand_by_epochs(axis: str, known_by_heart: bool) -> None:
    at = np.arange(16)
    train, evaluation = 1.4 * np.exp(-at / 3), 1.26 + 0.0045 * (at - 4.0) ** 2
    records = [{axis: int(k), "train_loss": train[k], "valid_loss": evaluation[k]} for k in at]
    answer = diagnose_run(records, settings={"n_train": 240, "batch_size": 16, "epochs": 16})
    leads = answer.hypotheses[0]
    assert (leads.cause == "overfitting") is known_by_heart
