"""An id is found as answers give it and as people write it."""

from __future__ import annotations

import pytest

from mldebug_mcp import UnknownIdError, explain


@pytest.mark.parametrize("name", ["lr_too_high", " lr_too_high ", "LR too high", "lr-too-high", "lr_too_high.1"])
def test_an_id_may_be_that_of_a_next_step_or_written_in_words(name: str) -> None:
    assert explain(name).id == "lr_too_high"


@pytest.mark.parametrize(
    ("asked", "meant"), [("overfited", "overfitting"), ("gpu out of memory", "out_of_memory"), ("no warmup", "warmup")]
)
def test_an_unknown_id_is_answered_with_ids_of_that_spelling_and_meaning(asked: str, meant: str) -> None:
    with pytest.raises(UnknownIdError, match=meant):
        explain(asked)
