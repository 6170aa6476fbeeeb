from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, seen, state

FULL: dict[str, Scalar] = {"finetuning_type": "full"}
LORA: dict[str, Scalar] = {"lora_r": 16}


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 1e-3, FULL),
        ("sft", 4e-3, LORA),
        ("sft", 4e-3, {}),
        ("preference", 1e-4, FULL),
        ("preference", 1e-3, LORA),
        ("grpo", 1e-4, FULL),
        ("supervised", 0.03, {"optim": "adamw_torch"}),
    ],
)
def test_a_rate_far_above_the_usual_is_present(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    finding = seen("lr_high", run_of(learning_rate=np.linspace(rate, 0, 50), kind=kind, config=config))
    assert finding.state is State.PRESENT
    assert finding.values["peak"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 1e-4, FULL),
        ("sft", 1e-3, LORA),
        ("preference", 5e-6, FULL),
        ("preference", 1e-4, LORA),
        ("pretraining", 1e-3, {"optim": "adamw"}),
    ],
)
def test_a_usual_rate_is_absent(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_high", run_of(learning_rate=[rate] * 20, kind=kind, config=config)) is State.ABSENT


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [("sft", 1e-3, {}), ("unknown", 1.0, {}), ("supervised", 0.1, {}), ("supervised", 0.1, {"optim": "sgd"})],
    ids=["LoRA or not", "kind unknown", "optimizer unknown", "not Adam"],
)
def test_what_the_rate_is_for_must_be_known(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_high", run_of(learning_rate=[rate] * 20, kind=kind, config=config)) is State.UNKNOWN


def test_the_configured_rate_is_enough() -> None:
    assert state("lr_high", run_of(loss=[1.0] * 9, kind="sft", config={"learning_rate": 4e-3})) is State.PRESENT


def test_of_a_rate_that_is_extreme_another_symptom_tells() -> None:
    run = run_of(learning_rate=[0.1] * 20, kind="sft", config=LORA)
    assert state("lr_high", run) is State.UNKNOWN
    assert state("lr_extreme", run) is State.PRESENT
