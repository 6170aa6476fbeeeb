from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
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
