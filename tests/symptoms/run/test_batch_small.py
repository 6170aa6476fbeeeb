from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, state


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
