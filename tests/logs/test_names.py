"""What the names of metrics say."""

from __future__ import annotations

from collections import Counter

import pytest

from mldebug_mcp.logs.names import canonical, is_part_of_loss, is_training_loss, normal
from mldebug_mcp.logs.spellings import FACTORS, SPELLINGS

EVERY_SPELLING = [spelling for spellings in SPELLINGS.values() for spelling in spellings]


def test_every_spelling_stands_once_in_the_table_as_names_are_looked_up() -> None:
    assert [spelling for spelling, times in Counter(EVERY_SPELLING).items() if times > 1] == []
    assert [spelling for spelling in EVERY_SPELLING if normal(spelling) != spelling] == []
    assert [spelling for spelling in FACTORS if spelling not in EVERY_SPELLING] == []


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Train Loss", "loss"),
        ("Val. Loss", "eval_loss"),
        ("Test set loss", "eval_loss"),
        ("max mem", "memory"),
        ("loss (val)", "eval_loss"),
        ("validation_f1", "eval_f1"),
        ("dev/wer", "eval_wer"),
        ("valid_action", "valid_action"),
        ("val/clipfrac_avg", "val/clipfrac_avg"),
        ("train/loss_cls", "loss_cls"),
        ("train_time_limit", "train_time_limit"),
        ("mean_100_episode_reward", "reward"),
        ("lr-AdamW/pg1", "learning_rate"),
    ],
)
def test_a_name_has_the_canonical_one_of_what_it_means(spelling: str, name: str) -> None:
    assert canonical(spelling) == name


@pytest.mark.parametrize(
    ("name", "loss", "part"),
    [
        ("loss", True, True),
        ("loss_cls", True, True),
        ("D_real", True, True),
        ("rpn_cls", False, True),
        ("kl", False, True),
        ("eval_loss_cls", False, False),
        ("val_dice", False, False),
        ("loss_scale", False, False),
        ("accuracy", False, False),
    ],
)
def test_a_loss_of_training_and_its_parts_are_known_by_their_names(name: str, *, loss: bool, part: bool) -> None:
    assert (is_training_loss(name), is_part_of_loss(name)) == (loss, part)
