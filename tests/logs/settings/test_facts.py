"""What follows from settings and metrics together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from tests.runs import decay, run_of

from mldebug_mcp.judge import diagnose
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.settings import Scalar, Settings
from mldebug_mcp.logs.settings.settings import Facts, facts_of


def facts(kind: str = "supervised", **values: object) -> Facts:
    return facts_of(Settings.of(values), kind)


@pytest.mark.parametrize(
    ("values", "precision"),
    [
        ({"fp16": True}, "fp16"),
        ({"precision": 16}, "fp16"),
        ({"mixed_precision": "bf16"}, "bf16"),
        ({"precision": "32-true"}, "fp32"),
        ({"precision": "bf16-pure"}, "bf16"),
        ({"precision": "pure"}, None),
        ({"fp16": False, "bf16": False}, "fp32"),
        ({"fp16": False}, "not fp16"),
        ({"fp16": {"enabled": False}, "bf16": {"enabled": True}}, "bf16"),
        ({"fp16": False, "bf16": False, "torch_dtype": "bfloat16"}, "bf16"),
        ({"mixed_precision": False}, "fp32"),
        ({"fp8": True, "bf16": True}, "fp8"),
        ({"fp16": None}, None),
        ({}, None),
    ],
)
def test_an_explicit_false_refutes_a_precision_and_silence_does_not(
    values: Mapping[str, object], precision: str | None
) -> None:
    assert facts_of(Settings.of(values), "supervised").precision == precision


def test_a_stray_number_of_classes_in_a_language_model_and_a_vocabulary_in_a_classifier_are_left_out() -> None:
    both = {"num_labels": 2, "vocab_size": 32_000}
    assert (facts("pretraining", **both).classes, facts("pretraining", **both).tokens) == (None, 32_000)
    assert (facts("supervised", **both).classes, facts("supervised", **both).tokens) == (2, None)


def test_steps_per_pass_and_the_plan_follow_from_rows_and_the_effective_batch() -> None:
    found = facts(train_rows=1000, batch_size=8, grad_accum=4, nproc_per_node=2, nnodes=2, epochs=3)
    assert (found.effective_batch, found.steps_per_pass, found.plan) == (128, 8, 24)
    assert found.passes_at(12) == 1.5


@pytest.mark.parametrize("key", ["n_train", "num_train", "data/n_train", "train_clips"])
def test_the_number_of_training_rows_is_read_where_the_key_says_no_more_than_train(key: str) -> None:
    values: dict[str, Any] = {key: 1000, "batch_size": 8}
    assert facts(**values).steps_per_pass == 125


@pytest.mark.parametrize("value", [0.8, 1, True, "train.csv"])
def test_a_share_a_switch_and_a_file_under_train_are_no_rows(value: object) -> None:
    assert facts(train=value, batch_size=8).steps_per_pass is None


@pytest.mark.parametrize("with_epochs", [True, False])
def test_a_log_that_counts_rows_makes_as_many_passes_as_its_updates(with_epochs: bool) -> None:
    settings: dict[str, Scalar] = {"train_rows": 1440, "batch_size": 32, "max_steps": 440, "warmup_steps": 20}
    curves = {"loss": decay(44)} | ({"epoch": [record / 4.5 for record in range(1, 45)]} if with_epochs else {})
    rows, updates = (run_of(curves, config=settings, every=every) for every in (320, 10))
    assert (rows.facts.steps_per_update, updates.facts.steps_per_update) == (32, 1)
    for run in (rows, updates):
        assert run.facts.passes_at(run.last_step) == pytest.approx(9.78, abs=0.01)
        assert run.facts.passes_at(run.facts.plan or 0) == pytest.approx(9.78, abs=0.01)
        assert run.facts.schedule.warmup_steps == 20 * run.facts.steps_per_update
        plan = plan_of(run)
        assert plan is not None
        assert plan.reached == plan.planned


def test_a_share_of_warmup_is_counted_in_steps_of_the_plan() -> None:
    assert facts(warmup_ratio=0.1, max_steps=500).schedule.warmup_steps == 50
    assert facts(warmup_epochs=2, steps_per_epoch=30).schedule.warmup_steps == 60
    assert facts(warmup_steps=0, max_steps=500).schedule.warmup_steps == 0
    assert facts(max_steps=500).schedule.warmup_steps is None


def test_clipping_that_is_switched_off_is_not_unknown() -> None:
    assert facts(max_grad_norm=None).clip == math.inf
    assert facts(clip_grad=0).clip == math.inf
    assert facts(clip_grad=0.5).clip == 0.5
    assert facts().clip is None


def test_the_settings_of_the_optimizer_are_gathered() -> None:
    found = facts(optimizer={"name": "AdamW", "betas": [0.9, 0.99], "eps": 1e-6})
    assert (found.optimizer.name, found.optimizer.betas, found.optimizer.epsilon) == ("adamw", (0.9, 0.99), 1e-6)


def test_a_log_that_counts_steps_and_parts_of_epochs_tells_the_steps_of_a_pass() -> None:
    run = run_of(loss=decay(100), epoch=[step / 40 for step in range(1, 101)])
    assert run.facts.steps_per_pass == pytest.approx(40)
    assert run.facts.passes_at(100) == pytest.approx(2.5)


def test_epochs_of_a_stream_that_jump_as_a_pass_ends_tell_the_passes_that_were_made() -> None:
    """Source: transformers 5.24.0, whose Trainer divides the steps of a pass over a stream by all that are planned."""
    epochs = [(step - 1) // 10 + ((step - 1) % 10 + 1) / 30 for step in range(1, 31)]
    run = run_of(loss=decay(30), epoch=epochs)
    assert run.facts.steps_per_pass == pytest.approx(10)
    seldom = run_of(loss=decay(30), epoch={step: epochs[step - 1] for step in range(4, 31, 4)})
    assert seldom.facts.passes_at(30) == pytest.approx(3)


def test_fp16_that_is_configured_off_does_not_lead_a_diagnosis_of_numbers_that_are_not_finite() -> None:
    curves = {"loss": [3.0 - step / 100 for step in range(60)] + [math.nan] * 20}
    configured = run_of(curves, config={"fp16": True})
    refuted = run_of(curves, config={"fp16": False, "bf16": False})
    overflow = [
        next(one.probability for one in diagnose(run).hypotheses if one.cause == "fp16_overflow")
        for run in (configured, refuted)
    ]
    assert overflow[1] < 0.05 < overflow[0]


@pytest.mark.parametrize("key", ["clip", "grad_clip", "clip_value", "optim/clip"])
def test_where_gradients_are_clipped_may_be_named_in_short(key: str) -> None:
    assert facts_of(Settings.of({key: 0.02}), "pretraining").clip == 0.02


def test_a_bare_clip_of_a_policy_is_that_of_its_ratio() -> None:
    assert facts_of(Settings.of({"clip": 0.2}), "ppo").clip is None
    assert facts_of(Settings.of({"clip": 0.2, "max_grad_norm": 0.5}), "ppo").clip == 0.5


@pytest.mark.parametrize("key", ["accum", "accumulate", "grad_accum"])
def test_accumulated_batches_may_be_named_in_short(key: str) -> None:
    assert facts_of(Settings.of({key: 8, "batch_size": 4}), "supervised").effective_batch == 32


def test_fairseq_lists_how_many_batches_it_accumulates_and_an_agent_counts_steps_by_the_same_name() -> None:
    assert facts_of(Settings.of({"update_freq": [8], "batch_size": 4}), "supervised").effective_batch == 32
    assert facts_of(Settings.of({"update_freq": 8, "batch_size": 4}), "rl").effective_batch == 4


def test_iterations_and_steps_of_a_policys_update_are_no_plan() -> None:
    policy = {"reward": [0.1] * 60, "reward_std": [0.2] * 60, "kl": [0.01] * 60}
    config = {"num_iterations": 4, "num_generations": 8, "beta": 0.04, "ppo_epochs": 2}
    run = run_of(policy, config=config)
    assert run.kind == "grpo"
    assert run.facts.plan is None
    assert run.ending.how == "open"
