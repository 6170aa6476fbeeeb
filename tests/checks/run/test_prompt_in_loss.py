from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar
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


@pytest.mark.parametrize(("share", "answer"), [(1.0, State.PRESENT), (0.28, State.ABSENT)])
@pytest.mark.parametrize("name", ["label_frac", "train/loss_token_ratio", "supervisedFraction"])
def test_labels_that_all_count_hold_the_prompts_too(name: str, share: float, answer: State) -> None:
    run = run_of({name: [share] * 9}, loss=[1.0] * 9, kind="sft")
    assert state("prompt_in_loss", run) is answer


@pytest.mark.parametrize(("left_out", "answer"), [(16, State.PRESENT), (0, State.PRESENT), (300, State.UNKNOWN)])
def test_tokens_that_all_count_but_the_first_of_each_row_hold_the_prompts_too(left_out: int, answer: State) -> None:
    total = [640.0, 712.0, 655.0, 688.0, 701.0]
    columns = {"num_tokens": total, "num_target_tokens": [tokens - left_out for tokens in total]}
    run = run_of(columns, loss=[1.0] * 5, config={"per_device_train_batch_size": 16}, kind="sft")
    assert state("prompt_in_loss", run) is answer
