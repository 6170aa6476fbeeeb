from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, state


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"completion_only_loss": False}, State.PRESENT),
        ({"train_on_inputs": True}, State.PRESENT),
        ({"train_on_prompt": "true"}, State.PRESENT),
        ({"completion_only_loss": True}, State.ABSENT),
        ({"train_on_inputs": False}, State.ABSENT),
        ({}, State.UNKNOWN),
    ],
)
def test_the_setting_of_the_trainer_is_read(config: dict[str, Scalar], answer: State) -> None:
    assert state("prompt_in_loss", run_of(loss=[1.0, 0.9], config=config, kind="sft")) is answer


def test_pretraining_counts_every_token() -> None:
    run = run_of(loss=[1.0, 0.9], config={"train_on_inputs": True}, kind="pretraining")
    assert state("prompt_in_loss", run) is State.UNKNOWN
