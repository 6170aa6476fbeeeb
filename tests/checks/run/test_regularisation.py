from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"weight_decay": 0.5}, State.PRESENT),
        ({"weight_decay": 0.1}, State.ABSENT),
        ({"weight_decay": 1.0, "optim": "lion_32bit"}, State.ABSENT),
        ({}, State.UNKNOWN),
    ],
)
def test_the_configured_weight_decay_is_judged(config: dict[str, Scalar], answer: State) -> None:
    assert state("weight_decay_high", run_of(loss=[1.0, 0.9], config=config)) is answer


@pytest.mark.parametrize(
    ("optimizer", "rate", "weight_decay", "answer"),
    [
        ("sgd", 0.5, 0.05, State.PRESENT),
        ("lion", 1e-3, 50.0, State.PRESENT),
        ("sgd", 0.1, 5e-4, State.ABSENT),
        ("sgd", 2.0, 1e-3, State.ABSENT),
        ("adamw", 3e-3, 0.1, State.ABSENT),
        ("adamw", 5.0, 0.01, State.ABSENT),
        ("muon", 0.03, 1.2, State.ABSENT),
        ("lion", 1e-4, 10.0, State.ABSENT),
    ],
)
def test_what_a_weight_loses_in_a_step_is_judged(
    optimizer: str, rate: float, weight_decay: float, answer: State
) -> None:
    config: dict[str, Scalar] = {"optim": optimizer, "learning_rate": rate, "weight_decay": weight_decay}
    assert state("weight_decay_outweighs", run_of(loss=decay(20), config=config)) is answer


def test_the_share_that_a_weight_loses_is_told() -> None:
    config: dict[str, Scalar] = {"weight_decay": 0.5, "learning_rate": 0.1}
    assert seen("weight_decay_outweighs", run_of(loss=decay(20), config=config)).values["per_step"] == pytest.approx(
        0.05
    )
