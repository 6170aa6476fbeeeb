from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"per_device_train_batch_size": 1}, State.PRESENT),
        ({"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}, State.PRESENT),
        ({"per_device_train_batch_size": 1, "gradient_accumulation_steps": 16}, State.ABSENT),
        ({"per_device_train_batch_size": 1, "packing": True}, State.ABSENT),
        ({"per_device_train_batch_size": 4, "global_batch_size": 1024}, State.ABSENT),
        ({"per_device_train_batch_size": 1, "nproc_per_node": 4, "nnodes": 2}, State.ABSENT),
        ({}, State.UNKNOWN),
    ],
)
def test_the_effective_batch_is_judged(config: dict[str, Scalar], answer: State) -> None:
    assert state("batch_small", run_of(loss=[1.0, 0.9], config=config)) is answer


MARGINS = {"rewards/margins": [0.1] * 9, "rewards/chosen": [0.1] * 9, "rewards/rejected": [0.0] * 9}


@pytest.mark.parametrize("beta", [0.001, 0.004])
def test_a_beta_far_below_the_usual_is_present(beta: float) -> None:
    finding = seen("beta_low", run_of(MARGINS, kind="preference", config={"beta": beta}))
    assert finding.values["beta"] == beta
    assert "0.01 to 0.5" in finding.summary


@pytest.mark.parametrize("beta", [0.005, 0.01, 0.1, 2.5])
def test_a_usual_or_large_beta_is_absent(beta: float) -> None:
    assert state("beta_low", run_of(MARGINS, kind="preference", config={"beta": beta})) is State.ABSENT


@pytest.mark.parametrize(
    ("kind", "config"),
    [("preference", {}), ("preference", {"beta": 0.001, "loss_type": "simpo"}), ("grpo", {"beta": 0.001})],
    ids=["not configured", "another loss", "another kind of run"],
)
def test_what_beta_is_for_must_be_known(kind: str, config: dict[str, Scalar]) -> None:
    assert state("beta_low", run_of(MARGINS, kind=kind, config=config)) is State.UNKNOWN


def told(config: dict[str, Scalar], kind: str) -> list[str]:
    run = run_of(loss=[1.0] * 20, reward=[1.0] * 20, kind=kind, config=config)
    names = ("adam_epsilon_tiny", "adam_betas_odd", "discount_above_one", "entropy_bonus_negative")
    return [name for name in names if state(name, run) is State.PRESENT]


@pytest.mark.parametrize(
    ("config", "kind", "expected"),
    [
        ({"adam_epsilon": 1e-16}, "supervised", "adam_epsilon_tiny"),
        ({"adam_epsilon": 0.0, "optim": "adamw"}, "supervised", "adam_epsilon_tiny"),
        ({"eps": 1e-30, "optimizer": "adam"}, "supervised", "adam_epsilon_tiny"),
        ({"adam_beta1": 0.99, "adam_beta2": 0.9}, "supervised", "adam_betas_odd"),
        ({"adam_beta2": 0.99999}, "supervised", "adam_betas_odd"),
        ({"gamma": 1.2}, "rl", "discount_above_one"),
        ({"gamma": 0.99, "ent_coef": -0.3}, "rl", "entropy_bonus_negative"),
    ],
)
def test_constants_with_which_nothing_is_learnt_are_present(
    config: dict[str, Scalar], kind: str, expected: str
) -> None:
    assert told(config, kind) == [expected]


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"adam_epsilon": 1e-8, "adam_beta1": 0.9, "adam_beta2": 0.999}, "supervised"),
        ({"adam_epsilon": 1e-10, "adam_beta1": 0.9, "adam_beta2": 0.95}, "supervised"),
        ({"adam_epsilon": 1e-8, "adam_beta1": 0.0, "adam_beta2": 0.9}, "supervised"),
        ({"layer_norm_eps": 1e-12}, "supervised"),
        ({"eps": 1e-30, "optimizer": "sgd"}, "supervised"),
        ({"eps": 0.0, "optimizer": "adam"}, "supervised"),
        ({"optim": "lion", "adam_beta1": 0.95, "adam_beta2": 0.9}, "supervised"),
        ({"gamma": 1.0, "ent_coef": 0.0}, "ppo"),
        ({"gamma": 2.0}, "supervised"),
        ({}, "rl"),
    ],
)
def test_usual_constants_and_those_of_others_are_not_present(config: dict[str, Scalar], kind: str) -> None:
    assert told(config, kind) == []
