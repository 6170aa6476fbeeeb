"""A relation between columns and settings decides between causes that show the same; nearly so, it does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp import RunDiagnosis, diagnose_run
from mldebug_mcp.judge.ranking import MIN_SPEAKING_BITS
from mldebug_mcp.models import State

Curve = NDArray[np.float64]
STEPS: Curve = np.arange(1.0, 81.0)
NOISE = np.random.default_rng(7).normal(0, 1, (8, len(STEPS)))
FALLS = 1.5 + 2.5 * np.exp(-STEPS / 20)


def diagnosed(curves: Mapping[str, Curve | Sequence[float]], *, settings: Mapping[str, Any] | None = None,
              evaluated: Mapping[str, Curve | Sequence[float]] | None = None) -> RunDiagnosis:  # fmt: skip
    """Diagnose curves of one value for each step, with evaluations each tenth step."""
    records = []
    for at, step in enumerate(STEPS.tolist()):
        record = {"step": step} | {name: float(value[at]) for name, value in curves.items()}
        if step % 10 == 0:
            of_others = {name: float(value[int(step) // 10 - 1]) for name, value in (evaluated or {}).items()}
            # Other rows have another loss than those of training, if only in the fourth decimal.
            record |= {name: value + 1e-4 * (value == record.get("loss")) for name, value in of_others.items()}
        records.append(record)
    return diagnose_run(records, settings=dict(settings or {}) or None)


def leading(answer: RunDiagnosis) -> str:
    return answer.hypotheses[0].cause


def facts(answer: RunDiagnosis) -> set[str]:
    return {fact.fact for fact in answer.sheet.facts}


def rough(level: Curve | float, share: float, row: int = 0) -> Curve:
    """Return a curve that scatters by a share of its level."""
    return np.asarray(level * np.exp(share * NOISE[row]), dtype=np.float64)


STUCK = rough(3.8, 0.05) + 0.8 * np.exp(-STEPS / 5)
GROWS = 20 + 0.8 * STEPS
LEARNS: Curve = np.linspace(4.6, 1.2, 8)


def test_a_norm_that_grows_more_evenly_than_the_loss_is_a_sum_of_gradients() -> None:
    answer = diagnosed({"loss": STUCK, "grad_norm": rough(GROWS, 0.01, 1)})
    assert "norm_adds_up" in facts(answer)
    assert leading(answer) == "missing_zero_grad"


@pytest.mark.parametrize(("loss", "norm", "cause"), [
    (STUCK, rough(6 + STEPS**0.5, 0.005, 1), "missing_zero_grad"),  # much of it in the first records
    (rough(1.2 + STEPS / 80, 0.15), rough(GROWS, 0.03, 1), "missing_zero_grad"),  # steps too long: the loss rises
    (rough(FALLS, 0.05), rough(6 + STEPS**0.5, 0.04, 1), "healthy"),  # scatters nearly as the loss does
], ids=["most of it early", "loss rises", "scatters as the loss"])  # fmt: skip
def test_a_norm_that_hardly_scatters_is_a_sum_where_it_grows_less_or_the_loss_rises(
    loss: Curve, norm: Curve, cause: str
) -> None:
    answer = diagnosed({"loss": loss, "grad_norm": norm})
    assert ("norm_adds_up" in facts(answer)) is (leading(answer) == "missing_zero_grad") is (cause != "healthy")


@pytest.mark.parametrize(("first", "stated"), [(4.6, True), (3.7, False)])
def test_a_loss_that_is_back_above_an_early_low_and_below_its_start_has_not_risen(first: float, stated: bool) -> None:
    loss = np.concatenate([[first, 3.5, 3.6], rough(3.9, 0.04)[3:]])
    assert ("norm_grows" in facts(diagnosed({"loss": loss, "grad_norm": rough(GROWS, 0.1, 1)}))) is stated


@pytest.mark.parametrize(("loss", "norm"), [
    (rough(FALLS, 0.02), rough(GROWS, 0.15, 1)),
    (FALLS, GROWS),  # all rows at each step: nothing scatters
], ids=["scatters", "all rows"])  # fmt: skip
def test_a_norm_that_grows_with_scatter_or_with_a_loss_as_even_is_healthy(loss: Curve, norm: Curve) -> None:
    answer = diagnosed({"loss": loss, "grad_norm": norm})
    assert "norm_adds_up" not in facts(answer)
    assert leading(answer) == "healthy"


def runs_away(last: Sequence[float]) -> RunDiagnosis:
    norm = [*rough(0.2, 0.1, 2)[: 60 - len(last)].tolist(), *last, *[math.nan] * 20]
    loss = [*rough(FALLS, 0.02)[:60].tolist(), *[math.nan] * 20]
    return diagnosed({"loss": loss, "grad_norm": norm}, settings={"max_grad_norm": 0.0, "model": "rnn_relu"})


def test_an_unclipped_norm_that_grows_ever_faster_to_nan_explodes() -> None:
    answer = runs_away([0.3, 0.4, 0.6, 1.6])
    assert "norm_runs_away" in facts(answer)
    assert leading(answer) == "exploding_gradients"


def test_a_norm_that_is_ordinary_up_to_nan_does_not_explode() -> None:
    answer = runs_away([0.21, 0.19, 0.2, 0.21])
    assert "norm_runs_away" not in facts(answer)
    assert leading(answer) != "exploding_gradients"


def with_scale(lowest: Curve) -> RunDiagnosis:
    bad = np.isin(STEPS, [50, 53, 54, 61, 66])
    nll = np.where(bad, np.nan, rough(FALLS - 1.4, 0.05))
    return diagnosed({"nll": nll, "mse": rough(0.4, 0.1, 3), "sigma_min": lowest, "grad_norm": rough(2.0, 0.2, 4)})


def test_a_loss_that_is_nan_just_where_a_column_is_negative_has_invalid_math() -> None:
    lowest = np.where(np.isin(STEPS, [50, 53, 54, 61, 66]), -rough(0.3, 0.5, 5), rough(0.5, 0.3, 5))
    answer = with_scale(lowest)
    assert "In just these sigma_min is below zero" in next(
        fact.text for fact in answer.sheet.facts if fact.fact == "lost_where_negative"
    )
    assert leading(answer) == "invalid_math"


@pytest.mark.parametrize("lowest", [
    np.where(np.isin(STEPS, [50, 53, 54]), -0.2, rough(0.5, 0.3, 5)),
    np.where(np.isin(STEPS, [50, 53, 54, 61, 66]), -1.0, rough(0.5, 0.3, 5)),
], ids=["in some of them", "a number that stands for none"])  # fmt: skip
def test_a_column_that_is_negative_in_some_of_these_or_always_minus_one_says_nothing(lowest: Curve) -> None:
    assert "lost_where_negative" not in facts(with_scale(lowest))


def lost_for_good(lowest: Curve, last_norm: float) -> RunDiagnosis:
    norm = np.concatenate([rough(2.0, 0.2, 4)[:59], [last_norm], np.full(20, np.nan)])
    loss, least = (np.where(STEPS > 60, np.nan, curve) for curve in (rough(FALLS, 0.05), lowest))
    return diagnosed({"loss": loss, "min u": least, "grad_norm": norm})


NEARS_ZERO = rough(0.3, 0.3, 5) * np.exp(-STEPS / 15)


def test_a_minimum_that_nears_zero_before_an_ordinary_loss_is_lost_has_invalid_math() -> None:
    answer = lost_for_good(NEARS_ZERO, 1.9)
    assert "lost_near_zero" in facts(answer)
    assert leading(answer) == "invalid_math"


@pytest.mark.parametrize(("lowest", "last_norm"), [(rough(0.3, 0.3, 5), 1.9), (NEARS_ZERO, 30.0)])
def test_a_minimum_that_keeps_its_level_or_a_gradient_that_runs_away_says_nothing_of_it(
    lowest: Curve, last_norm: float
) -> None:
    assert "lost_near_zero" not in facts(lost_for_good(lowest, last_norm))


@pytest.mark.parametrize(("name", "values", "stated"), [
    ("amax/layer_2", np.where(STEPS == 60, 0, rough(2.0, 0.2, 5)), True),
    ("fp8/fc1.scale", np.where(STEPS >= 61, math.inf, rough(150.0, 0.2, 5)), True),
    ("float8_scale_inv_h", np.where(STEPS >= 61, 0, rough(0.01, 0.2, 5)), True),
    ("fp8_amax_in", np.where(STEPS == 61, math.inf, rough(2.0, 0.2, 5)), False),  # it overflows
    ("fp8_amax_unused", np.zeros(80), False),
    ("fp8_amax_in", np.where(STEPS == 20, 0, rough(2.0, 0.2, 5)), False),  # long before
], ids=["largest value", "scale", "inverse", "overflows", "unused", "before"])  # fmt: skip
def test_a_tensor_of_zeros_in_8_bits_just_before_the_loss_is_lost_loses_it(
    name: str, values: Curve, stated: bool
) -> None:
    loss, norm = (np.where(STEPS > 60, math.nan, curve) for curve in (rough(FALLS, 0.05), rough(2.0, 0.2, 4)))
    loss[59] = 4.2
    answer = diagnosed({"loss": loss, "grad_norm": norm, name: values}, settings={"precision": "fp8"})
    assert ("lost_by_scale" in facts(answer)) is (leading(answer) == "fp8_zero_scale") is stated


RESTS = np.round(np.where(STEPS < 45, 32.39 + STEPS / 2000, 32.4125), 4)


@pytest.mark.parametrize(("norm", "rate", "precision", "cause"), [
    (RESTS, 1e-2 * (1.2 - STEPS / 80), "bf16", "low_precision_update"),
    (RESTS * 10, np.full(80, 2e-2), "fp16", "low_precision_update"),
    (RESTS, 1e-2 * (1.2 - STEPS / 80), "fp32", ""),
    (RESTS, np.where(STEPS < 45, 1e-2, 1e-7), "bf16", ""),  # the schedule is at its end
    (np.round(RESTS, 1), np.full(80, 0.5), "bf16", ""),  # few digits
    (RESTS + STEPS / 1e4, np.full(80, 1e-2), "bf16", ""),  # it moves on
], ids=["bf16", "fp16", "fp32", "schedule", "digits", "moves"])  # fmt: skip
def test_weights_in_half_precision_that_come_to_rest_lose_their_updates(
    norm: Curve, rate: Curve, precision: str, cause: str
) -> None:
    loss = rough(3.2 + 1.4 * np.exp(-STEPS / 12), 0.02)
    curves = {"loss": loss, "param_norm": norm, "lr": rate, "grad_norm": rough(0.9, 0.1, 4)}
    answer = diagnosed(curves, settings={"precision": precision, "optimizer": "adamw"})
    assert ("weights_come_to_rest" in facts(answer)) is bool(cause)
    assert (leading(answer) == "low_precision_update") is bool(cause)


def clipped(clip: float, optim: str = "sgd") -> RunDiagnosis:
    loss = np.maximum(40 - 0.4 * STEPS, 10) + 0.5 * NOISE[0]
    return diagnosed(
        {"loss": loss, "grad_norm": rough(20.0, 0.1, 1), "learning_rate": np.full(len(STEPS), 0.2)},
        settings={"max_grad_norm": clip, "optim": optim},
    )


def test_a_bound_far_below_each_gradient_sets_the_step_of_plain_descent() -> None:
    answer = clipped(0.02)
    text = next(fact.text for fact in answer.sheet.facts if fact.fact == "steps_of_one_length")
    assert "0.2 x 0.02 = 0.004 long" in text
    assert leading(answer) == "clip_too_tight"


@pytest.mark.parametrize(("clip", "optim"), [(5.0, "sgd"), (0.02, "adamw")])
def test_a_bound_that_is_near_or_an_optimizer_that_divides_by_the_gradient_does_not(clip: float, optim: str) -> None:
    assert "steps_of_one_length" not in facts(clipped(clip, optim))


SINCE_SYNC = (STEPS - 1) % 20


def policy(clip_fraction: Curve, **settings: Any) -> RunDiagnosis:
    return diagnosed(
        {
            "reward": 0.5 + 0.4 * STEPS / 80 + 0.01 * NOISE[0], "entropy": 0.9 - 0.003 * STEPS,
            "policy_loss": 0.02 * NOISE[1], "clip_fraction": np.clip(clip_fraction, 0, 1),
            "approx_kl": rough(0.01, 0.1, 2),
        },
        settings=settings,
    )  # fmt: skip


def test_clipping_that_grows_and_falls_after_as_many_steps_each_is_of_samples_that_are_old() -> None:
    answer = policy(rough(0.7 * (1 - np.exp(-(SINCE_SYNC + 0.05) / 3)), 0.05, 3), weight_sync_interval=20)
    text = next(fact.text for fact in answer.sheet.facts if fact.fact == "falls_at_intervals")
    assert "3 times: first at step 21, 41, 61" in text
    assert "weight_sync_interval is 20" in text
    assert leading(answer) == "off_policy_staleness"


@pytest.mark.parametrize(("every", "cause"), [(20, "off_policy_staleness"), (None, "kl_blowup")])
def test_a_divergence_that_old_samples_make_counts_with_them(every: int | None, cause: str) -> None:
    since = SINCE_SYNC if every else STEPS
    answer = diagnosed(
        {
            "reward": 0.2 - 0.15 * STEPS / 80 + 0.005 * NOISE[0], "reward_std": rough(0.3, 0.1, 1),
            "kl": rough(4 * np.exp(since / 3 if every else since / 12), 0.2, 2), "entropy": 0.8 - 0.004 * STEPS,
            "completions/mean_length": rough(3.0, 0.05, 3), "policy_lag": since,
        },
        settings={"kind": "grpo", "beta": 0.0, "num_generations": 8} | ({"sync_weights_every": every} if every else {}),
    )  # fmt: skip
    assert leading(answer) == cause
    assert all("sync_weights_every is 20" in fact.text for fact in answer.sheet.facts if "intervals" in fact.fact)


@pytest.mark.parametrize("fraction", [
    rough(0.12 * (1 - np.exp(-(SINCE_SYNC + 0.05) / 3)), 0.05, 3),  # updates of one batch, each logged
    rough(0.1, 0.3, 3),
], ids=["low teeth", "level"])  # fmt: skip
def test_low_clipping_is_healthy_whether_it_has_teeth_or_not(fraction: Curve) -> None:
    answer = policy(fraction)
    assert "falls_at_intervals" not in facts(answer)
    assert leading(answer) == "healthy"


SYNCED = STEPS - (STEPS - 1) % 5
"""The step at which the policy that samples was brought up to date."""
AT_RANDOM = np.abs(NOISE[4])
"""What comes and goes with no interval."""


@pytest.mark.parametrize(("versions", "old"), [
    ({"actor/version": STEPS, "rollout/weights_version": SYNCED}, True),
    ({"learner_policy_version": STEPS, "actor_policy_version": SYNCED}, True),
    ({"staleness": STEPS - SYNCED}, True),
    ({"actor/version": STEPS, "rollout/weights_version": STEPS - 1}, False),  # each update has fresh samples
    ({"data_version": STEPS // 40, "actor/version": STEPS * 8}, False),
])  # fmt: skip
@pytest.mark.parametrize("column", ["clip_fraction", "approx_kl"])
def test_ratios_that_are_far_off_while_the_sampling_policy_is_updates_behind_are_of_old_samples(
    versions: dict[str, Curve], old: bool, column: str
) -> None:
    off = np.where(AT_RANDOM > 0.3, 0.7, 0.02)
    curves = {"reward": 0.5 - 0.4 * STEPS / 80 + 0.02 * NOISE[0], "entropy": 0.9 * np.exp(-STEPS / 15), column: off}
    answer = diagnosed({**curves, "policy_loss": 0.02 * NOISE[1], **versions}, settings={"algo": "ppo"})
    assert ("old_samples_far_off" in facts(answer)) is old
    assert (leading(answer) == "off_policy_staleness") is old


def test_samples_of_an_old_policy_that_stay_near_are_healthy() -> None:
    curves = {"reward": 0.5 + 0.4 * STEPS / 80 + 0.01 * NOISE[0], "clip_fraction": rough(0.06, 0.3, 3)}
    answer = diagnosed({**curves, "actor/version": STEPS, "rollout/version": SYNCED}, settings={"algo": "ppo"})
    assert "old_samples_far_off" not in facts(answer)
    assert leading(answer) == "healthy"


LONGER = 1 / (1 + np.exp(-(STEPS - 45) / 3))


def growing_length(cut: Curve, reward: Curve) -> RunDiagnosis:
    return diagnosed(
        {
            "reward": reward, "reward_std": rough(0.3, 0.1), "kl": 0.01 + 4 * LONGER,
            "completions/mean_length": rough(5 + 41 * LONGER, 0.03, 1), "completions/clipped_ratio": cut,
            "policy_loss": 0.02 * NOISE[2],
        },
        settings={"max_completion_length": 48, "num_generations": 8},
    )  # fmt: skip


def test_a_reward_that_rises_while_most_completions_are_cut_is_paid_for_length() -> None:
    answer = growing_length(0.9 * LONGER, 0.42 + LONGER + 0.02 * NOISE[3])
    assert "cut_ones_earn" in facts(answer)
    assert leading(answer) == "length_exploitation"


@pytest.mark.parametrize(("cut", "reward"), [
    (0.05 * LONGER, 0.42 + 0.4 * LONGER + 0.02 * NOISE[3]),  # longer answers that end
    (0.9 * LONGER, 0.42 - 0.35 * LONGER + 0.02 * NOISE[3]),  # what is cut earns nothing
], ids=["they end", "the cut ones earn nothing"])  # fmt: skip
def test_longer_answers_that_end_or_that_earn_nothing_where_they_are_cut_are_not(cut: Curve, reward: Curve) -> None:
    assert "cut_ones_earn" not in facts(growing_length(cut, reward))


def preferred(held_out: float, margin: float) -> RunDiagnosis:
    return diagnosed(
        {
            "loss": 0.69 - 0.15 * STEPS / 80 + 0.01 * NOISE[0], "learning_rate": np.full(len(STEPS), 1e-6),
            "rewards/accuracies": np.minimum(0.8, 0.5 + STEPS / 60), "rewards/margins": 0.005 * STEPS,
            "logps/chosen": -30 - 0.02 * STEPS, "logps/rejected": -30 - 0.05 * STEPS,
        },
        evaluated={
            "eval_rewards/accuracies": held_out + 0.01 * NOISE[1], "eval_rewards/margins": margin + 0.01 * NOISE[2],
            "eval_loss": 0.69 - margin / 2 + 0.005 * NOISE[3],
        },
    )  # fmt: skip


def test_evaluation_pairs_that_are_right_far_less_than_by_half_are_the_other_way_round() -> None:
    answer = preferred(0.22, -0.35)
    assert "pairs_contradict" in facts(answer)
    assert leading(answer) == "preference_labels_swapped"


@pytest.mark.parametrize(("held_out", "leads"), [(0.07, "preference_labels_swapped"), (0.5, "train_eval_mismatch")])
def test_a_loss_that_pairs_the_other_way_round_make_counts_once_with_them(held_out: float, leads: str) -> None:
    answer = diagnosed(
        {
            "loss": 0.2 + 0.5 * np.exp(-STEPS / 10) + 0.02 * NOISE[0], "learning_rate": np.full(len(STEPS), 1e-6),
            "accuracy": 0.9 - 0.4 * np.exp(-STEPS / 10) + 0.02 * NOISE[1], "reward_margin": 4 - 4 * np.exp(-STEPS / 10),
        },
        evaluated={
            "eval_accuracy": held_out + 0.01 * NOISE[2], "eval_loss": 2.7 + 0.02 * STEPS + 0.01 * NOISE[3],
            "eval_reward_margin": -2 - 0.02 * STEPS,
        },
        settings={"task": "reward model"},
    )  # fmt: skip
    seen = {finding.symptom for finding in answer.findings if finding.state == "present"}
    assert {"eval_bad_from_start", "eval_gap_grows"} <= seen
    assert leading(answer) == leads


@pytest.mark.parametrize("phases", [("train_", "dev_"), ("train/", "valid/"), ("", "eval_")])
@pytest.mark.parametrize(("ends", "stated"), [(0.12, True), (0.48, False), (0.8, False)])
def test_pairs_of_a_reward_model_contradict_once_training_has_learnt_an_order(
    ends: float, stated: bool, phases: tuple[str, str]
) -> None:
    train, held_out = phases
    learnt = 1 / (1 + np.exp((40 - STEPS) / 5))
    learnt_by = learnt[9::10]
    answer = diagnosed(
        {
            f"{train}loss": 0.69 - 0.45 * learnt + 0.01 * NOISE[0], f"{train}accuracy": 0.5 + 0.37 * learnt,
            f"{train}margin": 1.7 * learnt, f"{train}mean_reward": 0.1 - 0.6 * learnt,
        },
        evaluated={
            f"{held_out}accuracy": 0.5 + (ends - 0.5) * learnt_by, f"{held_out}margin": 3 * (ends - 0.5) * learnt_by,
            f"{held_out}loss": 0.69 - 2 * (ends - 0.5) * learnt_by,
        },
    )  # fmt: skip
    assert ("pairs_contradict" in facts(answer)) is stated
    assert (leading(answer) == "preference_labels_swapped") is stated


LOST = np.isin(STEPS, [12, 23, 38, 50, 53, 54, 61, 66, 72])
SPREAD = rough(0.5, 0.3, 5)


@pytest.mark.parametrize("name", ["spread.min", "quietest", "row_std"])
def test_a_norm_that_is_nan_just_where_a_column_is_zero_has_invalid_math(name: str) -> None:
    norm = np.where(LOST, np.nan, rough(1.0, 0.2, 4))
    answer = diagnosed({"ce": rough(FALLS - 1.4, 0.05), "grad_norm": norm, name: np.where(LOST, 0.0, SPREAD)})
    stated = next(fact.text for fact in answer.sheet.facts if fact.fact == "norm_lost_where_zero")
    assert f"In just these {name} is 0" in stated
    assert leading(answer) == "invalid_math"


@pytest.mark.parametrize(("zero", "settings", "stated"), [
    (np.where(LOST, 0.0, 1.0), {}, {"norm_lost"}), (np.where(STEPS == 50, 0.0, SPREAD), {}, {"norm_lost"}),
    (np.where(LOST, 0.0, SPREAD), {"fp16": True}, set()),
], ids=["a mark", "in one of them", "half precision"])  # fmt: skip
def test_a_norm_that_is_nan_without_such_a_column_is_lost_for_another_reason(
    zero: Curve, settings: dict[str, Any], stated: set[str]
) -> None:
    norm = np.where(LOST, np.nan, rough(1.0, 0.2, 4))
    answer = diagnosed({"ce": rough(FALLS - 1.4, 0.05), "grad_norm": norm, "applied": zero}, settings=settings)
    assert {fact for fact in facts(answer) if fact.startswith("norm_lost")} == stated


@pytest.mark.parametrize("names", [("said", "was"), ("pred", "gt"), ("out_kind", "in_kind")])
@pytest.mark.parametrize(("rare", "stated"), [(0.0, True), (0.8, False)])
def test_answers_that_leave_out_classes_which_the_labels_have_hide_behind_their_accuracy(
    names: tuple[str, str], rare: float, stated: bool
) -> None:
    labels = [2688.0, 222.0, 60.0, 30.0]
    few = np.round(rough(rare, 0.1, 2)[:, None] * labels[2:])
    second = np.round(rough(220, 0.1, 3))
    answers = [3000 - second - few.sum(axis=1), second, few[:, 0], few[:, 1]]
    lists = {f"{names[0]} {kind}": values for kind, values in enumerate(answers)}
    lists |= {f"{names[1]} {kind}": np.full(len(STEPS), value) for kind, value in enumerate(labels)}
    answer = diagnosed({"loss": rough(FALLS / 8, 0.01), "right": 0.91 + 0.03 * STEPS / 80, **lists})
    assert ("classes_unanswered" in facts(answer)) is stated
    assert (leading(answer) == "class_imbalance") is stated


@pytest.mark.parametrize(("name", "rate", "stated"), [
    ("drift", 0.2, True), ("spread of z", 0.2, True), ("drift", 0.05, False), ("flops", 0.2, False),
])  # fmt: skip
def test_a_column_of_any_name_that_grows_a_thousandfold_is_not_healthy(name: str, rate: float, stated: bool) -> None:
    answer = diagnosed({"loss": rough(FALLS, 0.02), name: 2.3 * np.exp(rate * STEPS)})
    assert ("column_runs_off" in facts(answer)) is stated
    assert (leading(answer) == "healthy") is not stated


@pytest.mark.parametrize(("rate", "stated"), [(0.3, True), (0.03, False)])
def test_values_that_run_off_where_no_reward_is_named_are_those_of_a_critic(rate: float, stated: bool) -> None:
    values = 30 * np.exp(rate * STEPS)
    answer = diagnosed({"q mean": values, "td²": values**2 / 10, "pay": rough(4.0, 0.5)})
    assert ("values_run_off" in facts(answer)) is stated
    assert (leading(answer) == "value_instability") is stated


@pytest.mark.parametrize("words", [("march bce", "march auc"), ("oslo bce", "oslo hit"), ("site 4 bce", "site 4 acc")])
@pytest.mark.parametrize(("end", "stated"), [(2.0, True), (0.1, False)])
def test_a_set_of_any_name_that_is_measured_as_training_is_shows_which_rows_are_known(
    words: tuple[str, str], end: float, stated: bool
) -> None:
    at = np.arange(8.0)
    loss = 0.03 + 0.62 * np.exp(-STEPS / 20)
    answer = diagnosed(
        {"bce": loss},
        evaluated={
            "val bce": loss[9::10] + 0.01, "val auc": 1 - 0.25 * np.exp(-at / 2),
            words[0]: 0.7 + (end - 0.7) * at / 7, words[1]: (0.66 if stated else 0.95) - 0.005 * at,
        },
    )  # fmt: skip
    assert ("held_out_sets_disagree" in facts(answer)) is stated
    assert (leading(answer) == "train_eval_leakage") is stated


@pytest.mark.parametrize("head", ["sizes", "norm", "w_l2"])
@pytest.mark.parametrize(("front", "end", "stated"), [(0.0, 2.485, True), (0.3, 2.485, False), (0.0, 0.4, False)])
def test_parts_of_size_zero_with_a_gradient_are_held_there(head: str, front: float, end: float, stated: bool) -> None:
    sizes = {f"{head} {part}": np.full(len(STEPS), front) for part in ("front", "mid")}
    loss = end + (2.485 - end) * np.exp(-STEPS / 20)
    answer = diagnosed({"ce": loss, "g": rough(0.14, 0.2), **sizes, f"{head} out": rough(0.01, 0.3, 2)})
    assert ("weights_at_zero" in facts(answer)) is stated
    assert (leading(answer) == "weight_decay_too_high") is stated


def ranked(evaluated: Mapping[str, Curve | Sequence[float]]) -> RunDiagnosis:
    return diagnosed(
        {"loss": rough(0.2 + 4 * np.exp(-STEPS / 8), 0.03), "in_batch_acc": 0.99 - 0.9 * np.exp(-STEPS / 8)},
        evaluated={"eval_loss": 1 + np.exp(-np.arange(8.0)), **evaluated},
        settings={"batch_size": 64},
    )


@pytest.mark.parametrize(("evaluated", "stated"), [
    ({"eval_recall_at_10": np.zeros(8), "eval_median_rank": np.ones(8)}, True),
    ({"val/hit_rate@20": 0.02 + 0.004 * NOISE[1], "val/medR": 3.0 + 0.1 * NOISE[2]}, True),
    ({"eval_recall@5": np.full(8, 0.01), "eval_mrr": 0.8 + 0.01 * NOISE[3]}, True),
    ({"hit50": 0.06 + 0.004 * NOISE[1], "med.place": 390 * 0.75 ** np.arange(8)}, True),
    ({"recall@20": 0.03 + 0.002 * NOISE[1], "median position": 400 * 0.7 ** np.arange(8)}, True),
    ({"hit50": 50 / (780 * 0.75 ** np.arange(8)), "med.place": 390 * 0.75 ** np.arange(8)}, False),
    ({"hit50": 0.06 + 0.004 * NOISE[1], "med.place": 390 * 0.98 ** np.arange(8)}, False),
    ({"eval_recall_at_10": 0.97 + 0.004 * NOISE[1], "eval_median_rank": np.ones(8)}, False),
    ({"eval_recall_at_10": 0.02 + 0.004 * NOISE[1], "eval_median_rank": np.full(8, 250.0)}, False),
    ({"eval_recall_at_1": 0.02 + 0.004 * NOISE[1], "eval_mrr": np.full(8, 0.3)}, False),
])  # fmt: skip
def test_no_hits_where_most_right_answers_rank_first_are_of_another_ranking(
    evaluated: dict[str, Curve], stated: bool
) -> None:
    answer = ranked(evaluated)
    assert ("hits_contradict_ranks" in facts(answer)) is stated
    assert not stated or leading(answer) == "metric_bug"


@pytest.mark.parametrize(("correlation", "explained", "names", "stated"), [
    (0.73, 0.01, ("val/corr", "val/r2"), True), (0.6, 0.02, ("eval_pearson", "eval_r2"), True),
    (0.73, 0.5, ("val/corr", "val/r2"), False), (0.04, 0.001, ("val/corr", "val/r2"), False),
])  # fmt: skip
def test_answers_that_go_with_the_targets_and_explain_nothing_have_lost_their_spread(
    correlation: float, explained: float, names: tuple[str, str], stated: bool
) -> None:
    scores = dict(zip(names, (correlation + 0.01 * NOISE[1], explained + 0.001 * NOISE[2]), strict=True))
    left = 1 - explained
    answer = diagnosed(
        {"loss": rough(5 * left + 5 * (1 - left) * np.exp(-STEPS / 9), 0.03), "grad_norm": rough(0.6, 0.4, 3)},
        evaluated={"val/mse": 5 * left + 0.02 * NOISE[4], **scores},
    )
    assert ("related_without_spread" in facts(answer)) is stated
    assert (leading(answer) == "wrong_loss") is stated


@pytest.mark.parametrize(("targets", "answers", "stated"), [
    ("[64]", "[64, 1]", True), ("[32, 1]", "[32]", True), ("[64, 3]", "[64, 1]", False), ("[1]", "[1, 1]", False),
])  # fmt: skip
def test_a_warning_of_shapes_that_are_spread_to_one_another_names_the_loss(
    targets: str, answers: str, stated: bool, tmp_path: Path
) -> None:
    warning = f"Using a target size (torch.Size({targets})) that is different to the input size (torch.Size({answers}))"
    lines = [f"step {step:.0f} loss {loss:.4f}" for step, loss in zip(STEPS, rough(5.1, 0.03), strict=True)]
    (tmp_path / "run.log").write_text("\n".join([f"loss.py:12: UserWarning: {warning}.", *lines]) + "\n")
    answer = diagnose_run(tmp_path / "run.log")
    assert ("answers_spread_over_targets" in facts(answer)) is stated
    assert (leading(answer) == "wrong_loss") is stated


@pytest.mark.parametrize(("held_out", "margin"), [(0.75, 0.3), (0.5, 0.01)])
def test_evaluation_pairs_that_are_right_by_half_or_more_do_not_contradict(held_out: float, margin: float) -> None:
    answer = preferred(held_out, margin)
    assert "pairs_contradict" not in facts(answer)
    assert leading(answer) != "preference_labels_swapped"


def translator(scores: Sequence[float], floor: float, measure: str = "bleu") -> RunDiagnosis:
    loss = floor + 5 * np.exp(-STEPS / 6) + 0.01 * np.abs(NOISE[0])
    held_out = loss[9::10]
    return diagnosed(
        {"loss": loss + 1.0, "ppl": np.exp(loss)},
        evaluated={"eval_loss": held_out + 1.0, "eval_ppl": np.exp(held_out), f"eval_{measure}": scores},
        settings={"task": "translation", "label_smoothing_factor": 0.1},
    )


def test_known_tokens_and_texts_that_are_never_right_are_no_guess_but_a_model_that_sees_its_answer() -> None:
    answer = translator([0.0] * 8, 0.1)
    assert "known_but_not_written" in facts(answer)
    assert leading(answer) == "label_shift_error"
    assert "loss_at_chance" not in answer.hypotheses[0].symptoms


@pytest.mark.parametrize(("errors", "stated"), [
    ([92, 90, 89, 91, 90, 89, 90, 91], True), ([92, 70, 40, 22, 15, 12, 11, 11], False),
])  # fmt: skip
@pytest.mark.parametrize("measure", ["cer_greedy", "wer"])
def test_known_tokens_and_texts_of_mostly_wrong_words_are_not_of_the_same_model(
    measure: str, errors: Sequence[float], stated: bool
) -> None:
    answer = translator(errors, 0.1, measure)
    assert ("known_but_not_written" in facts(answer)) is stated
    assert leading(answer) == ("label_shift_error" if stated else "healthy")


def test_texts_that_get_right_with_the_tokens_are_healthy() -> None:
    answer = translator([0, 5, 20, 30, 34, 35, 36, 36], 0.1)
    assert "known_but_not_written" not in facts(answer)
    assert leading(answer) == "healthy"


def test_texts_that_are_never_right_where_tokens_are_not_known_are_stated_as_a_loss_at_rest() -> None:
    answer = translator([0.0] * 8, 3.0)
    assert "known_but_not_written" not in facts(answer)
    assert any(reason.symptom == "loss_at_chance" and reason.bits > MIN_SPEAKING_BITS
               for hypothesis in answer.hypotheses for reason in hypothesis.reasons)  # fmt: skip


@pytest.mark.parametrize(("bonus", "earns", "left", "stated"), [
    (0.0, -0.2, 0.002, True), (0.0, -0.2, 0.015, True), (0.01, -0.2, 0.002, False), (0.0, 0.9, 0.002, False),
    (0.0, -0.2, 0.4, False),
], ids=["lost", "nearly lost", "with a bonus", "solved", "some left"])  # fmt: skip
def test_an_entropy_that_nothing_pays_for_is_lost_with_what_the_policy_earned(
    bonus: float, earns: float, left: float, stated: bool
) -> None:
    curves = {
        "episode_return": np.where(STEPS < 20, 0.2, earns) + 0.01 * NOISE[2],
        "entropy": np.maximum(1.35 * np.exp(-STEPS / 3), left),
        "value_loss": rough(0.05, 0.2, 3), "learning_rate": np.full(len(STEPS), 0.02),
    }  # fmt: skip
    answer = diagnosed(curves, settings={"ent_coef": bonus, "n_steps": 8, "gamma": 0.97, "learning_rate": 0.02})
    assert ("unpaid_entropy_lost" in facts(answer)) is stated
    assert not stated or leading(answer) == "entropy_collapse"


RIGHT = 0.2 + 0.6 * (1 - np.exp(-STEPS / 25)) + 0.01 * NOISE[2]


@pytest.mark.parametrize(("names", "loss", "stated"), [
    (("train/loss", "train/top1"), -RIGHT + 0.02 * NOISE[3], True),
    (("nll_loss", "acc"), -0.9 * RIGHT, True),
    (("loss", "accuracy"), -0.95 * RIGHT + 0.01, True),
    (("loss", "accuracy"), -0.5 - 0.3 * (1 - np.exp(-STEPS / 5)) + 0.05 * NOISE[3], False),
    (("loss", "accuracy"), 1.4 * (1 - RIGHT), False),
    (("loss", "dice"), -RIGHT, False),
])  # fmt: skip
def test_a_loss_that_is_the_share_of_right_answers_negated_lacks_its_logarithm(
    names: tuple[str, str], loss: Curve, stated: bool
) -> None:
    answer = diagnosed({names[0]: loss, names[1]: RIGHT}, settings={"task": "classification"})
    assert ("negated_probability" in facts(answer)) is stated
    assert not stated or leading(answer) == "wrong_loss"


@pytest.mark.parametrize(("name", "share", "stated"), [
    ("unk_frac", 0.19, True), ("data/oov_rate", 0.3, True), ("unknown_token_pct", 24.0, True),
    ("unk_frac", 0.02, False), ("unk_pct", 0.4, False), ("unknown_share", 0.19, False),
    ("dev_unk_frac", 0.6, False),
])  # fmt: skip
def test_many_tokens_that_the_vocabulary_lacks_are_of_another_tokenizer(name: str, share: float, stated: bool) -> None:
    answer = diagnosed({"loss": rough(FALLS, 0.01), name: rough(share, 0.02, 1)}, settings={"vocab_size": 60})
    assert ("unknown_tokens" in facts(answer)) is stated
    assert (leading(answer) == "tokenizer_mismatch") is stated


@pytest.mark.parametrize(("first", "settings", "stated"), [
    (8.1, {"base_model": "stories-48"}, True), (9.5, {"init_from": "runs/pre/last.pt"}, True),
    (8.1, {"init_from": "scratch"}, False), (8.1, {"model_config/name": "tiny-char"}, False),
    (4.0, {"base_model": "stories-48"}, False),
    (60.0, {"base_model": "stories-48"}, False),
])  # fmt: skip
def test_a_model_that_is_loaded_and_begins_far_above_a_guess_is_given_other_tokens(
    first: float, settings: dict[str, Any], stated: bool
) -> None:
    loss = rough(2.0 + (first - 2.0) * np.exp(-(STEPS - 1) / 20), 0.005)
    answer = diagnosed({"loss": loss}, settings=settings | {"vocab_size": 60, "task": "language modeling"})
    assert ("surer_than_guess" in facts(answer)) is stated
    assert (leading(answer) == "tokenizer_mismatch") is stated


@pytest.mark.parametrize(("rate", "settings", "stated"), [
    (5e-6, {"optimizer": "adam"}, True), (2e-5, {"optim": "adamw_torch"}, True),
    (1e-6, {"optimizer": "AdamW", "scheduler": "cosine"}, True), (1e-3, {"optimizer": "adam"}, False),
    (5e-6, {"optimizer": "adam", "model_name_or_path": "bert-base"}, False), (5e-6, {"optimizer": "muon"}, False),
    (5e-6, {"optimizer": "adam", "init_from": "runs/pre/last.pt"}, False),
    (5e-6, {"optimizer": "adam", "init_from": "scratch"}, True),
])  # fmt: skip
def test_weights_that_adam_hardly_moves_in_all_updates_have_a_rate_that_is_too_low(
    rate: float, settings: dict[str, Any], stated: bool
) -> None:
    curves = {"train/loss": rough(0.51, 0.015), "learning_rate": rate * np.ones(len(STEPS)), "r2": rough(0.003, 1.0, 1)}
    answer = diagnosed(curves, settings=settings | {"learning_rate": rate, "max_steps": 80})
    assert ("weights_hardly_move" in facts(answer)) is stated
    assert not stated or leading(answer) == "lr_too_low"


@pytest.mark.parametrize(("name", "norm", "rate", "end", "stated"), [
    ("params norm", 23.0, 2e-5, 0.9, True), ("param_norm", 140.0, 4e-6, 0.95, True),
    ("weight_norm", 9.0, 3e-5, 0.8, True), ("params norm", 23.0, 1e-3, 0.9, False),
    ("param_norm", 870.0, 2e-5, 0.9, False), ("weight_norm", 9.0, 3e-5, 0.4, False),
    ("mlp.size", 9.0, 3e-5, 0.8, False),
])  # fmt: skip
def test_weights_of_a_small_model_hardly_move_where_no_settings_are_known(
    name: str, norm: float, rate: float, end: float, stated: bool
) -> None:
    loss = rough(3.4 * end ** (1 - np.exp(-STEPS / 40)), 0.003)
    curves = {"loss": loss, "ppl": np.exp(loss), "lr": np.full(len(STEPS), rate), "grad_norm": rough(2.0, 0.1, 1)}
    answer = diagnosed({**curves, name: norm - STEPS / 40_000})
    assert ("weights_hardly_move" in facts(answer)) is stated
    assert (leading(answer) == "lr_too_low") is stated


@pytest.mark.parametrize(("name", "moves", "rate", "stated"), [
    ("param_norm", 0.002, 2e-5, True), ("weight_norm", -0.004, 4e-5, True), ("train/params norm", 0.0, 6e-6, True),
    ("param_norm", 0.9, 2e-5, False), ("param_norm", 0.002, 1e-3, False),
])  # fmt: skip
def test_a_norm_of_weights_that_stays_tells_that_they_hardly_move_where_no_gradient_is_logged(
    name: str, moves: float, rate: float, stated: bool
) -> None:
    loss = rough(3.4 * 0.85 ** (1 - np.exp(-STEPS / 40)), 0.003)
    curves = {"loss": loss, "ppl": np.exp(loss), "lr": np.full(len(STEPS), rate), name: 24.5 + moves * STEPS / 80}
    answer = diagnosed(curves)
    assert ("weights_hardly_move" in facts(answer)) is stated
    assert (leading(answer) == "lr_too_low") is stated


SWEEP = np.floor((STEPS - 1) % 20 / 4)


@pytest.mark.parametrize(("name", "level", "stated"), [
    ("label_mean", SWEEP, True), ("batch/target_avg", SWEEP - 2 + 0.3 * NOISE[1], True),
    ("label_pos_frac", np.where(SWEEP > 2, 0.9, 0.05) + 0.01 * NOISE[1], True),
    ("label_mean", 2.5 + 0.3 * NOISE[1], False),  # drawn at random
    ("label_mean", 2.5 + STEPS / 80 + 0.01 * NOISE[1], False),  # drifts once
    ("output_mean", SWEEP, False),
])  # fmt: skip
def test_labels_of_batches_that_stay_high_or_low_for_long_come_in_an_order(
    name: str, level: Curve, stated: bool
) -> None:
    loss = rough(FALLS, 0.05) * (1 + 0.15 * stated * (SWEEP > 2))
    settings = {"batch_size": 32, "lr": 1e-3, "n_train": 640}
    answer = diagnosed({"loss": loss, "grad_norm": rough(1.0, 0.1, 2), name: level}, settings=settings)
    assert ("labels_in_order" in facts(answer)) is stated
    assert (leading(answer) == "unshuffled_data") is stated


BETTER = [1.46, 1.17, 0.9, 0.78, 0.71, 0.69, 0.66, 0.66]
WORSE = [1.87, 2.2, 2.4, 2.5, 2.55, 2.6, 2.62, 2.64]


@pytest.mark.parametrize(("names", "other", "stated"), [
    (("val_mse", "test_mse"), WORSE, True), (("valid/loss", "test/loss"), WORSE, True),
    (("val_mae", "holdout_mae"), [0.5 * level for level in WORSE], True),
    (("val_mse", "test_mse"), [1.2 * level for level in BETTER], False),  # alike
    (("val_mse", "test_mse"), [2.6, 2.5, 2.4, 2.4, 2.4, 2.4, 2.4, 2.4], False),  # harder from the start
    (("val_mse", "test_mae"), WORSE, False),  # of another measure
])  # fmt: skip
def test_a_set_that_gets_worse_while_another_gets_better_is_not_drawn_alike(
    names: tuple[str, str], other: list[float], stated: bool
) -> None:
    answer = diagnosed(
        {"train_mse" if "mse" in names[0] else "train_loss": rough(0.01 + 2.2 * np.exp(-STEPS / 15), 0.05)},
        evaluated={names[0]: BETTER, names[1]: other}, settings={"batch_size": 32, "lr": 1e-3, "optimizer": "adam"},
    )  # fmt: skip
    assert ("held_out_set_gets_worse" in facts(answer)) is stated
    assert (leading(answer) in ("train_eval_leakage", "train_eval_mismatch")) is stated


@pytest.mark.parametrize(("sample", "stated"), [
    ("sample: 'def ⁇un⁇(x): ret⁇rn x⁇{0}'", True), ("generated {0}: a <unk> of <unk> in <unk> the <unk>", True),
    ("step text [UNK] [UNK] was [UNK] by {0}", True),
    ("sample: 'def run(x): return x ⁇ and so it goes on and on to its end {0}'", False),
    ("generated {0}: the king of <unk> was born in a small town near the sea and went home", False),
    ("sample: 'def run(x): return {0}'", False),
])  # fmt: skip
def test_samples_full_of_the_unknown_sign_are_of_another_vocabulary(sample: str, stated: bool, tmp_path: Path) -> None:
    words, lines = ("ax", "by", "cz", "dw"), []
    for at, level in enumerate(rough(FALLS, 0.01).tolist()):
        lines.append(f"step {at + 1} loss {level:.4f}\n")
        lines += [sample.format(words[at // 20]) + "\n"] * (at % 20 == 10)
    (tmp_path / "train.log").write_text("".join(lines), encoding="utf-8")
    answer = diagnose_run(tmp_path / "train.log")
    assert ("unknown_tokens" in facts(answer)) is stated
    assert (leading(answer) == "tokenizer_mismatch") is stated


@pytest.mark.parametrize(("name", "distinct", "rows", "stated"), [
    ("data/distinct_rows", 300.0, 2560, True), ("unique_samples_seen", 150.0, 1280, True),
    ("n_unique_ids", 640.0, 2560, True),
    ("data/distinct_rows", 2560.0, 2560, False), ("unique_samples_seen", 1700.0, 2560, False),  # drawn by chance
    ("distinct_users", 150.0, 2560, False), ("unique_tokens", 300.0, 2560, False),
])  # fmt: skip
def test_rows_that_differ_are_counted_next_to_those_that_were_drawn(
    name: str, distinct: float, rows: int, stated: bool
) -> None:
    seen = np.minimum(np.round(distinct * (1 - np.exp(-STEPS / 8)) + 33), distinct)
    known = np.linspace(1.1, 1.2, 8)
    curves = {"loss": rough(0.05 + np.exp(-STEPS / 12), 0.05), "grad_norm": rough(0.4, 0.1, 1), name: seen}
    answer = diagnosed(curves, evaluated={"val_loss": known}, settings={"n_train": rows, "batch_size": 32})
    assert ("few_distinct_rows" in facts(answer)) is stated
    assert leading(answer) == "duplicated_data" or not stated


def test_a_loss_that_falls_shows_that_weights_move_enough() -> None:
    answer = diagnosed({"loss": rough(FALLS, 0.01)}, settings={"optimizer": "adam", "learning_rate": 1e-5})
    assert "weights_hardly_move" not in facts(answer)


PROMPTS = 0.1 + 0.5 * np.abs(np.sin(STEPS * 1.7))


@pytest.mark.parametrize(("reward", "entropy", "stated", "cause"), [
    (PROMPTS, 0.1 + 0.8 * np.exp(-STEPS / 10), {"groups_alike_without_entropy"}, "entropy_collapse"),
    (10 * PROMPTS, 0.3 + 1.5 * np.exp(-STEPS / 5), {"groups_alike_without_entropy"}, "entropy_collapse"),
    (PROMPTS, rough(1.2, 0.01, 1), {"groups_alike_with_entropy"}, "no_reward_variance"),
    (0 * STEPS, rough(1.2, 0.01, 1), set[str](), "reward_broken"),
])  # fmt: skip
def test_groups_that_earn_alike_where_prompts_do_not_are_have_one_answer_each_or_prompts_that_tell_little(
    reward: Curve, entropy: Curve, stated: set[str], cause: str
) -> None:
    alike = np.minimum(1.0, 0.5 + STEPS / 20)
    curves = {"reward": reward, "frac_reward_zero_std": alike, "entropy": entropy, "grad_norm": 0.3 * (alike < 1)}
    answer = diagnosed(curves, settings={"algorithm": "grpo", "num_generations": 4})
    assert {fact for fact in facts(answer) if fact.startswith("groups_alike")} == stated
    assert leading(answer) == cause


@pytest.mark.parametrize(("name", "there", "stated"), [
    ("fp8/side.amax", 0.0, True), ("te/ffn1/scale", math.inf, True), ("float8/head/scale_inv", 0.0, True),
    ("fp8/side.amax", 2.2, False), ("fp8/side.amax", math.inf, False), ("side.size", 0.0, False),
])  # fmt: skip
def test_a_scale_of_zeros_where_the_loss_is_lost_is_that_of_eight_bits(name: str, there: float, stated: bool) -> None:
    loss, scale = rough(FALLS, 0.01), rough(2.3, 0.1, 1)
    loss[50:], scale[50] = math.nan, there
    answer = diagnosed({"loss": loss, name: scale}, settings={"precision": "fp8-e4m3", "learning_rate": 1e-3})
    assert ("lost_by_scale" in facts(answer)) is stated
    assert not stated or leading(answer) == "fp8_zero_scale"


ROW = 20


@pytest.mark.parametrize(("columns", "evaluated", "stated"), [
    ({"target_tokens": 16 * ROW}, {"eval_target_tokens_per_sample": 7.0}, True),
    ({"loss_tokens": 16 * ROW - 8}, {"val/label_tokens_per_row": 6.0}, True),
    ({"train/n_target_tokens_per_example": ROW}, {"valid/n_target_tokens_per_example": 9.0}, True),
    ({"loss_tokens": 16 * ROW}, {"eval_loss_tokens": 16 * 5.0}, True),
    ({"target_tokens": 16 * ROW}, {"val/target_tokens": 16 * 7.0}, True),
    ({"loss_tokens": 16 * ROW}, {"eval_loss_tokens": 16.0 * ROW}, False),
    ({"target_tokens": 16 * ROW}, {"eval_target_tokens_per_sample": float(ROW)}, False),
    ({"target_tokens": 16 * 7}, {"eval_target_tokens_per_sample": 7.0}, False),
])  # fmt: skip
def test_more_tokens_of_a_row_in_training_than_in_evaluation_are_those_of_prompts(
    columns: dict[str, float], evaluated: dict[str, float], stated: bool
) -> None:
    answer = diagnosed(
        {"loss": rough(1.7 + np.exp(-STEPS / 9), 0.004), "accuracy": rough(0.43, 0.01, 1)}
        | {name: value * np.ones(len(STEPS)) for name, value in columns.items()},
        evaluated={"eval_loss": 0.02 / np.arange(1, 9), "eval_accuracy": np.ones(8)}
        | {name: value * np.ones(8) for name, value in evaluated.items()},
        settings={"seq_len": ROW + 1, "vocab_size": 20, "batch_size": 16, "learning_rate": 1e-3},
    )
    assert ("prompts_count_unmeant" in facts(answer)) is stated
    assert (leading(answer) == "prompt_not_masked") is stated
    assert not stated or not any(fact.endswith("training_behind") for fact in facts(answer))


@pytest.mark.parametrize(("columns", "name", "ends", "stated"), [
    ({"target_tokens": 16 * ROW}, "eval_answer_tokens_per_sample", 0.3, True),
    ({"loss_tokens": 16 * ROW}, "val_mean_reply_length", 0.5, True),
    ({"loss_tokens_per_seq": ROW - 1}, "test/answer_len", 0.2, True),
    ({"target_tokens": 16 * ROW}, "eval_answer_tokens_per_sample", 1.8, False),
    ({"target_tokens": 16 * 5}, "eval_answer_tokens_per_sample", 0.3, False),
])  # fmt: skip
def test_an_evaluation_of_short_answers_that_parts_from_training_on_whole_rows_leaves_prompts_out(
    columns: dict[str, float], name: str, ends: float, stated: bool
) -> None:
    answer = diagnosed(
        {"loss": rough(1.9 + 1.3 * np.exp(-STEPS / 12), 0.004)}
        | {name: value * np.ones(len(STEPS)) for name, value in columns.items()},
        evaluated={"eval_loss": np.linspace(2.3, ends, 8), name: np.full(8, 4.3)},
        settings={"seq_len": ROW + 1, "vocab_size": 40, "batch_size": 16, "learning_rate": 1e-3},
    )
    assert ("prompts_count_unmeant" in facts(answer)) is stated
    assert (leading(answer) == "prompt_not_masked") is stated


@pytest.mark.parametrize(("counted", "evaluated", "settings", "stated"), [
    (464, 1280, {"n_val": 128}, True), (270, 704, {"num_val_samples": 64}, True), (464, 700, {"eval_size": 70}, True),
    (160, 1280, {"n_val": 128}, False), (464, 3712, {"n_val": 128}, False), (464, 1280, {}, False),
    (400, 640, {"n_val": 128, "log_every": 5}, False),
])  # fmt: skip
def test_tokens_that_evaluation_counts_in_all_its_rows_are_those_of_answers(
    counted: float, evaluated: float, settings: dict[str, int], stated: bool
) -> None:
    answer = diagnosed(
        {"loss": rough(1.7 + np.exp(-STEPS / 9), 0.004), "accuracy": rough(0.43, 0.01, 1),
         "loss_tokens": rough(counted, 0.001, 2)},
        evaluated={"valid_loss": LEARNS / 5, "valid_accuracy": 1 - 0.27 / np.arange(1, 9) ** 2,
                   "valid_loss_tokens": np.full(8, evaluated)},
        settings={"seq_len": 34, "batch_size": 16, "learning_rate": 1e-3, "dataset": "sft chat", **settings},
    )  # fmt: skip
    assert ("prompts_count_unmeant" in facts(answer)) is stated
    assert (leading(answer) == "prompt_not_masked") is stated


@pytest.mark.parametrize(("name", "real", "stated"), [
    ("n_nonpad_tokens", 240.0, True), ("train/non_padding_tokens", 410.0, True),
    ("tokens_without_padding", 240.0, True),
    ("n_nonpad_tokens", 640.0, False), ("real_tokens", 624.0, False), ("n_pad_tokens", 240.0, False),
])  # fmt: skip
def test_more_tokens_in_the_loss_than_are_no_padding_are_padding(name: str, real: float, stated: bool) -> None:
    answer = diagnosed(
        {"loss": rough(1.1 + 2 * np.exp(-STEPS / 9), 0.03), "n_target_tokens": np.full(len(STEPS), 640.0),
         name: rough(real, 0.01, 1) if stated else np.full(len(STEPS), real)},
        evaluated={"val_loss": LEARNS},
        settings={"batch_size": 16, "vocab_size": 40, "learning_rate": 1e-3, "task": "seq2seq"},
    )  # fmt: skip
    assert ("padding_counts" in facts(answer)) is stated
    assert (leading(answer) == "prompt_not_masked") is stated


@pytest.mark.parametrize(("level", "ranks_lost", "cause"), [
    (3e20, 1, "hardware_fault"), (40.0, 1, "hardware_fault"), (3e20, 4, "lr_too_high"),
])  # fmt: skip
def test_a_learning_rate_drives_all_ranks_and_not_one_of_them(level: float, ranks_lost: int, cause: str) -> None:
    levels = [np.where((STEPS > 50) & (rank < ranks_lost), level, FALLS) for rank in range(4)]
    losses = {f"loss/rank{rank}": rough(losses, 0.3, rank) for rank, losses in enumerate(levels)}
    mean = np.asarray(np.mean(list(losses.values()), axis=0))
    answer = diagnosed({"loss": mean, **losses}, settings={"optimizer": "sgd", "learning_rate": 0.1})
    assert leading(answer) == cause


@pytest.mark.parametrize(("gain", "far", "stated"), [(0.08, 3.5, True), (0.6, 3.5, False), (0.08, 0.4, False)],
                         ids=["unpaid", "paid", "near"])  # fmt: skip
def test_a_policy_that_goes_far_and_gains_less_than_its_answers_differ_by_is_not_paid_for_length(
    gain: float, far: float, stated: bool
) -> None:
    rises = 1 - np.exp(-STEPS / 10)
    answer = diagnosed({
        "reward": 0.45 + gain * rises + 0.03 * NOISE[0],
        "reward_std": rough(0.29, 0.05, 1),
        "kl": rough(far * rises, 0.1, 2),
        "completions/mean_length": 13 + 7 * rises + 0.1 * NOISE[3],
        "loss": 0.01 * NOISE[4],
    }, settings={"trainer": "GRPOTrainer", "max_completion_length": 20, "beta": 0.0005})  # fmt: skip
    assert ("far_without_gain" in facts(answer)) is (leading(answer) == "kl_blowup") is stated


@pytest.mark.parametrize(("equal", "level", "healthy"), [(0.0, 0.72, True), (0.1, 0.6, True), (0.95, 0.02, False)])
def test_a_policy_whose_groups_have_better_and_worse_answers_has_found_its_reward(
    equal: float, level: float, healthy: bool
) -> None:
    answer = diagnosed({
        "reward": rough(level, 0.05),
        "reward_std": rough(0.2 * (1 - equal), 0.1, 1),
        "frac_reward_zero_std": np.full(80, equal),
        "kl": rough(0.05, 0.1, 2),
        "entropy": rough(4.1, 0.02, 3),
        "loss": 0.01 * NOISE[4],
    }, settings={"trainer": "GRPOTrainer", "beta": 0.04})  # fmt: skip
    likely = {hypothesis.cause for hypothesis in answer.hypotheses[:2]}
    assert likely.isdisjoint({"exploration_failure", "reward_broken", "no_reward_variance"}) is healthy


@pytest.mark.parametrize(("counted", "rows", "batch", "per_cent", "stated"), [
    (7, 391, 64, False, True), (9, 909, 50, True, True), (32, 3200, 32, False, True),
    (391, 391, 64, False, False), (7, 7, 64, False, False), (20, 391, 64, False, False),
])  # fmt: skip
def test_a_score_in_steps_of_one_over_the_last_batch_is_of_that_batch_alone(
    counted: int, rows: int, batch: int, per_cent: bool, stated: bool
) -> None:
    right = np.round(counted * (0.9 - 0.5 * np.exp(-STEPS[9::10] / 60))) / counted
    curves = {"loss": rough(0.4 + 1.2 * np.exp(-STEPS / 60), 0.02), "acc": rough(0.9 - 0.5 * np.exp(-STEPS / 60), 0.03)}
    evaluated = {"val_loss": 0.45 + 1.2 * np.exp(-STEPS[9::10] / 60), "val_acc": right * (100 if per_cent else 1)}
    settings = {"val_examples": rows, "eval_batch_size": batch, "num_classes": 5, "task": "image_classification"}
    answer = diagnosed(curves, settings=settings, evaluated=evaluated)
    assert ("score_of_last_batch" in facts(answer)) is stated
    assert (leading(answer) == "metric_bug") is stated


@pytest.mark.parametrize(("hidden", "task", "rests", "gap", "stated"), [
    ([64, 2, 64], "autoencoding", 0.4, 1.05, True), ([256, 64, 3, 64, 256], "reconstruction", 0.25, 1.0, True),
    ([128, 1, 128], "regression", 0.55, 1.1, True),
    ([64, 2, 64], "autoencoding", 0.95, 1.05, False), ([128, 64, 16], "regression", 0.4, 1.05, False),
    ([64, 2, 64], "regression", 0.4, 1.6, False), ([64, 32, 64], "autoencoding", 0.4, 1.05, False),
])  # fmt: skip
def test_a_layer_that_is_far_narrower_than_those_around_it_holds_back_a_fit(
    hidden: list[int], task: str, rests: float, gap: float, stated: bool
) -> None:
    loss = 1 - rests * (1 - np.exp(-STEPS / 12))
    curves = {"train_loss": rough(loss, 0.06), "gnorm": rough(0.22, 0.2, 1), "lr": 2e-3 + 0 * STEPS}
    evaluated = {"valid_loss": gap * loss[9::10], "valid_r2": 1 - loss[9::10]}
    settings = {"hidden": hidden, "task": task, "model": "mlp", "dropout": 0.0, "learning_rate": 2e-3}
    answer = diagnosed(curves, settings=settings, evaluated=evaluated)
    assert ("narrow_between" in facts(answer)) is stated
    assert leading(answer) == "too_little_capacity" or not stated


@pytest.mark.parametrize(("other", "settings", "stays_on", "stated"), [
    ("grad_norm", {"dropout": 0.6, "num_classes": 6, "task": "classification"}, False, True),
    ("acc", {"drop_rate": 0.5, "num_classes": 6, "task": "image_classification"}, False, True),
    ("gnorm", {"dropout": 0.4, "vocab_size": 60, "task": "pretraining"}, False, True),
    ("grad_norm", {"dropout": 0.6, "num_classes": 6, "task": "classification"}, True, False),
    ("grad_norm", {"dropout": 0.1, "num_classes": 6, "task": "classification"}, False, False),
    ("acc", {"dropout": 0.6, "num_classes": 6, "task": "classification", "lr": "cut"}, False, False),
])  # fmt: skip
def test_a_loss_that_dropout_no_longer_raises_from_the_first_evaluation_on_is_of_a_model_left_in_its_mode(
    other: str, settings: dict[str, Any], stays_on: bool, stated: bool
) -> None:
    evaluated, is_harder = 0.4 + 1.4 * np.exp(-STEPS / 30), (STEPS <= 10) | stays_on
    norm = rough(np.where(is_harder, 1.8, 1.0), 0.05, 1)
    right = rough(0.85 - 0.45 * np.exp(-STEPS / 30) - np.where(is_harder, 0.2, 0), 0.02, 1)
    curves = {"loss": rough(evaluated * np.where(is_harder, 1.3, 0.85), 0.02), other: right if other == "acc" else norm}
    if settings.get("lr") == "cut":
        curves["learning_rate"] = np.where(STEPS <= 10, 1e-2, 1e-3)
    answer = diagnosed(curves, settings=settings, evaluated={"val_loss": evaluated[9::10]})
    assert ("easier_after_evaluation" in facts(answer)) is stated
    assert leading(answer) == "eval_mode_bug" or not stated


@pytest.mark.parametrize(("hidden", "classes", "left", "stated"), [
    ([64, 1, 64], 12, 1.25, True), (1, 5, 0.9, True), ([128, 8, 128], 100, 2.8, True),
    ([64, 16, 64], 12, 1.25, False), ([64, 1, 64], 12, 0.1, False),
], ids=["between", "alone", "many classes", "wide", "enough"])  # fmt: skip
def test_a_layer_of_few_units_holds_back_many_classes(
    hidden: int | list[int], classes: int, left: float, stated: bool
) -> None:
    loss = left + (math.log(classes) - left) * np.exp(-STEPS / 12)
    accuracy = 1 / classes + (1 - left / math.log(classes) - 1 / classes) * (1 - np.exp(-STEPS / 12))
    settings = {"hidden": hidden, "num_classes": classes, "task": "image_classification", "model": "mlp"}
    curves = {
        "loss": rough(loss, 0.04),
        "acc": np.clip(rough(accuracy, 0.05, 1), 0, 1),
        "grad_norm": rough(1.2, 0.2, 2),
    }
    answer = diagnosed(curves, settings=settings, evaluated={"val_loss": 1.05 * loss[9::10]})
    assert ("narrow_layer" in facts(answer)) is stated
    assert (leading(answer) == "too_little_capacity") is stated


@pytest.mark.parametrize(("width", "vocabulary", "left", "stated"), [
    ({"n_embd": 4}, 96, 2.9, True), ({"d_model": 2}, 1024, 5.0, True), ({"nhid": 6}, 60, 2.4, True),
    ({"n_embd": 64}, 96, 2.9, False), ({"d_model": 32}, 50257, 5.0, False), ({"dim": 4}, 96, 0.5, False),
])  # fmt: skip
def test_a_model_of_tokens_with_a_few_units_is_too_small_for_its_vocabulary(
    width: dict[str, int], vocabulary: int, left: float, stated: bool
) -> None:
    loss = left + (math.log(vocabulary) - left) * np.exp(-STEPS / 10)
    settings = {**width, "vocab_size": vocabulary, "n_layer": 1, "task": "language_modelling", "learning_rate": 4e-3}
    curves = {"train_loss": rough(loss, 0.02), "grad_norm": rough(0.5, 0.2, 1)}
    answer = diagnosed(curves, settings=settings, evaluated={"val_loss": 1.03 * loss[9::10]})
    assert ("narrow_layer" in facts(answer)) is stated
    assert (leading(answer) == "too_little_capacity") is stated


def paid(success: Sequence[float], reward: Curve) -> RunDiagnosis:
    return diagnosed(
        {
            "loss": 0.01 * NOISE[0], "reward": reward, "reward_std": np.full(len(STEPS), 0.2), "kl": 0.005 * STEPS,
            "entropy": rough(1.0, 0.05, 1), "completion_length": rough(40, 0.05, 2), "learning_rate": STEPS * 0 + 1e-5,
        },
        evaluated={"eval_success_rate": success},
        settings={"num_generations": 8},
    )  # fmt: skip


EARNS_ALL = np.minimum(1, 1 - 0.8 * np.exp(-STEPS / 12) + 0.004 * NOISE[3])


def test_a_reward_that_comes_to_nearly_all_there_is_while_few_answers_are_right_is_hacked() -> None:
    answer = paid([0.08, 0.06, 0.1, 0.07, 0.12, 0.1, 0.08, 0.11], EARNS_ALL)
    assert {"success_stays_low", "as_long_as_before"} <= facts(answer)
    assert leading(answer) == "reward_hacking"


@pytest.mark.parametrize(("success", "reward"), [
    ([0.05, 0.06, 0.1, 0.13, 0.17, 0.2, 0.23, 0.25], EARNS_ALL),  # of a harder set, where it rises as well
    ([0.08, 0.06, 0.1, 0.07, 0.12, 0.1, 0.08, 0.11], 0.6 * EARNS_ALL),
    ([0.4, 0.42, 0.39, 0.41, 0.4, 0.43, 0.42, 0.41], EARNS_ALL),
], ids=["harder rows", "not all is earned", "many are right"])  # fmt: skip
def test_success_that_rises_or_a_reward_that_is_not_all_there_is_says_nothing_of_it(
    success: Sequence[float], reward: Curve
) -> None:
    assert "success_stays_low" not in facts(paid(success, reward))


@pytest.mark.parametrize(("name", "gold", "stated"), [
    ("eval_gold_accuracy", 0.14, True), ("eval_panel_accuracy", 0.2, True), ("eval_gold_accuracy", 0.5, False),
    ("gold/accuracy", 0.06, True), ("oracle_accuracy", 0.2, True), ("human/pair_acc", 0.3, True),
    ("gold/accuracy", 0.6, False), ("hard/accuracy", 0.2, False),
    ("eval_hard_accuracy", 0.2, False),  # a set of hard pairs, which nobody is said to have judged
    ("eval_gen_exact", 0.01, False), ("eval_exact_match_accuracy", 0.05, False),  # of answers that are written
])  # fmt: skip
def test_pairs_that_people_judged_are_the_other_way_round_where_the_split_ones_agree_with_training(
    name: str, gold: float, stated: bool
) -> None:
    answer = diagnosed(
        {
            "loss": 0.25 + 0.45 * np.exp(-STEPS / 10) + 0.01 * NOISE[0], "learning_rate": np.full(len(STEPS), 1e-6),
            "accuracy": 0.9 - 0.4 * np.exp(-STEPS / 10) + 0.02 * NOISE[1], "margin": 3 - 3 * np.exp(-STEPS / 10),
        },
        evaluated={"eval_accuracy": 0.88 + 0.01 * NOISE[2], "eval_loss": 0.28 + 0.005 * NOISE[3],
                   name: gold + 0.01 * NOISE[4]},
        settings={"task": "reward model"},
    )  # fmt: skip
    assert ("source_contradicts" in facts(answer)) is stated
    assert (leading(answer) == "preference_labels_swapped") is stated


def deep(first_norm: float, settings: Mapping[str, Any], scale: float = 1.0) -> RunDiagnosis:
    """Diagnose a loss that leaps at the second step, after a gradient norm at the first one."""
    loss = scale * np.concatenate([[2.4], 900 * np.exp(-STEPS[1:] / 8) + 2.5]) * np.exp(0.1 * NOISE[0])
    norm = np.concatenate([[first_norm], 30 * loss[1:] / scale])
    return diagnosed({"train_loss": loss, "grad_norm": norm, "lr": np.minimum(1.0, STEPS / 10) * 1e-4},
                     settings={"num_classes": 10, "optimizer": "sgd", "depth": 24} | dict(settings))  # fmt: skip


def test_a_gradient_that_is_huge_before_the_first_update_explodes_whatever_the_learning_rate() -> None:
    answer = deep(25_000, {"max_grad_norm": 0})
    assert "norm_huge_at_start" in facts(answer)
    assert leading(answer) == "exploding_gradients"


@pytest.mark.parametrize(("first_norm", "settings", "scale"), [
    (4.0, {}, 1.0), (25_000, {"fp16": True}, 1.0), (25_000, {}, 1000.0),
], ids=["ordinary", "multiplied by a loss scale", "as large a loss"])  # fmt: skip
def test_a_gradient_that_is_ordinary_at_first_or_scaled_does_not(
    first_norm: float, settings: Mapping[str, Any], scale: float
) -> None:
    answer = deep(first_norm, settings, scale)
    assert "norm_huge_at_start" not in facts(answer)
    assert leading(answer) != "exploding_gradients"


@pytest.mark.parametrize("name", ["gnorm.fc{0}", "grad_norm/block_{0}", "layers.{0}.grad_norm"])
@pytest.mark.parametrize(("norms", "end", "stated"), [
    ((600, 38, 3.6, 1.4), 2.3, True), ((150, 60, 21, 9, 11, 4, 1.5, 1.0), 1.4, True), ((250, 16, 1.1), 2.2, True),
    ((250, 16, 1.1), 0.3, False), ((600, 1.9, 1.6, 1.4), 2.3, False), ((9, 4, 2, 1.4), 2.3, False),
    ((600, 1.4, 38, 3.6), 2.3, False), ((1.4, 3.6, 38, 600), 2.3, False),
])  # fmt: skip
def test_gradients_that_grow_from_layer_to_layer_back_to_the_input_explode(
    name: str, norms: Sequence[float], end: float, stated: bool
) -> None:
    layers = {name.format(3 * at): rough(level / (1 + STEPS / 20), 0.05, at % 8) for at, level in enumerate(norms)}
    loss = rough(end + (2.4 - end) * np.exp(-STEPS / 30), 0.02)
    answer = diagnosed({"loss": loss, **layers}, settings={"num_classes": 10, "grad_clip": 0})
    assert ("norm_grows_backwards" in facts(answer)) is stated
    assert (leading(answer) == "exploding_gradients") is stated


def pictures(mean: float, std: float, name: str = "pixel") -> RunDiagnosis:
    learnt = 1 - np.exp(-STEPS / 12)
    return diagnosed(
        {
            "train_loss": rough(2.3 - 2.1 * learnt, 0.05), "train_acc": 0.1 + 0.88 * learnt + 0.005 * NOISE[1],
            f"train_{name}_mean": 0.01 + 0.01 * NOISE[2], f"train_{name}_std": rough(1.0, 0.01, 3),
        },
        evaluated={
            "val_loss": 2.4 + 0.02 * STEPS[:8] + 0.005 * NOISE[4][:8], "val_acc": 0.11 + 0.005 * NOISE[5],
            f"val_{name}_mean": np.full(8, mean), f"val_{name}_std": np.full(8, std),
        },
        settings={"num_classes": 10},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["pixel", "input", "x", "pix", "img", "in", "wave"])
def test_inputs_of_evaluation_on_another_scale_are_prepared_in_another_way(name: str) -> None:
    answer = pictures(0.47, 0.25, name)
    assert "inputs_differ" in facts(answer)
    assert leading(answer) == "train_eval_mismatch"


@pytest.mark.parametrize(("mean", "std", "name"), [(0.03, 1.02, "pixel"), (0.02, 0.8, "input"), (0.47, 0.25, "logit")])
def test_inputs_as_in_training_or_augmented_or_outputs_are_not(mean: float, std: float, name: str) -> None:
    assert "inputs_differ" not in facts(pictures(mean, std, name))


@pytest.mark.parametrize(("name", "train", "other", "stated"), [
    ("zero_frac", 0.0, 0.5, True), ("nan_ratio", 0.0, 0.3, True), ("input_mean", 0.0, 0.48, True),
    ("zero_frac", 0.2, 0.0, False),  # what masks and dropout of training make
    ("act_zero_frac", 0.1, 0.5, False), ("input_mean_len", 512.0, 300.0, False), ("input_mean", 0.0, 0.01, False),
])  # fmt: skip
def test_a_statistic_of_inputs_that_is_one_number_in_training_and_another_in_evaluation_is_stated(
    name: str, train: float, other: float, stated: bool
) -> None:
    learnt = 1 - np.exp(-STEPS / 12)
    answer = diagnosed(
        {"train_loss": rough(2.1 - 1.9 * learnt, 0.05), "train_acc": 0.1 + 0.88 * learnt,
         f"train_{name}": np.full(len(STEPS), train)},
        evaluated={"val_loss": 2.4 + 0.07 * STEPS[:8] + 0.01 * NOISE[4][:8], "val_acc": 0.06 + 0.005 * NOISE[5],
                   f"val_{name}": np.full(8, other)},
        settings={"num_classes": 8},
    )  # fmt: skip
    assert ("inputs_differ" in facts(answer)) is stated
    assert (leading(answer) == "train_eval_mismatch") or not stated


@pytest.mark.parametrize(("first", "last", "other", "stated"), [
    (0.42, 0.03, 0.94, True), (0.5, 0.1, 0.8, True), (0.3, 0.12, 0.7, True),
    (0.3, 0.19, 0.84, True),  # as often right as the others are wrong
    (0.45, 0.25, 0.94, False),  # hard pairs
    (0.42, 0.05, 0.5, False),  # no set is right
])  # fmt: skip
def test_pairs_of_one_source_that_sink_as_another_is_learnt_are_the_other_way_round(
    first: float, last: float, other: float, stated: bool
) -> None:
    fading = np.exp(-np.arange(8) / 2)
    sunk, learnt = last + (first - last) * fading, other + (0.55 - other) * fading
    answer = diagnosed(
        {"loss": 0.25 + 0.45 * np.exp(-STEPS / 20) + 0.01 * NOISE[0], "learning_rate": np.full(len(STEPS), 1e-3),
         "accuracy": 0.92 - 0.42 * np.exp(-STEPS / 20) + 0.01 * NOISE[1], "margin": 2 - 2 * np.exp(-STEPS / 20)},
        evaluated={"eval_accuracy": (sunk + learnt) / 2, "eval_acc_forum": learnt, "eval_acc_crowd": sunk,
                   "eval_loss": 1.4 - 0.75 * fading},
        settings={"task": "reward model"},
    )  # fmt: skip
    assert ("source_contradicts" in facts(answer)) is stated
    assert (leading(answer) == "preference_labels_swapped") is stated


def kept_up(settings: Mapping[str, Any], ahead: float) -> RunDiagnosis:
    """Diagnose training that rests far up while evaluation is ahead by a share of the answers."""
    learnt = 1 - np.exp(-STEPS / 9)
    return diagnosed(
        {"train_loss": rough(1.61 - 0.48 * learnt, 0.02), "train_acc": 0.25 + 0.3 * learnt + 0.01 * NOISE[1],
         "lr": np.full(len(STEPS), 1e-3)},
        evaluated={"val_loss": 1.13 - 1.2 * ahead + 0.3 * np.exp(-np.arange(8)) + 0.01 * NOISE[2][:8],
                   "val_acc": 0.55 + ahead - 0.15 * np.exp(-np.arange(8)) + 0.005 * NOISE[3][:8]},
        settings={"num_classes": 5, "optimizer": "adamw"} | dict(settings),
    )  # fmt: skip


@pytest.mark.parametrize(("settings", "ahead"), [
    ({"dropout": 0.6}, 0.22), ({"dropout": 0.5}, 0.15), ({"dropout": 0.1, "train_augmentation": "randaug"}, 0.18),
])  # fmt: skip
def test_training_that_settings_make_harder_rests_above_evaluation_and_is_healthy(
    settings: Mapping[str, Any], ahead: float
) -> None:
    answer = kept_up(settings, ahead)
    assert "disturbed_training_behind" in facts(answer)
    assert leading(answer) == "healthy"


@pytest.mark.parametrize(("settings", "ahead"), [({"dropout": 0.0}, 0.22), ({"dropout": 0.6}, 0.0)])
def test_training_that_rests_far_up_with_no_such_reason_is_not(settings: Mapping[str, Any], ahead: float) -> None:
    answer = kept_up(settings, ahead)
    assert "disturbed_training_behind" not in facts(answer)
    assert leading(answer) != "healthy"


def in_turn(copies: int, settings: Mapping[str, Any], share: float = 0.12) -> RunDiagnosis:
    """Diagnose batches that come so many times in turn, each time with a loss lower by a share."""
    steps = np.arange(1.0, 241.0)
    rng = np.random.default_rng(5)
    level = (0.5 + 1.6 * np.exp(-steps / 150)) * np.exp(np.repeat(rng.normal(0, 0.1, 240 // copies), copies))
    loss = level * (1 - share) ** (np.arange(240) % copies) * np.exp(rng.normal(0, 0.02, 240))
    records = [{"step": step, "loss": value} for step, value in zip(steps.tolist(), loss.tolist(), strict=True)]
    return diagnose_run(records, settings={"num_classes": 8, "batch_size": 16} | dict(settings))


@pytest.mark.parametrize(("copies", "settings"), [
    (4, {"num_workers": 4}), (2, {"dataloader_num_workers": 2}), (8, {"world_size": 8}),
])  # fmt: skip
def test_batches_that_come_as_often_in_turn_as_processes_read_them_are_duplicates(
    copies: int, settings: Mapping[str, Any]
) -> None:
    answer = in_turn(copies, settings)
    assert "batch_comes_again" in facts(answer)
    assert leading(answer) == "duplicated_data"


@pytest.mark.parametrize(("copies", "settings", "share"), [(4, {"num_workers": 3}, 0.12), (4, {"num_workers": 4}, 0.0)])
def test_batches_in_groups_of_another_size_or_of_one_level_are_not(
    copies: int, settings: Mapping[str, Any], share: float
) -> None:
    assert "batch_comes_again" not in facts(in_turn(copies, settings, share))


@pytest.mark.parametrize(("name", "stated"), [("horizon", True), ("seq_len", True), ("queue", False)])
def test_jumps_at_intervals_where_a_stage_begins_each_time_are_no_bad_data(name: str, stated: bool) -> None:
    stage = (np.arange(80) // 20).astype(float)
    loss = rough(0.1 + 0.3 * np.exp(-(np.arange(80) % 20) / 2), 0.05)
    loss[66:] = rough(2.0, 0.1)[66:]  # and then more than the stage explains
    answer = diagnosed({"loss": loss, "lr": np.full(80, 4e-3), name: 4 * 2**stage})
    assert ("jumps_at_stages" in facts(answer)) is stated
    assert leading(answer) != "bad_data_pocket" or not stated


def repeated(rows: int, fall: float, turns_at: int) -> RunDiagnosis:
    """Diagnose batches of 16 out of some rows, whose evaluation loss turns at one of its times."""
    turn = np.abs(np.arange(1, 9) - turns_at)
    return diagnosed(
        {"loss": rough(0.02 + 3.3 * np.exp(-STEPS / fall), 0.03), "learning_rate": np.full(len(STEPS), 1e-3)},
        evaluated={"eval_loss": 2.1 + 0.3 * turn},
        settings={"train_rows": rows, "per_device_train_batch_size": 16, "vocab_size": 28},
    )


def test_rows_that_are_known_by_heart_after_two_passes_come_several_times_in_each() -> None:
    answer = repeated(320, 8, 1)
    assert "by_heart_in_few_passes" in facts(answer)
    assert leading(answer) == "duplicated_data"


def test_an_evaluation_that_turns_after_many_passes_overfits() -> None:
    answer = repeated(32, 30, 3)
    assert "turns_after_many_passes" in facts(answer)
    assert leading(answer) == "overfitting"


@pytest.mark.parametrize(("rows", "fall", "turns_at"), [(100, 8, 1), (320, 40, 1), (640, 8, 8)])
def test_rows_that_come_again_by_plan_or_an_evaluation_that_falls_say_nothing_of_either(
    rows: int, fall: float, turns_at: int
) -> None:
    assert {"by_heart_in_few_passes", "turns_after_many_passes"}.isdisjoint(facts(repeated(rows, fall, turns_at)))


def shares_of_batches(accuracy: Curve, name: str = "train_acc", rows: int = 64) -> RunDiagnosis:
    return diagnosed(
        {"train_loss": rough(2.0 - 0.005 * STEPS, 0.05), name: np.clip(accuracy, 0, 1).tolist()},
        evaluated={"val_loss": 1.95 - 0.04 * STEPS[:8], "val_acc": 0.2 + 0.04 * STEPS[:8]},
        settings={"batch_size": rows, "num_classes": 8},
    )


IN_TURN = np.where(STEPS % 5 == 0, 0.9, 0.05) + 0.01 * np.abs(NOISE[2])


def test_batches_that_are_nearly_all_right_or_nearly_all_wrong_hold_rows_that_are_alike() -> None:
    answer = shares_of_batches(IN_TURN)
    assert "rows_of_a_batch_alike" in facts(answer)
    assert leading(answer) == "unshuffled_data"


@pytest.mark.parametrize(("accuracy", "name", "rows"), [
    (0.2 + 0.004 * STEPS + 0.055 * NOISE[2], "train_acc", 64),  # as chance has it
    (np.where(STEPS < 40, 0.1, 0.9), "train_acc", 64),
    (IN_TURN, "train_contrast_acc", 64), (IN_TURN, "train_acc", 4),
], ids=["by chance", "learnt at once", "answers of a batch depend on one another", "few rows"])  # fmt: skip
def test_shares_that_scatter_by_chance_or_rise_at_once_are_of_any_rows(accuracy: Curve, name: str, rows: int) -> None:
    assert "rows_of_a_batch_alike" not in facts(shares_of_batches(accuracy, name, rows))


SCORE: Curve = np.linspace(0.31, 0.83, 8)


@pytest.mark.parametrize(("evaluated", "stated"), [
    ({"val_acc": np.ones(8)}, "perfect_at_once"), ({"eval/hits@10": np.full(8, 100.0)}, "perfect_at_once"),
    ({"val_recall@20": np.ones(8), "val_mrr": SCORE / 2}, "perfect_at_once"), ({"val_recall_0": np.ones(8)}, ""),
    ({"val_acc": np.r_[0.9, np.ones(7)]}, ""), ({"eval/hits@100": np.ones(8)}, ""),
    ({"val_auc": SCORE, "val_acc": SCORE}, "scores_equal"), ({"val_rmse": SCORE, "val_mae": SCORE}, "scores_equal"),
    ({"hits@1": SCORE, "hits@10": SCORE}, "scores_equal"), ({"val_precision": SCORE, "val_recall": SCORE}, ""),
    ({"val_auc": SCORE, "val_acc": 0.9 * SCORE}, ""), ({"val_auc": np.full(8, 0.5), "val_acc": np.full(8, 0.5)}, ""),
    ({"hits@1": SCORE / 2, "hits@10": SCORE}, ""),
])  # fmt: skip
def test_scores_that_no_model_has_are_those_of_a_wrong_metric(evaluated: dict[str, Curve], stated: str) -> None:
    loss = rough(1.1 + 3.7 * np.exp(-STEPS / 25), 0.01)
    answer = diagnosed({"loss": loss}, evaluated={"val_loss": LEARNS, **evaluated}, settings={"batch_size": 32})
    assert facts(answer) & {"perfect_at_once", "scores_equal"} == ({stated} if stated else set())
    assert not stated or leading(answer) == "metric_bug"


@pytest.mark.parametrize(("names", "settings", "shares", "stated"), [
    (("val_cover_p10", "val_cover_p90"), {"quantiles": "0.1,0.5,0.9"}, (0.88, 0.11), True),
    (("val_share_below",), {"quantile": 0.9}, (0.12,), True), (("eval/coverage_q0.05",), {}, (0.96,), True),
    (("val_cover_p10", "val_cover_p90"), {}, (0.12, 0.86), False),
    (("val_share_below",), {"quantile": 0.9}, (0.7,), False), (("coverage_90",), {}, (0.12,), False),
    (("val_share_below",), {"quantile": 0.5}, (0.3,), False),
])  # fmt: skip
def test_shares_below_a_prediction_that_mirror_its_quantile_are_of_a_loss_with_the_wrong_sign(
    names: tuple[str, ...], settings: dict[str, Any], shares: tuple[float, ...], stated: bool
) -> None:
    evaluated = {name: share + 0.01 * NOISE[1][:8] for name, share in zip(names, shares, strict=True)}
    loss = rough(0.2 + 0.4 * np.exp(-STEPS / 15), 0.04)
    answer = diagnosed({"loss": loss}, evaluated={"val_loss": 0.22 + 0.03 / np.arange(1, 9), **evaluated},
                       settings=settings | {"optimizer": "adamw", "learning_rate": 1e-3})  # fmt: skip
    assert ("quantiles_mirrored" in facts(answer)) is stated
    assert (leading(answer) == "wrong_loss") is stated


@pytest.mark.parametrize(("entropy", "settings", "stated", "cause"), [
    (0.004 + 3.0 * np.exp(-STEPS / 6), {"target_entropy": -1.2}, "entropy_target_below_any", "entropy_collapse"),
    (0.02 + 1.3 * np.exp(-STEPS / 9), {"sac/entropy_target": -4.0}, "entropy_target_below_any", "entropy_collapse"),
    (4.0 - STEPS / 10, {"target_entropy": -4.0}, "", "healthy"), (4.0 - STEPS / 21, {"target_entropy": -4.0}, "", ""),
    (1.2 + STEPS / 1e3, {"target_entropy": -1.2}, "", ""),
    (0.004 + 3.0 * np.exp(-STEPS / 6), {"target_entropy": 0.6}, "", ""),
    (2.6 - STEPS / 1e3, {"n_actions": 4, "action_space": "discrete"}, "entropy_above_all_alike", "metric_bug"),
    (1.3 - STEPS / 1e3, {"n_actions": 4, "action_space": "discrete"}, "", "healthy"),
    (2.6 - STEPS / 1e3, {"n_actions": 4, "action_space": "box"}, "", "healthy"),
    (2.6 - STEPS / 1e3, {"n_actions": 4, "action_space": "MultiDiscrete"}, "", "healthy"),
])  # fmt: skip
def test_an_entropy_has_the_bounds_of_a_choice_among_actions(
    entropy: Curve, settings: dict[str, Any], stated: str, cause: str
) -> None:
    reward = rough(0.2 + 0.5 * (1 - np.exp(-STEPS / 9)), 0.02)
    curves = {"rollout/ep_rew_mean": reward, "train/entropy": entropy, "train/actor_loss": rough(0.4, 0.2, 1)}
    answer = diagnosed(curves, settings=settings | {"algo": "sac", "lr": 3e-4})
    assert facts(answer) & {"entropy_target_below_any", "entropy_above_all_alike"} == ({stated} if stated else set())
    assert not cause or leading(answer) == cause


def scored_twice(few: str, many: str, low: Sequence[float], high: Sequence[float]) -> RunDiagnosis:
    """Diagnose a classifier that learns, with two scores of each evaluation."""
    return diagnosed(
        {"loss": rough(FALLS - 1.4, 0.03), "learning_rate": np.full(len(STEPS), 1e-3)},
        evaluated={"val_loss": 0.3 + 2 * np.exp(-np.arange(8) / 2), few: low, many: high},
    )


LEARNT_SHARE = [0.55, 0.7, 0.8, 0.85, 0.87, 0.88, 0.88, 0.89]


@pytest.mark.parametrize(("few", "many", "above"), [
    ("val/acc@1", "val/acc@5", True), ("val_top1_acc", "val_top5_acc", True), ("val/acc1", "val/acc5", True),
    ("val/recall@1", "val/recall@10", True), ("val/hits@3", "val/hits@10", True), ("val/pass@1", "val/pass@8", True),
    ("val_top5_error", "val_top1_error", True), ("val_mae", "val_rmse", True), ("val/ndcg@10", "val/hit_rate@10", True),
    ("val/recall_0", "val/recall_1", False), ("val_acc", "val_acc_5", False),  # of classes
    ("val/precision@1", "val/precision@5", False), ("val/hits@10", "val/ndcg@5", False), ("val_mae", "val_mse", False),
    ("val_mrr", "val_hit_rate", False), ("val_ndcg", "val_hit_rate", False),  # of all ranks, next to hits at the first
])  # fmt: skip
def test_fewer_right_answers_among_more_are_the_metric_and_the_right_order_is_sound(
    few: str, many: str, above: bool
) -> None:
    shares = LEARNT_SHARE[::-1] if few in ("val_top5_error", "val_mae") else LEARNT_SHARE  # errors fall
    answer = scored_twice(few, many, shares, [0.7 * share for share in shares])
    assert ("scores_out_of_order" in facts(answer)) is above
    assert (leading(answer) == "metric_bug") is above
    answer = scored_twice(few, many, shares, [min(1, share + 0.1) for share in shares])
    assert "scores_out_of_order" not in facts(answer)
    assert leading(answer) == "healthy"


def longer(parts: Mapping[str, float], settings: Mapping[str, Any], whole: float = 2.3) -> RunDiagnosis:
    """Diagnose a language model whose parts of evaluation go from one start to their own ends."""
    way = 1 - np.exp(-np.arange(8) / 2)
    return diagnosed(
        {"loss": rough(0.6 + 2.4 * np.exp(-STEPS / 15), 0.02), "learning_rate": np.full(len(STEPS), 3e-3)},
        evaluated={name: 2.0 + (end - 2.0) * way for name, end in {"val_loss": whole, **parts}.items()},
        settings={"vocab_size": 28, "arch": "transformer", **settings},
    )


@pytest.mark.parametrize(("parts", "settings"), [
    ({"val_nll_pos0_31": 0.62, "val_nll_pos32_63": 3.0, "val_nll_pos64_95": 3.1}, {"seq_len": 32}),
    ({"val/loss_len64": 0.6, "val/loss_len256": 2.9}, {"max_length": 64}),
    ({"val/loss_ctx_1k": 0.65, "val/loss_ctx_4k": 2.6}, {"block_size": 1024}),
    ({}, {"seq_len": 64, "eval_seq_len": 256}), ({}, {"block_size": 64, "val_block_size": 192}),
])  # fmt: skip
def test_rows_of_evaluation_that_go_on_beyond_those_of_training_are_no_overfitting(
    parts: Mapping[str, float], settings: Mapping[str, Any]
) -> None:
    answer = longer(parts, settings)
    assert not {"worse_beyond_length", "evaluated_on_longer"}.isdisjoint(facts(answer))
    assert leading(answer) == "train_eval_mismatch"


@pytest.mark.parametrize(("parts", "settings", "whole", "cause"), [
    ({"val_nll_pos0_31": 2.5, "val_nll_pos32_63": 2.3}, {"seq_len": 64}, 2.4, "overfitting"),
    ({"val_nll_pos0_31": 0.7, "val_nll_pos32_63": 0.62}, {"seq_len": 32}, 0.65, "healthy"),
    ({}, {"seq_len": 64, "eval_max_new_tokens": 256}, 2.4, "overfitting"),
    ({}, {"seq_len": 64, "eval_seq_len": 256}, 0.65, "healthy"),
    ({}, {"seq_len": 64, "eval_seq_len": 64}, 2.4, "overfitting"),
])  # fmt: skip
def test_rows_of_one_length_or_as_good_beyond_it_say_nothing_of_the_length(
    parts: Mapping[str, float], settings: Mapping[str, Any], whole: float, cause: str
) -> None:
    answer = longer(parts, settings, whole)
    assert {"worse_beyond_length", "evaluated_on_longer"}.isdisjoint(facts(answer))
    assert leading(answer) == cause


@pytest.mark.parametrize(("share", "cause"), [(1.0, "dead_units"), (0.5, "params_not_training")])
@pytest.mark.parametrize("name", ["act_zero/out", "relu_zeros/head", "train/unit_zero/fc3"])
def test_a_gradient_that_ends_with_the_units_of_a_layer_is_of_no_frozen_weights(
    name: str, share: float, cause: str
) -> None:
    at_first = STEPS < 3
    answer = diagnosed(
        {"loss": rough(np.where(at_first, 1.9, 1.0), 0.2), "grad_norm": np.where(at_first, 14.0, 0.0),
         name: np.where(at_first, min(share, 0.7), share), "learning_rate": np.full(len(STEPS), 0.01)},
        evaluated={"val_loss": [0.98] * 8},
        settings={"optimizer": "sgd"},
    )  # fmt: skip
    assert (cause in [hypothesis.cause for hypothesis in answer.hypotheses[:3]]) is True
    assert (leading(answer) == "params_not_training") is (cause == "params_not_training")


AGENT: dict[str, Any] = {"algo": "DQN", "env": "Corridor-v0", "gamma": 0.99, "buffer_size": 20000, "seed": 1}


@pytest.mark.parametrize(("name", "ends_at", "reward", "stated"), [
    ("rollout/exploration_rate", 3, np.minimum(0.1, 0.075 + 0.001 * STEPS), True),
    ("epsilon", 4, 12 + np.minimum(1.5, STEPS / 10), True),
    ("exploration_rate", 2, np.full(len(STEPS), -1.0), True),
    ("rollout/exploration_rate", 3, np.minimum(0.95, 0.075 + 0.03 * STEPS), False),  # it learns without them
    ("epsilon", 40, np.minimum(0.1, 0.075 + 0.001 * STEPS), False),  # for half of the run
    ("exploration_rate", 3, 12 + 3 * np.sin(STEPS / 4), False),  # it does not do the same always
])  # fmt: skip
def test_random_actions_that_end_at_once_leave_an_agent_with_what_they_met(
    name: str, ends_at: int, reward: Curve, stated: bool
) -> None:
    share = np.maximum(0.02, 1 - STEPS / ends_at)
    curves = {name: share, "rollout/ep_rew_mean": reward, "rollout/ep_len_mean": rough(8, 0.1), "loss": 1e-3 / STEPS}
    answer = diagnosed(curves, settings=AGENT)
    shown = {finding.symptom for finding in answer.findings if finding.state is State.PRESENT}
    assert (not {"chance_ends_at_once"}.isdisjoint(facts(answer) | shown)) is stated
    assert leading(answer) == "exploration_failure" or not stated


@pytest.mark.parametrize(("settings", "stated"), [
    ({"completion_only_loss": False, "dataset": {"columns": ["prompt", "completion"]}}, True),
    ({"completion_only_loss": "False", "column_names": ["id", "prompt", "response"]}, True),
    ({"train_on_inputs": True}, True),
    ({"completion_only_loss": True, "dataset": {"columns": ["prompt", "completion"]}}, False),
    ({"completion_only_loss": False, "dataset": {"columns": ["text"]}}, False),
    ({"completion_only_loss": None, "dataset": {"columns": ["prompt", "completion"]}}, False),
])  # fmt: skip
def test_prompts_that_count_by_a_setting_that_is_not_the_default_are_stated(
    settings: dict[str, Any], stated: bool
) -> None:
    curves = {
        "loss": rough(1.05 + 3 * np.exp(-STEPS / 6), 0.03), "mean_token_accuracy": 0.79 - 0.5 * np.exp(-STEPS / 6),
        "grad_norm": rough(0.8 + 2 * np.exp(-STEPS / 6), 0.1, 1), "learning_rate": 1e-4 * (1 - STEPS / 81),
    }  # fmt: skip
    answer = diagnosed(curves, settings={"task": "sft", "framework": "trl SFTTrainer", **settings})
    assert ("prompts_count_by_setting" in facts(answer)) is stated
    assert leading(answer) == "prompt_not_masked" or not stated


def rewarded(lengths: Curve, reward: Curve, **more: Curve) -> RunDiagnosis:
    curves = {
        "loss": 0.01 * NOISE[0], "reward": reward, "reward_std": 0.3 * np.exp(-STEPS / 30),
        "learning_rate": 0 * STEPS + 1e-5, "entropy": rough(1.5, 0.05, 1),
        "completions/mean_length": lengths, "completions/clipped_ratio": 0 * STEPS,
    }  # fmt: skip
    return diagnosed(curves | more, settings={"num_generations": 8, "max_completion_length": 64})


@pytest.mark.parametrize(("first", "last", "stated"), [
    (22.9, 1.0, True), (60.0, 1.02, True), (9.0, 1.0, True), (2.5, 1.0, False), (22.9, 5.0, False), (8.0, 2.0, False),
])  # fmt: skip
def test_completions_that_come_down_to_their_end_alone_are_paid_for_being_short(
    first: float, last: float, stated: bool
) -> None:
    answer = rewarded(last + (first - last) * np.exp(-STEPS / 6), EARNS_ALL)
    assert ("nothing_written" in facts(answer)) is stated
    assert leading(answer) == "length_exploitation" or not stated


@pytest.mark.parametrize(("monitored", "weight", "stated"), [
    (rough(0.07, 0.2, 4), 0.0, True), (0.2 * np.exp(-STEPS / 8), 0.0, True),
    (np.minimum(1, 1.02 - 0.9 * np.exp(-STEPS / 12)), 0.0, False), (rough(0.07, 0.2, 4), 0.2, False),
], ids=["low", "falls", "rises", "paid"])  # fmt: skip
def test_a_component_of_no_weight_that_stays_low_tells_that_what_is_paid_is_not_the_task(
    monitored: Curve, weight: float, stated: bool
) -> None:
    parts = {"rewards/helpful_reward/mean": EARNS_ALL, "rewards/accuracy_reward/mean": monitored}
    answer = rewarded(rough(22, 0.02, 3), EARNS_ALL + weight * monitored, **parts)
    assert (not {"success_stays_low", "success_falls_with_reward"}.isdisjoint(facts(answer))) is stated
    assert (leading(answer) == "reward_hacking") is stated


@pytest.mark.parametrize(("cut", "reward", "fact"), [
    (0.75, 0.7, "cut_ones_are_paid"), (0.5, 0.62, "cut_ones_are_paid"), (0.9, 0.3, "cut_ones_are_paid"),
    (0.75, 0.1, "cut_at_limit"), (0.5, 0.35, "cut_at_limit"), (1.0, 0.7, "none_ends"),
])  # fmt: skip
def test_a_reward_beyond_what_those_that_end_can_earn_tells_that_cut_completions_are_paid(
    cut: float, reward: float, fact: str
) -> None:
    shares = np.minimum(1, rough(cut, 0.02, 5)) if cut < 1 else 0 * STEPS + 1
    answer = rewarded(rough(50, 0.03, 3), rough(reward, 0.04, 6), **{"completions/clipped_ratio": shares})
    assert fact in facts(answer)
    assert {"cut_ones_are_paid", "cut_at_limit", "none_ends"} & facts(answer) == {fact}


@pytest.mark.parametrize(("settings", "fall", "stated"), [
    ({"precision": "bf16"}, 0.01, True), ({"precision": "bfloat16"}, 0.02, True),
    ({"precision": "fp16", "lr": 2e-4}, 0.002, True),
    ({"precision": "fp32"}, 0.02, False), ({"precision": "bf16-mixed"}, 0.02, False),
    ({"precision": "bf16", "momentum": 0.9}, 0.02, False), ({"precision": "bf16"}, 0.5, False),
    ({"precision": "bf16", "optim": "adamw"}, 0.02, False), ({"bf16": True}, 0.02, False),
])  # fmt: skip
def test_steps_of_plain_descent_below_the_spacing_of_the_format_are_rounded_away(
    settings: dict[str, Any], fall: float, stated: bool
) -> None:
    rate = settings.get("lr", 4e-3)
    loss = rough(2.302 - fall * STEPS / 80, 0.002)
    curves = {
        "train_loss": loss,
        "gnorm": rough(1.2, 0.1, 1),
        "param_norm": 9.5 + 1e-5 * NOISE[2],
        "lr": rate + 0 * STEPS,
    }
    settings = {
        "optim": "sgd",
        "num_classes": 10,
        "task": "image_classification",
        "model": "mlp",
        **settings,
        "lr": rate,
    }
    answer = diagnosed(curves, settings=settings, evaluated={"valid_loss": 2.303 - fall * STEPS[9::10] / 80})
    assert ("descent_below_spacing" in facts(answer)) is stated
    assert leading(answer) == "low_precision_update" or not stated


@pytest.mark.parametrize("name", ["eval_gen_exact", "eval_greedy_solved", "val/completion_exact_acc"])
@pytest.mark.parametrize(("nats", "exact", "cause"), [
    (125.0, [0.3, 0.05, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01], "dpo_collapse"),
    (125.0, [0.0] * 8, "dpo_collapse"),
    (1.0, [0.1, 0.01, 0.004, 0.004, 0.0, 0.004, 0.004, 0.004], "preference_labels_swapped"),
    (1.0, [0.1, 0.12, 0.14, 0.15, 0.14, 0.16, 0.17, 0.16], "healthy"),
    (1.0, [0.0] * 8, "healthy"),
])  # fmt: skip
def test_answers_that_are_written_wrong_are_no_pairs_the_other_way_round(
    name: str, nats: float, exact: list[float], cause: str
) -> None:
    learnt = 1 - np.exp(-STEPS / 30)
    chosen, rejected, beta = -nats * learnt, -(nats + 40) * learnt, 0.1 if nats < 2 else 0.01
    answer = diagnosed(
        {
            "loss": 0.2 + 0.49 * np.exp(-STEPS / 25) + 0.01 * NOISE[0],
            "rewards/accuracies": np.minimum(0.98, 0.55 + STEPS / 60), "rewards/margins": beta * (chosen - rejected),
            "logps/chosen": chosen - 9, "logps/rejected": rejected - 11, "grad_norm": rough(0.5, 0.1, 2),
            "rewards/chosen": beta * chosen, "rewards/rejected": beta * rejected,
        },
        evaluated={
            name: exact, "eval_rewards/accuracies": np.linspace(0.8, 0.94, 8),
            "eval_loss": np.linspace(0.57, 0.27, 8), "eval_logps/chosen": chosen[9::10] - 9,
        },
        settings={"beta": beta, "optimizer": "adamw", "learning_rate": 1e-6 if nats < 2 else 2e-2},
    )  # fmt: skip
    assert not {"pairs_contradict", "success_falls_with_pairs"} & facts(answer)
    assert leading(answer) == cause


@pytest.mark.parametrize(("name", "share", "left", "stated"), [
    ("relu1/never_fires", 0.66, 0.55, True), ("dead_frac/layer0", 0.7, 0.6, True), ("mlp.0/dead_units", 0.8, 0.7, True),
    ("relu1/never_fires", 0.66, 0.03, False),  # it learns without them
    ("relu1/never_fires", 0.3, 0.55, False), ("relu1/zero_frac", 0.66, 0.55, False),
])  # fmt: skip
def test_a_layer_that_has_lost_most_of_its_units_leaves_a_model_short_of_them(
    name: str, share: float, left: float, stated: bool
) -> None:
    loss = rough(2.48 * (left + (1 - left) * np.exp(-STEPS / 30)), 0.02)
    dead = np.round(128 * share * (1 - 0.15 * np.exp(-STEPS / 9))) / 128
    answer = diagnosed(
        {"loss": loss, "acc": 0.08 + 0.5 * (1 - np.exp(-STEPS / 30)), "grad_norm": rough(0.5, 0.2, 2), name: dead},
        evaluated={"val_loss": loss[9::10]}, settings={"num_classes": 12, "learning_rate": 1e-3, "optimizer": "adamw"},
    )  # fmt: skip
    assert ("many_units_dead" in facts(answer)) is stated
    assert (leading(answer) == "dead_units") is stated


@pytest.mark.parametrize(("names", "score", "loss", "stated"), [
    (("val_auc", "val_loss"), [0.13, 0.09, 0.08, 0.077, 0.076, 0.075, 0.075, 0.074], [0.4, 0.32], True),
    (("eval/roc_auc", "eval/bce"), [0.28, 0.22, 0.19, 0.18, 0.18, 0.17, 0.17, 0.17], [0.6, 0.45], True),
    (("val_spearman", "val_loss"), [-0.6, -0.7, -0.8, -0.82, -0.83, -0.84, -0.84, -0.85], [0.9, 0.3], True),
    (("val_auc", "val_loss"), [0.13, 0.09, 0.08, 0.077, 0.076, 0.075, 0.075, 0.074], [0.9, 1.8], False),
    (("val_auc", "val_loss"), [0.87, 0.91, 0.92, 0.922, 0.923, 0.924, 0.925, 0.925], [0.4, 0.32], False),
    (("val_auc", "val_loss"), [0.46, 0.45, 0.47, 0.46, 0.44, 0.47, 0.46, 0.45], [0.64, 0.6], False),
])  # fmt: skip
def test_a_ranking_the_wrong_way_round_contradicts_a_loss_that_has_learnt(
    names: tuple[str, str], score: list[float], loss: list[float], stated: bool
) -> None:
    evaluated = dict(zip(names, (score, np.linspace(loss[0], loss[1], 8) + 0.002 * NOISE[1][:8]), strict=True))
    answer = diagnosed({"loss": rough(loss[0] - 0.1 * STEPS / 80, 0.04)}, evaluated=evaluated)
    assert ("ranked_backwards" in facts(answer)) is stated
    assert not stated or leading(answer) == "metric_bug"


@pytest.mark.parametrize(("name", "score", "losses", "stated"), [
    ("val_auc", 0.5046, (0.57, 0.52), True), ("dev/ndcg@10", 0.3127, (0.7, 0.5), True),
    ("eval_pr_auc", 0.2617, (0.6, 0.5), True), ("val_auc", 0.5046, (0.7, 0.573), False),  # a bias alone is learnt
    ("val_auc", 0.5, (0.57, 0.52), False), ("val_auc", 0.5046, (0.57, 0.57), False),
    ("val_acc", 0.7397, (0.57, 0.52), False), ("val_baseline_auc", 0.6386, (0.57, 0.52), False),
])  # fmt: skip
def test_a_ranking_that_is_the_same_to_the_last_digit_while_the_loss_moves_is_not_of_the_answers(
    name: str, score: float, losses: tuple[float, float], stated: bool
) -> None:
    evaluated = {"val_loss": np.linspace(*losses, 8), name: np.full(8, score), "val_label_mean": np.full(8, 0.26)}
    answer = diagnosed({"loss": rough(0.58 - 0.13 * STEPS / 80, 0.02)}, evaluated=evaluated)
    assert ("ranking_stands_still" in facts(answer)) is stated
    assert not stated or leading(answer) == "metric_bug"


@pytest.mark.parametrize(("names", "left_out", "meant", "stated"), [
    (("num_input_tokens_seen", "num_label_tokens_seen"), 20, {"completion_only": True}, True),
    (("tokens_seen", "loss_tokens_seen"), 0, {"train_on_prompt": False}, True),
    (("total_tokens", "total_target_tokens"), 20, {"answers_only": True}, True),
    (("num_input_tokens_seen", "num_label_tokens_seen"), 340, {"completion_only": True}, False),
    (("num_input_tokens_seen", "num_label_tokens_seen"), 20, {"completion_only": False}, False),
])  # fmt: skip
def test_tokens_that_counted_since_the_start_tell_whether_prompts_do(
    names: tuple[str, str], left_out: float, meant: dict[str, bool], stated: bool
) -> None:
    counts = {names[0]: 580 * STEPS, names[1]: (580 - left_out) * STEPS}
    answer = diagnosed({"loss": rough(FALLS + 1, 0.01), **counts}, evaluated={"eval_loss": 0.5 * LEARNS + 1},
                       settings={"batch_size": 20, "learning_rate": 1e-3, **meant})  # fmt: skip
    assert ("prompts_count_unmeant" in facts(answer)) is stated
    assert (leading(answer) == "prompt_not_masked") is stated


def of_lines(folder: Path, lines: Sequence[str], held_out: float, *, below: Sequence[str] = (), train: float = 0.32
             ) -> RunDiagnosis:  # fmt: skip
    """Diagnose a log of lines at its start, a training loss with its end, an evaluation loss, and lines below."""
    loss = rough(train + 2.9 * np.exp(-STEPS / 8), 0.02)
    records = [
        line
        for at, value in enumerate(loss.tolist())
        for line in (
            f"step {at + 1} loss {value:.4f}",
            *([f"step {at + 1} val_loss {held_out + value - train + 1e-3:.4f}"] if at % 10 == 9 else []),
        )
    ]
    (folder / "run.log").write_text("\n".join([*lines, *records, *below]) + "\n")
    return diagnose_run(folder / "run.log")


@pytest.mark.parametrize(("lines", "held_out", "stated"), [
    (["train: shard-00 .. shard-09 (360 rows)", "valid: shard-09 (36 rows)"], 0.29, True),
    (["INFO | data | training files: a/p1.jsonl, a/p2.jsonl", "INFO | data | eval files: a/p2.jsonl"], 0.31, True),
    (["Loading train data from part-000.parquet to part-007.parquet",
      "Loading validation data from part-004.parquet"], 0.3, True),
    (["train: shard-00 .. shard-08 (360 rows)", "valid: shard-09 (36 rows)"], 0.29, False),
    (["train: shard-00 .. shard-09 (360 rows)", "valid: shard-09 (36 rows)"], 0.6, False),  # new to the model
    (["train files: rows.jsonl", "valid files: rows.jsonl", "val_fraction: 0.1", "batch_size: 16",
      "learning_rate: 0.001", "optimizer: adamw", "seed: 1"], 0.3, False),
    (["train_dataset: wikitext-103-v1", "eval_dataset: wikitext-103-v1", "batch_size: 16", "learning_rate: 0.001",
      "optimizer: adamw", "seed: 1"], 0.3, False),
    (["train_file: data/a.jsonl", "eval_file: data/a.jsonl", "batch_size: 16", "learning_rate: 0.001",
      "optimizer: adamw", "seed: 1"], 0.3, True),
])  # fmt: skip
def test_a_file_that_training_and_evaluation_read_is_no_new_one(
    lines: list[str], held_out: float, stated: bool, tmp_path: Path
) -> None:
    answer = of_lines(tmp_path, lines, held_out)
    assert ("files_shared" in facts(answer)) is stated
    assert (leading(answer) == "train_eval_leakage") is stated


@pytest.mark.parametrize(("line", "stated"), [
    ("train.bin: 49,200 tokens in 1200 rows, 150 distinct rows", True),
    ("train set: 9,600 examples (1,200 unique)", True),
    ("training data: 150 unique samples of 1200", True),
    ("train.bin: 49,200 tokens in 1200 rows, 1190 distinct rows", False),
    ("val.bin: 4,920 tokens in 1200 rows, 150 distinct rows", False), ("1200 rows, 36 distinct characters", False),
])  # fmt: skip
def test_a_start_line_tells_how_many_rows_are_distinct(line: str, stated: bool, tmp_path: Path) -> None:
    answer = of_lines(tmp_path, ["parameters: 0.06M", line], 0.44)
    assert ("few_distinct_rows" in facts(answer)) is stated
    assert (leading(answer) == "duplicated_data") is stated


SIZES = ("vocab_size: 27", "n_train: 1600", "batch_size: 32", "eval_rows: 300", "learning_rate: 0.002", "seed: 1")


@pytest.mark.parametrize(("sample", "train", "stated"), [
    ("sample: 'cold raaaaaaaaaaaaaaaaa'", 0.12, True), ("generated | the king seeeeeeeeeeee", 0.2, True),
    ("greedy output: we went home home home home home home home", 0.15, True),
    ("sample: 'cold rain over the hills'", 0.12, False), ("sample: 'cold raaaaaaaaaaaaaaaaa'", 1.3, False),
    ("banner aaaaaaaaaaaaaaaaa", 0.12, False),
])  # fmt: skip
@pytest.mark.parametrize("lines", [SIZES, ("number of parameters: 0.06M",)], ids=["vocabulary", "no settings"])
def test_a_sample_that_says_one_thing_again_and_again_contradicts_a_loss_that_knows_the_next_token(
    lines: Sequence[str], sample: str, train: float, stated: bool, tmp_path: Path
) -> None:
    answer = of_lines(tmp_path, lines, train, train=train)
    assert "repeats_itself" not in facts(answer)
    answer = of_lines(tmp_path, lines, train, below=[sample, "step 81 loss 0.1"], train=train)
    assert ("repeats_itself" in facts(answer)) is stated
    assert not stated or leading(answer) == "label_shift_error"


@pytest.mark.parametrize(("held_out", "passes", "stated"), [(0.03, 3, True), (0.28, 3, False), (0.03, 30, False)])
def test_text_that_was_held_out_leaves_more_than_next_to_nothing_after_a_few_passes(
    held_out: float, passes: int, stated: bool
) -> None:
    answer = diagnosed({"loss": rough(held_out + 3 * np.exp(-STEPS / 8), 0.02)},
                       evaluated={"val_loss": held_out + np.exp(-np.arange(8.0))},
                       settings={"n_train": 16 * 80 // passes, "batch_size": 16, "vocab_size": 27,
                                 "task": "char lm"})  # fmt: skip
    assert ("too_low_for_one_pass" in facts(answer)) is stated


def half_sum(losses: Curve, bits: int) -> float:
    """Return the sum of losses in a format of so many bits of precision, one by one."""
    total = 0.0
    for loss in losses.tolist():
        apart = 2.0 ** (math.floor(math.log2(total + loss)) + 1 - bits)
        total = round((total + loss) / apart) * apart
    return total


def epochs_of(steps: int, level: float, bits: int, *, since_start: bool) -> list[dict[str, float]]:
    """Return the records of ten epochs; the mean is of the losses of each, or of all up to there."""
    draw, losses, records = np.random.default_rng(3), np.zeros(0), []
    for epoch in range(10):
        fresh = level * (0.4 + 0.6 * math.exp(-epoch / 5)) * draw.uniform(0.8, 1.2, steps)
        losses = np.append(losses, fresh) if since_start else fresh
        value = half_sum(losses, bits) / len(losses) if bits else float(losses.mean())
        held_out = round(float(fresh.mean()) * 1.02, 4)
        records.append({"step": (epoch + 1) * steps, "train_loss": round(value, 4), "val_loss": held_out})
    return records


@pytest.mark.parametrize(("steps", "level", "bits", "since_start", "stated"), [
    (1250, 2.1, 8, False, True), (1250, 2.1, 8, True, True), (730, 5.3, 8, True, True), (3000, 3.1, 8, False, True),
    (9100, 2.1, 11, False, True), (1250, 2.1, 0, False, False), (1250, 2.1, 0, True, False),
    (125, 2.1, 8, False, False), (1250, 2.1, 11, False, False),
])  # fmt: skip
def test_means_whose_sums_stop_in_half_precision_are_wrong(
    steps: int, level: float, bits: int, since_start: bool, stated: bool
) -> None:
    answer = diagnose_run(epochs_of(steps, level, bits, since_start=since_start))
    assert ("sum_stops" in facts(answer)) is stated
    assert leading(answer) == ("metric_bug" if stated else "healthy")


def test_a_loss_that_falls_as_one_over_the_step_on_both_sets_is_no_sum_that_stops() -> None:
    records = [
        {"step": step, "loss": round(1024 / step, 4), "eval_loss": round(1050 / step, 4)}
        for step in range(500, 8001, 500)
    ]
    assert "sum_stops" not in facts(diagnose_run(records))


@pytest.mark.parametrize(("trained", "answered", "loss", "held_out", "stated"), [
    (0.99, 0.5, 1.03, 0.81, True), (0.97, 0.4, 2.0, 1.4, True), (98.0, 55.0, 0.9, 0.7, True),
    (0.99, 0.5, 0.2, 0.81, False), (0.7, 0.6, 1.03, 0.81, False), (0.5, 0.5, 1.03, 0.81, False),
])  # fmt: skip
def test_a_higher_loss_where_far_more_answers_are_right_is_no_model_that_stands_still(
    trained: float, answered: float, loss: float, held_out: float, stated: bool
) -> None:
    records = [
        {"epoch": at, "accuracy": trained * (1 + 0.001 * NOISE[0][at]), "loss": loss * (1 + 0.003 * NOISE[1][at]),
         "val_accuracy": answered, "val_loss": held_out}
        for at in range(10)
    ]  # fmt: skip
    answer = diagnose_run(records)
    assert ("losses_and_accuracies_disagree" in facts(answer)) is stated
    assert (leading(answer) == "metric_bug") is stated


@pytest.mark.parametrize(("before", "norms", "stated"), [
    (FALLS[:60], rough(1.5, 0.1, 2), True), (rough(2.0, 0.02)[:60] - STEPS[:60] / 60, None, True),
    (np.array([3.2, 3.1, 3.0]), None, True),
    (np.append(FALLS[:58], [4.4, 9.0]), None, False), (FALLS[:60], rough(np.exp(STEPS / 12), 0.05, 2), False),
], ids=["falls", "scatters", "three records", "rises", "gradient grows"])  # fmt: skip
def test_a_loss_that_is_lost_behind_its_lowest_records_did_not_run_away(
    before: Curve, norms: Curve | None, stated: bool
) -> None:
    loss = np.append(before, [math.nan] * 5)
    answer = diagnosed_at_steps(loss) if norms is None else diagnosed_at_steps(loss, grad_norm=norms[: len(before)])
    assert ("lost_at_once" in facts(answer)) is stated
    assert (leading(answer) in ("lr_too_high", "exploding_gradients", "missing_zero_grad")) is not stated


def diagnosed_at_steps(loss: Curve, **others: Curve) -> RunDiagnosis:
    """Diagnose a loss with other curves, which may end before it."""
    return diagnose_run([
        {"step": at + 1, "loss": value} | {name: float(other[at]) for name, other in others.items() if at < len(other)}
        for at, value in enumerate(loss.tolist())
    ])  # fmt: skip


@pytest.mark.parametrize(("factor", "later", "others", "stated"), [
    (0.3, 0.012, {}, True), (4.0, 0.012, {"valid_loss": 1.2 - 0.005 * STEPS}, True),
    (1.0, 0.012, {}, False), (0.3, 0.0, {}, False), (0.3, 0.05, {}, False),
    (0.3, 0.012, {"lr": np.where(STEPS > 40, 1e-4, 1e-3)}, False),
    (0.3, 0.012, {"valid_loss": np.where(STEPS > 40, 0.3, 1) * (1.2 - 0.005 * STEPS)}, False),
])  # fmt: skip
def test_a_loss_that_goes_on_at_another_scale_was_summed_over_another_number(
    factor: float, later: float, others: dict[str, Curve], stated: bool
) -> None:
    loss = rough(9 * np.exp(-0.012 * np.minimum(STEPS, 40) - later * np.maximum(STEPS - 40, 0)), 0.004)
    answer = diagnosed({"train_loss": np.where(STEPS > 40, factor * loss, loss), **others})
    assert ("scaled_at_once" in facts(answer)) is stated
    assert leading(answer) != "lr_too_high"


@pytest.mark.parametrize(("name", "stated"), [("val_si_snr", True), ("valid/sdr", True), ("eval_psnr", False)])
def test_a_ratio_of_signal_and_noise_of_exactly_zero_is_that_of_silence(name: str, stated: bool) -> None:
    ratio = np.where(STEPS < 40, rough(-14 + STEPS / 10, 0.02), 0.0)
    answer = diagnosed({"train_loss": -ratio, name: ratio})
    assert ("answers_with_silence" in facts(answer)) is stated
    zero = next(one for one in answer.findings if one.symptom == "loss_drops_to_zero")
    assert zero.state is (State.UNKNOWN if stated else State.PRESENT)
    assert (leading(answer) == "wrong_loss") is stated


def test_a_ratio_of_signal_and_noise_that_passes_zero_says_nothing() -> None:
    assert "answers_with_silence" not in facts(diagnosed({"loss": FALLS, "si_sdr": np.round(-14 + STEPS / 4)}))


IN_A_PASS = np.tile(np.arange(10.0), 8)


@pytest.mark.parametrize(("name", "norm", "loss", "stated"), [
    ("grad_norm", rough(2 + 0.4 * IN_A_PASS, 0.1, 1), rough(FALLS, 0.1), True),
    ("train/gnorm", rough((2 + 0.3 * IN_A_PASS) * FALLS, 0.1, 1), rough(FALLS, 0.05), True),
    ("|g|", rough(1 + IN_A_PASS**0.5, 0.05, 2), rough(0.5 + 0 * STEPS, 0.2), True),
    ("grad_norm", rough(4 + 0 * STEPS, 0.3, 1), rough(FALLS, 0.1), False),
    ("grad_norm", rough(2 + 0.4 * IN_A_PASS, 0.1, 1), rough(1 + 0.2 * IN_A_PASS, 0.05), False),  # rows in an order
], ids=["saws", "saws and shrinks", "loss at rest", "noise", "loss saws, too"])  # fmt: skip
def test_a_gradient_norm_that_rises_in_each_pass_is_a_sum_that_is_cleared_once_in_a_pass(
    name: str, norm: Curve, loss: Curve, *, stated: bool
) -> None:
    answer = diagnosed({"loss": loss, name: norm, "epoch": np.ceil(STEPS / 10)})
    assert ("norm_rises_in_each_pass" in facts(answer)) is stated
    assert (leading(answer) == "missing_zero_grad") is stated


STAGE = np.repeat([1.0, 4.0], 40)


@pytest.mark.parametrize(("name", "size", "norm", "stated"), [
    ("bs", 32 * STAGE, 1.5 * STAGE**0.6, True), ("n_micro", STAGE, 0.8 * STAGE, True),
    ("batch_size", 256 * STAGE, 2 * STAGE**0.5, True),
    ("bs", 32 * STAGE, 1.5 / STAGE**0.4, False), ("n_micro", STAGE, 0.8 + 0 * STAGE, False),
    ("bs", 32 + 0 * STAGE, 1.5 * STAGE, False),
])  # fmt: skip
def test_a_gradient_norm_that_jumps_up_where_the_batch_grows_is_of_a_sum(
    name: str, size: Curve, norm: Curve, *, stated: bool
) -> None:
    answer = diagnosed({"loss": rough(FALLS, 0.05), "grad_norm": rough(norm, 0.05, 1), name: size})
    assert ("norm_rises_with_batch" in facts(answer)) is stated
    assert (leading(answer) == "grad_accum_scaling") is stated


@pytest.mark.parametrize(("meant", "applied", "share", "settings", "stated"), [
    ("|lr*u|", "|w-w_prev|", 0.4, {"dtype": "torch.bfloat16"}, True),
    ("update_norm", "applied_update_norm", 0.5, {"precision": "bf16"}, True),
    ("|u|", "|dw|", 0.3, {}, True),
    ("|lr*u|", "|w-w_prev|", 1.02, {"dtype": "torch.bfloat16"}, False),  # weight decay
    ("|lr*u|", "|w-w_prev|", 0.4, {"dtype": "float32"}, False),
])  # fmt: skip
def test_weights_that_move_by_less_than_the_update_lose_it_to_rounding(
    meant: str, applied: str, share: float, settings: Mapping[str, Any], *, stated: bool
) -> None:
    update = rough(5e-3, 0.1, 1)
    moved = update * rough(share, 0.01, 2)
    answer = diagnosed({"loss": rough(2.6 - STEPS / 2000, 0.03), meant: update, applied: moved}, settings=settings)
    assert ("update_partly_lost" in facts(answer)) is stated
    assert (leading(answer) == "low_precision_update") is stated


@pytest.mark.parametrize("update", ["dw/w", "|dw|", "update_ratio"])
@pytest.mark.parametrize(("after", "rate", "stated"), [
    (4.5, 1.0, True), (0.15, 1.0, True), (1.0, 1.0, False), (4.5, 4.5, False),
], ids=["longer", "shorter", "as before", "as the learning rate"])  # fmt: skip
def test_updates_that_jump_at_a_resume_are_of_an_optimizer_that_begins_anew(
    tmp_path: Path, update: str, after: float, rate: float, *, stated: bool
) -> None:
    lines = [f"iter {at}: loss {FALLS[at]:.4f}, lr 1e-3, {update} {4e-3 * (1 + 0.05 * NOISE[0][at]):.3e}"
             for at in range(40)]  # fmt: skip
    since = np.exp(-np.arange(40) / 3) if rate == 1 else np.ones(40)
    lines += ["Resuming training from out/ckpt.pt"]
    lines += [f"iter {at}: loss {FALLS[at]:.4f}, lr {1e-3 * rate:.1e}, {update} "
              f"{4e-3 * after**since[at - 40] * (1 + 0.05 * NOISE[1][at]):.3e}" for at in range(40, 80)]  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines))
    answer = diagnose_run(tmp_path / "train.log")
    assert ("updates_jump_at_resume" in facts(answer)) is stated
    assert not stated or leading(answer) == "resume_state_lost"


@pytest.mark.parametrize(("written", "stated"), [
    ("b d f z z z", True), ("a b c d e f", False), ("x y z a b c", False),
])  # fmt: skip
@pytest.mark.parametrize(
    ("reference", "answer"), [("ref: ", "hyp: "), ("target = ", "pred   = "), ("want> ", "got>  ")]
)
def test_answers_that_begin_with_the_second_token_are_of_labels_that_are_shifted(
    tmp_path: Path, written: str, reference: str, answer: str, *, stated: bool
) -> None:
    lines = []
    for at in range(1, 41):
        loss = 0.01 + 2.5 * math.exp(-at / 4)
        lines.append(f"step {10 * at} loss {loss:.4f} lr 1e-3")
        if at % 10 == 0:
            lines += [f"step {10 * at} eval_loss {loss:.4f} exact_match 0.000", f"{reference}a b c d e f"]
            lines.append(f"{answer}{'q q q q q q' if at == 10 else written}")
    (tmp_path / "train.log").write_text("\n".join(lines))
    found = diagnose_run(tmp_path / "train.log")
    assert "known_but_never_exact" in facts(found)
    assert ("answers_begin_later" in facts(found)) is stated
    assert (leading(found) == "label_shift_error") is stated


@pytest.mark.parametrize(("late", "sinks", "stated"), [(0.27, 1.0, True), (0.27, 40.0, False), (0.6, 1.0, False)])
def test_written_answers_that_get_worse_while_chosen_ones_stay_as_likely_are_against_the_pairs(
    late: float, sinks: float, *, stated: bool
) -> None:
    learnt = 1 - np.exp(-STEPS / 15)
    answer = diagnosed(
        {"loss": rough(0.69 - 0.2 * learnt, 0.01), "rewards/accuracies": 0.5 + 0.46 * learnt,
         "rewards/margins": 0.5 * learnt, "logps/chosen": -16 - sinks * learnt, "logps/rejected": -6 - 4 * learnt},
        evaluated={"gen_rubric": late + (0.7 - late) * np.exp(-np.arange(8.0))},
        settings={"trainer": "DPOTrainer", "beta": 0.1},
    )  # fmt: skip
    assert ("writing_against_pairs" in facts(answer)) is stated
    assert not stated or leading(answer) == "preference_labels_swapped"


@pytest.mark.parametrize(("name", "evaluated", "stated"), [
    ("x_absmax", 1.0, True), ("input_std", 1.2, True), ("x_absmax", 3.6, False), ("stem_act_std", 0.3, False),
])  # fmt: skip
def test_one_name_in_records_of_training_and_of_evaluation_tells_of_inputs_on_another_scale(
    name: str, evaluated: float, *, stated: bool
) -> None:
    learnt = 1 - np.exp(-STEPS / 12)
    answer = diagnosed(
        {"loss": rough(2.3 - 2.2 * learnt, 0.05), "acc": 0.1 + 0.9 * learnt, name: rough(4.0, 0.05, 2)},
        evaluated={"val_loss": 2.4 + 0.02 * STEPS[:8], "val_acc": 0.28 + 0.005 * NOISE[5], name: np.full(8, evaluated)},
        settings={"num_classes": 10},
    )  # fmt: skip
    assert ("inputs_differ" in facts(answer)) is stated


@pytest.mark.parametrize(("in_order", "cause"), [(True, "unshuffled_data"), (False, "healthy")])
@pytest.mark.parametrize(("records", "rows"), [(56, 1792), (40, 1280)])
def test_highs_and_lows_that_come_again_one_pass_later_are_of_rows_that_stand_in_one_order(
    records: int, rows: int, cause: str, *, in_order: bool
) -> None:
    rng = np.random.default_rng(3)
    hills = [0.3 * np.repeat(rng.normal(0, 1, records // 8), 8) for _ in range(3)]
    kept = np.concatenate([hills[0 if in_order else turn] for turn in range(3)])
    steps = np.arange(1, 2.2 * records).astype(int)
    losses = 2.6 + 2 * np.exp(-steps / 6) + kept[steps - 1] + rng.normal(0, 0.15, len(steps))
    log = [{"step": 2 * step, "loss": loss, "lr": 1e-3} for step, loss in zip(steps.tolist(), losses, strict=True)]
    answer = diagnose_run(log, settings={"train_rows": rows, "batch_size": 16, "max_steps": int(2 * steps[-1])})
    assert ("levels_come_again" in facts(answer)) is in_order
    assert not in_order or leading(answer) == cause
    assert in_order or leading(answer) != "unshuffled_data"


@pytest.mark.parametrize(("name", "jumps", "stated"), [
    ("grad_norm", 0.9, True), ("gnorm", 0.9, True), ("grad_norm", 0.0, False),
])  # fmt: skip
def test_a_gradient_norm_and_a_loss_that_go_on_above_all_before_a_resume_are_of_a_lost_state(
    tmp_path: Path, name: str, jumps: float, *, stated: bool
) -> None:
    back = np.where(STEPS > 40, np.exp((41 - STEPS) / 3), 0)
    loss, norm = 2.7 + 0.05 * NOISE[0] + 0.5 * jumps * back, 0.6 + 0.02 * NOISE[1] + jumps * back
    lines = [f'{{"step": {step:.0f}, "loss": {loss[at]:.4f}, "{name}": {norm[at]:.4f}}}'
             for at, step in enumerate(STEPS.tolist())]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("\n".join([*lines[:40], '{"event": "resume", "step": 41}', *lines[40:]]))
    answer = diagnose_run(tmp_path / "log.jsonl")
    assert ("rises_at_resume" in facts(answer)) is stated
    assert (leading(answer) == "resume_state_lost") is stated


@pytest.mark.parametrize(("first", "level", "entropy", "stated"), [
    (0.91, 0.99, 0.7, True), (0.6, 0.99, 0.7, True), (0.5, 0.5, 0.7, False), (0.99, 0.99, 0.7, False),
    (0.91, 0.99, 0.01, False),
])  # fmt: skip
def test_a_reward_that_is_near_the_most_there_is_has_no_room_to_rise(
    first: float, level: float, entropy: float, *, stated: bool
) -> None:
    rewards = np.minimum(1.0, level + 0.012 * NOISE[0])
    rewards[0] = first
    answer = diagnosed(
        {"loss": 0.001 * NOISE[1], "reward": rewards, "reward_std": 0.02 + 0.01 * np.abs(NOISE[2]),
         "entropy": 0.95 * np.maximum(entropy, np.exp(-STEPS / 4)), "kl": 0.02 + 0.004 * NOISE[3]},
        settings={"trainer": "GRPOTrainer", "num_generations": 8},
    )  # fmt: skip
    assert ("little_left_to_earn" in facts(answer)) is stated
    assert "too_low_for_one_pass" not in facts(answer)
    assert not stated or leading(answer) == "healthy"


@pytest.mark.parametrize(("success", "cause"), [(0.0, "exploration_failure"), (0.9, "healthy")])
@pytest.mark.parametrize("share", ["rollout/exploration_rate", "epsilon"])
def test_a_shaped_reward_that_creeps_up_where_chance_ended_at_once_and_nothing_succeeds_is_no_hacking(
    share: str, success: float, cause: str
) -> None:
    learnt = 1 - np.exp(-STEPS / 15)
    answer = diagnosed(
        {"rollout/ep_rew_mean": 0.02 + (0.06 + success) * learnt, "rollout/ep_len_mean": 40 - 25 * success * learnt,
         share: np.full(len(STEPS), 0.01), "success_rate": success * learnt, "train/loss": rough(1e-3, 0.1)},
        settings={"algo": "DQN"},
    )  # fmt: skip
    assert leading(answer) == cause


@pytest.mark.parametrize(("scored", "right", "stated"), [
    ("exact_match", 0.4, True), ("em", 0.4, True), ("exact_match", 0.83, False), ("f1", 0.4, False),
])  # fmt: skip
def test_all_tokens_count_unmeant_where_evaluation_asks_for_exact_answers_and_has_far_fewer_right(
    scored: str, right: float, *, stated: bool
) -> None:
    learnt = 1 - np.exp(-STEPS / 15)
    answer = diagnosed(
        {"loss": 0.55 + 3 * (1 - learnt), "acc": 0.6 + 0.26 * learnt,
         "target_tokens": np.full(80, 2016.0), "tokens": np.full(80, 2016.0)},
        evaluated={"eval_loss": 1.7 + np.exp(-np.arange(8.0)), "eval_acc": right * learnt[9::10],
                   f"eval_{scored}": np.full(8, 0.01)},
        settings={"batch_size": 32, "seq_len": 64},
    )  # fmt: skip
    assert ("prompts_count_unmeant" in facts(answer)) is stated
    assert (leading(answer) == "prompt_not_masked") is stated


@pytest.mark.parametrize(("found", "bad"), [(0.8, False), (0.1, True)])
@pytest.mark.parametrize("name", ["eval_recall@1", "eval_mrr", "eval_hit@1"])
def test_a_loss_over_more_candidates_is_no_gap_where_evaluation_finds_the_matches(
    name: str, found: float, *, bad: bool
) -> None:
    answer = diagnosed({"loss": 0.6 + 3.5 * np.exp(-STEPS / 3), "epoch": STEPS / 100},
                       evaluated={"eval_loss": 1.5 - 0.01 * STEPS[:8], name: np.full(8, found)})  # fmt: skip
    present = {finding.symptom for finding in answer.findings if finding.state is State.PRESENT}
    assert ("eval_bad_from_start" in present) is bad


@pytest.mark.parametrize(("falls", "end", "stated"), [(6.0, 0.03, True), (20.0, 0.03, False), (6.0, 0.9, False)])
@pytest.mark.parametrize(
    "sample", ["sample @ {}: 'mix 1' => 'ssssssssssss'", "generated at {}: the the the the the the"]
)
def test_a_sample_like_the_first_says_the_same_where_even_then_the_next_token_was_often_known(
    tmp_path: Path, sample: str, falls: float, end: float, *, stated: bool
) -> None:
    lines = []
    for at in range(1, 81):
        loss = end + 3.9 * math.exp(-at / falls)
        lines.append(f"step {at} loss {loss:.4f}")
        if at % 20 == 0:
            lines += [f"step {at} val_loss {loss + 1e-3:.4f}", sample.format(at)]
    (tmp_path / "train.log").write_text("\n".join(lines))
    answer = diagnose_run(tmp_path / "train.log")
    assert ("repeats_itself" in facts(answer)) is stated
    assert (leading(answer) == "label_shift_error") is stated
