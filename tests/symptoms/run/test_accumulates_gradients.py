from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, state


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"gradient_accumulation_steps": 8}, State.PRESENT),
        ({"gradient_accumulation_steps": 1}, State.ABSENT),
        ({}, State.UNKNOWN),
    ],
)
def test_the_number_of_micro_batches_is_read(config: dict[str, Scalar], answer: State) -> None:
    assert state("accumulates_gradients", run_of(loss=[1.0, 0.9], config=config)) is answer
