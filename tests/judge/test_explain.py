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


def test_sources_that_disagree_are_set_side_by_side_with_date_and_regime() -> None:
    text = explain("bad_data_pocket").text
    sides = text[text.index("**Side by side:**") :]
    assert "PaLM: Scaling Language Modeling with Pathways, 2022, pretraining of language models, up to 540B" in sides
    assert 'We do not believe that the spikes were caused by "bad data" per se' in sides
    assert "bad data pocket" in sides
    assert "Side by side" not in explain("out_of_memory").text
