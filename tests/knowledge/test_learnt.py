"""What was learnt tells the causes of the playbook apart, and questions of this field from those of others."""

from __future__ import annotations

from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.search_index import NO_CAUSE, OTHER, features, learnt


def test_every_cause_of_the_playbook_was_learnt() -> None:
    assert set(learnt().causes) == {*catalogue().causes, NO_CAUSE, OTHER}


def test_words_that_stand_near_each_other_are_a_pair_whichever_comes_first() -> None:
    assert set(features(["loss", "nan"], ["nan_inf"], "", "")) == {"loss", "nan", "#nan_inf", "loss nan"}
    assert "loss nan" in set(features(["nan", "loss"], [], "", ""))
    assert "a z" not in set(features(["a", "b", "c", "d", "z"], [], "", ""))


def test_a_question_is_known_by_its_small_words_too_and_by_the_words_next_to_each_other() -> None:
    found = set(features([], [], "All the same", ""))
    assert {".all", ".the", ".same", "_all the", "_the same"} <= found


def test_numbers_with_their_units_and_names_of_models_are_no_words_of_a_question() -> None:
    assert set(features([], [], "llama 7b lr 0.1", "resnet50")) == {".lr"}


def test_long_words_are_known_by_their_pieces_so_that_a_slip_leaves_most_of_them() -> None:
    right, wrong = (
        {one for one in features([], [], "", said) if one.startswith("~")} for said in ("overfitting", "overfiting")
    )
    assert {"~<ove", "~fitt", "~ting>"} <= right
    assert len(right & wrong) > len(right) / 2
    assert not {one for one in features([], [], "", "nan") if one.startswith("~")}


def test_of_words_that_nothing_knows_nothing_is_likely() -> None:
    reading = learnt().read(["qwxz"], [], "", "")
    assert (reading.likely, reading.evidence) == ({}, 0.0)


def test_the_shares_of_the_causes_and_of_other_fields_are_one_whole() -> None:
    likely = learnt().read(["gpu", "util", "low"], [], "gpu util is low", "gpu util is low").likely
    assert max(likely, key=likely.__getitem__) == "dataloader_bottleneck"
    assert 0.5 < sum(likely.values()) <= 1
