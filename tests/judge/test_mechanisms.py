"""Causes that a run's settings make impossible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.runs import decay, noisy, run_of

from mldebug_mcp import diagnose_run
from mldebug_mcp.judge.causes import NEEDS, evidence_from_needs
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar

LOSS = decay(200, 4.0, 2.0)


def ruled_out(config: dict[str, Scalar], kind: str = "pretraining") -> set[str]:
    evidence = evidence_from_needs(run_of(loss=LOSS, config=config, kind=kind))
    assert all(one.bits < 0 for one in evidence)
    return {one.cause for one in evidence}


@pytest.mark.parametrize(
    ("config", "cause"),
    [
        ({"fp16": False}, "fp16_overflow"),
        ({"bf16": True}, "fp16_overflow"),
        ({"precision": "fp32"}, "low_precision_update"),
        ({"precision": "bf16"}, "fp8_zero_scale"),
        ({"gradient_accumulation_steps": 1}, "grad_accum_scaling"),
        ({"optim": "sgd"}, "adam_instability"),
        ({"max_grad_norm": 0.0}, "clip_too_tight"),
        ({"max_grad_norm": 1.0}, "clip_too_tight"),
        ({"weight_decay": 0.0}, "weight_decay_too_high"),
        ({"shuffle": True}, "unshuffled_data"),
        ({"warmup_steps": 20, "max_steps": 200}, "insufficient_warmup"),
        ({"train_rows": 64000, "per_device_train_batch_size": 32, "max_steps": 200}, "overfitting"),
    ],
)
def test_what_a_setting_makes_impossible_or_unlikely_is_spoken_against(config: dict[str, Scalar], cause: str) -> None:
    assert cause in ruled_out(config)


@pytest.mark.parametrize(
    ("config", "cause"),
    [
        ({"fp16": True}, "fp16_overflow"),
        ({"precision": "fp8"}, "fp8_zero_scale"),
        ({"bf16": True}, "low_precision_update"),
        ({"gradient_accumulation_steps": 8}, "grad_accum_scaling"),
        ({"gradient_accumulation_steps": 1, "world_size": 8}, "grad_accum_scaling"),
        ({"optim": "adamw_torch"}, "adam_instability"),
        ({"max_grad_norm": 0.1}, "clip_too_tight"),
        ({"weight_decay": 0.1}, "weight_decay_too_high"),
        ({"shuffle": False}, "unshuffled_data"),
        ({"warmup_steps": 1, "max_steps": 200}, "insufficient_warmup"),
        ({"warmup_steps": 100_000, "max_steps": 200}, "insufficient_warmup"),
        ({"train_rows": 640, "per_device_train_batch_size": 32, "max_steps": 200}, "overfitting"),
    ],
)
def test_what_a_setting_allows_is_not_spoken_against(config: dict[str, Scalar], cause: str) -> None:
    assert cause not in ruled_out(config)


def test_what_a_run_does_not_say_rules_nothing_out() -> None:
    assert ruled_out({}) == set()


def test_needs_belong_to_causes_that_exist() -> None:
    assert NEEDS.keys() <= catalogue().causes.keys()


def test_what_leads_to_no_nan_is_not_the_cause_of_a_loss_that_ends_in_it() -> None:
    losses = (3.0 + np.random.default_rng(0).normal(0, 0.01, 100)).tolist()
    rests, lost = (
        diagnose_run([{"step": at, "loss": one} for at, one in enumerate([*losses, *tail])])
        for tail in ([], [math.nan] * 5)
    )
    shares = [{one.cause: one.probability for one in told.hypotheses} for told in (rests, lost)]
    assert shares[1]["lr_too_low"] < 0.05 < shares[0]["lr_too_low"]
    assert shares[1]["no_signal"] < 0.05 < shares[0]["no_signal"]


def spoken_against(run: Run) -> set[str]:
    return {one.cause for one in evidence_from_needs(run)}


def test_what_is_lost_before_any_update_is_not_lost_by_updates() -> None:
    at_once = run_of(loss=[math.inf, math.nan, math.nan, math.nan])
    assert "lr_too_high" in spoken_against(at_once)
    assert "invalid_math" not in spoken_against(at_once)
    assert "lr_too_high" not in spoken_against(run_of(loss=[2.0, 1.9, math.inf, math.nan, math.nan]))


def test_a_policy_that_learns_and_keeps_it_has_no_rate_that_is_too_high() -> None:
    rises = np.linspace(0.1, 0.8, 60)
    assert "lr_too_high" in spoken_against(run_of(reward=noisy(rises, 0.02), kind="grpo"))
    lost = np.concatenate([rises[:30], np.linspace(0.45, 0.0, 30)])
    assert "lr_too_high" not in spoken_against(run_of(reward=noisy(lost, 0.02), kind="grpo"))


def test_scores_that_rank_no_better_than_a_guess_speak_against_imbalance() -> None:
    at = range(5, 65, 5)
    assert "class_imbalance" in spoken_against(run_of(loss=LOSS, eval_auc={step: 0.5 + step / 1e4 for step in at}))
    assert "class_imbalance" not in spoken_against(run_of(loss=LOSS, eval_auc=dict.fromkeys(at, 0.7)))
    assert "class_imbalance" not in spoken_against(run_of(loss=LOSS, eval_auc=dict.fromkeys([5, 10], 0.5)))


@pytest.mark.parametrize(
    ("config", "scale", "expected"),
    [({"optim": "sgd"}, False, True), ({"optim": "sgd"}, True, False), ({}, False, False)],
)
def test_half_precision_that_neither_configuration_nor_log_name_is_unlikely(
    config: dict[str, Scalar], scale: bool, expected: bool
) -> None:
    columns = {"loss_scale": np.full(200, 65536.0)} if scale else None
    evidence = evidence_from_needs(run_of(columns, loss=LOSS, config=config, kind="pretraining"))
    assert ("fp16_overflow" in {one.cause for one in evidence}) is expected


def test_updates_did_not_ruin_a_model_whose_gradients_stay_finite_behind_the_last_loss() -> None:
    """Source: transformers 5.24.0, whose Trainer logs NaN to the end once the loss of one batch was NaN."""
    loss = [3.2, 3.1, 3.0, *[math.nan] * 37]
    evidence = evidence_from_needs(run_of(loss=loss, grad_norm=[1.9] * 40))
    against = {one.cause for one in evidence if "records from step 4 on" in one.because}
    assert {"lr_too_high", "exploding_gradients", "adam_instability"} <= against
    assert "lr_too_high" not in {one.cause for one in evidence_from_needs(run_of(loss=loss, grad_norm=loss))}


@pytest.mark.parametrize(("metric", "expected"), [("eval_exact_match", True), ("eval_token_accuracy", False)])
def test_answers_that_match_from_end_to_end_rule_out_a_model_that_saw_them(metric: str, expected: bool) -> None:
    steps = {step: min(1.0, step / 150) for step in range(20, 201, 20)}
    evidence = evidence_from_needs(run_of({metric: steps}, loss=LOSS, kind="sft"))
    assert ({"label_shift_error", "causal_mask_missing"} <= {found.cause for found in evidence}) is expected
