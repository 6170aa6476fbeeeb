"""What a policy's curves say of its faults: a KL that runs on, actions that get more random, old samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp import diagnose_run
from mldebug_mcp.models import Diagnosis

Curve = NDArray[np.float64]
STEPS = np.arange(1, 181)


def diagnosed(tmp_path: Path, curves: Mapping[str, Curve] | None = None, **more: Curve) -> Diagnosis:
    curves = {**(curves or {}), **more}
    noise = np.random.default_rng(0)
    path = tmp_path / "metrics.jsonl"
    rows = [
        {
            "step": int(step),
            **{name: value[at] * (1 + 0.02 * noise.standard_normal()) for name, value in curves.items()},
        }
        for at, step in enumerate(STEPS)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return diagnose_run(path)


def leading(diagnosis: Diagnosis, count: int = 2) -> list[str]:
    return [hypothesis.cause for hypothesis in diagnosis.hypotheses[:count]]


LEARNT = 0.5 - 0.3 * np.exp(-STEPS / 30)
RUNS_ON = 0.002 * np.exp(STEPS / 22)


def test_a_kl_that_multiplies_up_to_the_end_without_reward_is_among_the_first_causes(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, reward=LEARNT, kl=RUNS_ON, policy_loss=0.01 * np.ones(180))
    assert "kl_blowup" in leading(diagnosis)


def test_a_kl_that_comes_to_rest_while_the_reward_stays_up_is_not(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, reward=LEARNT, kl=0.4 - 0.4 * np.exp(-STEPS / 60), policy_loss=0.01 * np.ones(180))
    assert leading(diagnosis, 1) == ["healthy"]


def test_entropy_that_explodes_after_the_reward_was_found_is_not_too_little_exploration(tmp_path: Path) -> None:
    fades = np.maximum(0, STEPS - 100) / 80
    diagnosis = diagnosed(
        tmp_path,
        reward=np.minimum(20, STEPS / 2.0) * (1 - 0.9 * fades),
        entropy=17 + 40 * fades,
        value_loss=0.025 * np.exp(7 * fades),
        policy_loss=-0.005 * np.ones(180),
    )
    assert leading(diagnosis, 1) == ["value_instability"]
    present = {finding.symptom for finding in diagnosis.findings if finding.state.value == "present"}
    assert {"value_loss_high", "entropy_grows"} <= present


PART = np.exp(np.maximum(0, STEPS - 60) / 22)
"""Times that the probabilities of sampler and trainer are farther apart than at first."""


@pytest.mark.parametrize(
    ("name", "apart"),
    [
        ("train/train_rollout_logprob_abs_diff", np.minimum(0.012 * PART, 2)),
        ("training/rollout_probs_diff_mean", np.minimum(0.004 * PART, 0.5)),
        ("training/rollout_actor_probs_pearson_corr", np.maximum(1 - 0.004 * PART, 0.2)),
        ("vllm_kl", 0.0005 * PART * PART),
        ("rollout_corr/kl", 0.0005 * PART * PART),
    ],
)
def test_probabilities_of_sampler_and_trainer_part_by_old_samples(tmp_path: Path, name: str, apart: Curve) -> None:
    curves = {name: apart, "actor/ppo_kl": 0.0002 * np.ones(180), "actor/pg_clipfrac": 0.0005 * PART}
    diagnosis = diagnosed(tmp_path, curves, reward=LEARNT, entropy=0.4 * np.ones(180))
    assert leading(diagnosis, 1) == ["off_policy_staleness"]


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("train/train_rollout_logprob_abs_diff", 0.025),
        ("training/rollout_probs_diff_mean", 0.012),
        ("training/rollout_actor_probs_pearson_corr", 0.995),
        ("training/rollout_actor_probs_pearson_corr", 0.0),
        ("vllm_kl", 0.001),
    ],
)
def test_those_that_differ_by_rounding_are_not(tmp_path: Path, name: str, level: float) -> None:
    curves = {name: level * np.ones(180), "actor/ppo_kl": 0.0002 * np.ones(180)}
    diagnosis = diagnosed(tmp_path, curves, reward=LEARNT, entropy=0.4 * np.ones(180))
    assert leading(diagnosis, 1) == ["healthy"]


@pytest.mark.parametrize(("behind", "stale"), [(25, True), (0, False)])
def test_samples_that_wait_in_a_queue_are_old_by_the_versions_of_sampler_and_learner(
    tmp_path: Path, behind: int, stale: bool
) -> None:
    noise = np.random.default_rng(0).uniform(0.9, 1.1, 240)
    head = {"cfg": {"env": "reach", "rollout": 40, "lr": 0.004, "gamma": 0.98, "ent_coef": 0.0}}
    rows = [
        {
            "learner_version": at,
            "actor_version": max(0, at - behind),
            "ep_return": -5 + 3 * np.exp(-((at - 100) ** 2) / 4000) * noise[at],
            "approx_kl": (3.0 if behind else 0.004) * noise[at],
            "pg_loss": -0.01 * noise[at],
            "vf_loss": 0.5 * noise[at],
        }
        for at in range(240)
    ]
    path = tmp_path / "learner.jsonl"
    path.write_text("\n".join(map(json.dumps, [head, *rows])) + "\n")
    diagnosis = diagnose_run(path)
    assert diagnosis.run.kind == "rl"
    assert not any(finding.symptom == "lr_high" and finding.state == "present" for finding in diagnosis.findings)
    assert (leading(diagnosis, 1) == ["off_policy_staleness"]) is stale
    assert any("learner_version - actor_version goes up to 25" in fact.text for fact in diagnosis.sheet.facts) is stale
