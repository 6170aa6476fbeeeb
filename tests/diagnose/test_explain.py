"""An id is found as answers give it and as people write it."""

from __future__ import annotations

import pytest

from mldebug_mcp import explain


@pytest.mark.parametrize("name", ["lr_too_high", " lr_too_high ", "LR too high", "lr-too-high", "lr_too_high.1"])
def test_an_id_may_be_that_of_a_next_step_or_written_in_words(name: str) -> None:
    assert explain(name).id == "lr_too_high"
