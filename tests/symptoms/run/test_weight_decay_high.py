from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, state


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
