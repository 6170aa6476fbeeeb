"""What the names of metrics say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.logs.names.metrics import (
    canonical,
    factor,
    is_known,
    is_telling,
    is_training_loss,
    may_hold_names,
)

SPELLINGS: dict[str, list[str | float]] = json.loads(Path(__file__).with_name("spellings.json").read_text("utf-8"))
"""Names that frameworks log: name → canonical name, factor."""


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_a_framework_logs_has_its_canonical_name(spelling: str) -> None:
    assert [canonical(spelling), factor(spelling)] == SPELLINGS[spelling]


@pytest.mark.parametrize("spelling", [*SPELLINGS, "D_A", "cycle_B", "idt_A", "l_g_pix", "valid_0's l2", "loss^2"])
def test_no_line_with_a_name_of_a_metric_is_dismissed(spelling: str) -> None:
    if is_known(spelling) or is_telling(spelling):
        assert may_hold_names(f"xyz {spelling} xyz")


def test_a_line_of_unknown_words_is_dismissed() -> None:
    assert not may_hold_names("copied one blob out of that bucket")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Train Loss", "loss"),
        ("Val. Loss", "eval_loss"),
        ("Test set loss", "eval_loss"),
        ("max mem", "memory"),
        ("loss (val)", "eval_loss"),
        ("validation_f1", "eval_f1"),
        ("ValRecall0", "eval_recall_0"),
        ("valF1Macro", "eval_f1_macro"),
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
    ("name", "loss"),
    [
        ("loss", True),
        ("loss_cls", True),
        ("D_real", True),
        ("rpn_cls", False),
        ("kl", False),
        ("eval_loss_cls", False),
        ("val_dice", False),
        ("loss_scale", False),
        ("accuracy", False),
    ],
)
def test_a_loss_of_training_and_its_named_parts_are_known_by_their_names(name: str, *, loss: bool) -> None:
    assert is_training_loss(name) == loss


@pytest.mark.parametrize("name", ["loss_weight", "reward_scale", "accuracy_threshold", "lr_decay", "learning_rate"])
def test_a_setting_is_no_result_of_training(name: str) -> None:
    assert not is_telling(name)
