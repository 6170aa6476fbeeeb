from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

OUTCOMES = ("adam_epsilon_tiny", "adam_epsilon_large", "adam_betas_odd")


def present(config: dict[str, Scalar], kind: str = "supervised", norm: float = 1.0) -> list[str]:
    run = run_of(loss=decay(30), grad_norm=[norm] * 30, kind=kind, config=config)
    return [name for name in OUTCOMES if state(name, run) is State.PRESENT]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"adam_epsilon": 1e-16}, "adam_epsilon_tiny"),
        ({"adam_epsilon": 0.0, "optim": "adamw"}, "adam_epsilon_tiny"),
        ({"optimizer": "adam", "adam_eps": 0.1}, "adam_epsilon_large"),
        ({"adam_epsilon": 1e-5, "parameters": 1e12}, "adam_epsilon_large"),
        ({"adam_beta1": 0.99, "adam_beta2": 0.9}, "adam_betas_odd"),
        ({"adam_beta1": 0.9, "adam_beta2": 0.5}, "adam_betas_odd"),
        ({"adam_beta2": 0.99999}, "adam_betas_odd"),
    ],
)
def test_constants_that_make_steps_of_another_size_are_present(config: dict[str, Scalar], expected: str) -> None:
    assert present(config) == [expected]


@pytest.mark.parametrize(
    "config",
    [
        {"adam_epsilon": 1e-8, "adam_beta1": 0.9, "adam_beta2": 0.999},
        {"adam_epsilon": 1e-10, "adam_beta1": 0.9, "adam_beta2": 0.95},
        {"adam_epsilon": 1e-6, "adam_beta1": 0.95, "adam_beta2": 0.95},
        {"adam_epsilon": 1e-8, "adam_beta1": 0.0, "adam_beta2": 0.9},
        {"adam_epsilon": 1e-8, "adam_beta1": 0.5, "adam_beta2": 0.999},
        {"adam_epsilon": 1e-3, "parameters": 1e4},
        {"eps": 1e-3},
        {"eps": 1e-12},
        {"layer_norm_eps": 1e-12},
        {"optim": "rmsprop", "adam_epsilon": 0.01},
        {"optim": "lion", "adam_beta1": 0.95, "adam_beta2": 0.9},
        {},
    ],
)
def test_usual_constants_and_those_of_others_are_not_present(config: dict[str, Scalar]) -> None:
    assert present(config) == []


@pytest.mark.parametrize("kind", ["rl", "ppo", "grpo"])
def test_a_large_epsilon_of_a_policy_is_usual(kind: str) -> None:
    assert present({"adam_epsilon": 1.5e-3}, kind) == []


def test_epsilon_is_told_beside_the_gradient_of_a_typical_weight() -> None:
    config: dict[str, Scalar] = {"adam_epsilon": 1e-4, "parameters": 1e10}
    run = run_of(loss=decay(30), grad_norm=[1.0] * 30, config=config)
    assert seen("adam_epsilon_large", run).values["gradient"] == pytest.approx(1e-5)


def test_constants_that_are_not_configured_cannot_be_told() -> None:
    assert {state(name, run_of(loss=decay(30))) for name in OUTCOMES} == {State.UNKNOWN}
