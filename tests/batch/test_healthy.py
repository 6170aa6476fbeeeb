"""Right pipelines yield nothing above info."""

from __future__ import annotations

from typing import Any

import pytest
from tests.batch.kit import Inspect, Maker, graver

CHAT = ["chatml", "llama3", "mistral", "gemma", "own"]


@pytest.mark.parametrize("family", CHAT)
@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("given", [True, False])
def test_a_masked_conversation_batch_is_healthy(family: str, turns: int, given: bool, inspect: Inspect) -> None:
    made = Maker(family)
    assert graver(inspect(made.batch(turns=turns), made.tokenizer if given else None, "sft")) == {}
    assert graver(inspect(made.batch(turns=turns), made.tokenizer if given else None)) == {}


@pytest.mark.parametrize("family", CHAT)
def test_rows_before_collation_are_healthy(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    assert graver(inspect(made.rows(), made.tokenizer, "sft")) == {}


def test_pad_as_eos_with_labelled_ends_is_healthy(inspect: Inspect) -> None:
    made = Maker("mistral")
    batch: dict[str, Any] = made.pad(made.rows(), pad=made.hf.eos_token_id)
    for tokenizer in (made.tokenizer, None):
        assert graver(inspect(batch, tokenizer, "sft")) == {}
        assert "pad_is_eos" not in inspect(batch, tokenizer, "sft")
