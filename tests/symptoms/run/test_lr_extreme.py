from __future__ import annotations

from dataclasses import replace

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

FULL: dict[str, Scalar] = {"finetuning_type": "full"}
LORA: dict[str, Scalar] = {"lora_r": 16}


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 5e-3, FULL),
        ("sft", 2e-2, LORA),
        ("preference", 5e-3, FULL),
        ("pretraining", 0.1, {"optim": "adamw_torch"}),
        ("supervised", 0.1, {"optim": "adam"}),
    ],
)
def test_a_rate_an_order_of_magnitude_above_the_usual_is_present(
    kind: str, rate: float, config: dict[str, Scalar]
) -> None:
    finding = seen("lr_extreme", run_of(learning_rate=[rate] * 20, kind=kind, config=config))
    assert finding.values["factor"] > 15
    assert finding.values["peak"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 5e-4, FULL),
        ("grpo", 1e-3, LORA),
        ("sft", 3e-3, LORA),
        ("pretraining", 0.02, {"optim": "adamw_torch"}),
        ("supervised", 1e-3, {"optim": "adam"}),
    ],
)
def test_a_rate_a_few_times_above_the_usual_is_absent(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_extreme", run_of(learning_rate=[rate] * 20, kind=kind, config=config)) is State.ABSENT


@pytest.mark.parametrize("config", [{}, {"optim": "sgd"}], ids=["optimizer unknown", "not Adam"])
def test_what_the_rate_is_for_must_be_known(config: dict[str, Scalar]) -> None:
    run = run_of(learning_rate=[1.0] * 20, kind="supervised", config=config)
    assert state("lr_extreme", run) is State.UNKNOWN


def test_a_rate_that_no_network_of_an_agent_learns_at_is_present() -> None:
    run = run_of(learning_rate=[0.3] * 20, loss=[0.1] * 20, reward=[12.0] * 20, kind="rl")
    assert state("lr_extreme", run) is State.PRESENT


def test_the_rate_at_which_a_table_is_learnt_cannot_be_told() -> None:
    run = run_of(learning_rate=[0.5] * 20, reward=[12.0] * 20, kind="rl")
    assert state("lr_extreme", run) is State.UNKNOWN


def test_a_usual_rate_of_an_agent_may_yet_be_too_high() -> None:
    run = run_of(learning_rate=[3e-3] * 20, policy_loss=[0.1] * 20, reward=[12.0] * 20, kind="rl")
    assert state("lr_extreme", run) is State.UNKNOWN


@pytest.mark.parametrize(("rate", "expected"), [(3.0, State.PRESENT), (0.1, State.UNKNOWN), (3e-4, State.UNKNOWN)])
def test_a_trainers_rate_is_judged_though_it_is_not_known_what_it_trains(rate: float, expected: State) -> None:
    run = replace(run_of(loss=[2.0] * 20, learning_rate=[rate] * 20), formats=("hf_trainer_state",))
    assert state("lr_extreme", run) is expected
