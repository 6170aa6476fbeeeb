"""What was learnt tells the causes of the playbook apart, and questions of this field from those of others."""

from __future__ import annotations

from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.learnt import NO_CAUSE, OTHER, features, learnt


def test_every_cause_of_the_playbook_was_learnt() -> None:
    assert set(learnt().causes) == {*catalogue().causes, NO_CAUSE, OTHER}


def test_words_that_stand_near_each_other_are_a_pair_whichever_comes_first() -> None:
    assert set(features(["loss", "nan"], ["nan_inf"])) == {"loss", "nan", "#nan_inf", "loss nan"}
    assert "loss nan" in set(features(["nan", "loss"], []))
    assert "a z" not in set(features(["a", "b", "c", "d", "z"], []))


def test_of_words_that_nothing_knows_nothing_is_likely() -> None:
    reading = learnt().read(["qwxz"], [])
    assert (reading.likely, reading.evidence) == ({}, 0.0)


def test_the_shares_of_the_causes_and_of_other_fields_are_one_whole() -> None:
    likely = learnt().read(["gpu", "util", "low"], []).likely
    assert max(likely, key=likely.__getitem__) == "dataloader_bottleneck"
    assert 0.5 < sum(likely.values()) <= 1
