from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, state

PURE: dict[str, Scalar] = {"torch_dtype": "bfloat16", "optim": "adamw_torch", "learning_rate": 1e-6}


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({}, State.PRESENT),
        ({"torch_dtype": "float16", "learning_rate": 1e-7}, State.PRESENT),
        ({"torch_dtype": None, "precision": "bf16-true"}, State.PRESENT),
        ({"learning_rate": 1e-3}, State.ABSENT),
        ({"torch_dtype": "float32"}, State.ABSENT),
        ({"torch_dtype": None, "precision": "bf16-mixed"}, State.UNKNOWN),
        ({"torch_dtype": None, "bf16": True}, State.UNKNOWN),
        ({"lora_r": 8}, State.UNKNOWN),
        ({"zero_stage": 2}, State.UNKNOWN),
        ({"optim": "sgd"}, State.UNKNOWN),
    ],
)
def test_steps_smaller_than_the_rounding_of_weights_kept_in_half_precision_are_present(
    config: dict[str, Scalar], answer: State
) -> None:
    run = run_of(loss=decay(30), kind="sft", config={**PURE, **config})
    assert state("updates_below_rounding", run) is answer
