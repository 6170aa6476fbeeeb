from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mldebug_mcp import RunDiagnosis, diagnose_run

NOISE = np.random.default_rng(3).normal(size=401)


def diagnosed(
    train: Mapping[str, float],
    evaluated: Mapping[str, float],
    *,
    start: float = 2.3,
    low: float = 0.05,
    **settings: Any,
) -> RunDiagnosis:
    """Diagnose a run whose losses fall to `low`; what is evaluated is what is named, at the end and on the way."""
    records: list[dict[str, float]] = []
    for step in range(0, 401, 5):
        level = low + (start - low) * math.exp(-step / 60)
        if step:
            records.append({"step": step, "train/loss": level * float(1 + 0.03 * NOISE[step])} | dict(train))
        if step % 40 == 0:
            records.append({"step": step, "eval/loss": level} | dict(evaluated))
    return diagnose_run(records, settings=settings)


def texts(answer: RunDiagnosis) -> dict[str, str]:
    return {fact.fact: fact.text for fact in answer.sheet.facts}


def test_a_start_far_above_a_guess_with_a_checkpoint_that_is_known_to_be_good_is_of_other_tokens() -> None:
    answer = diagnosed({}, {}, start=10.1, low=1.8, init_ckpt_eval_loss=0.35, vocab_size=31, task="pretraining")
    assert "init_ckpt_eval_loss is 0.35, and the first eval/loss is 10.1" in texts(answer)["surer_than_guess_as_loaded"]
    assert answer.hypotheses[0].cause == "tokenizer_mismatch"


@pytest.mark.parametrize(("name", "stated"), [
    ("base_val_loss", True), ("parent/eval_loss", True), ("stage1_held_out_nll", True), ("base_loss", False),
])  # fmt: skip
def test_a_loss_of_the_weights_that_are_loaded_is_read_under_other_names(name: str, stated: bool) -> None:
    known: dict[str, Any] = {name: 1.2, "vocab_size": 103, "task": "pretraining"}
    answer = diagnosed({}, {}, start=6.7, low=2.9, **known)
    assert ("surer_than_guess_as_loaded" in texts(answer)) is stated
    assert (answer.hypotheses[0].cause == "tokenizer_mismatch") is stated


@pytest.mark.parametrize(("head", "start", "stated"), [
    ("base: wiki-char (card: 1.58 nats/char on held-out pages, alphabet 41)", 5.9, True),
    ("continue from ckpt essays-lm (dev loss there 1.88); vocab 200", 7.4, True),
    ("starting point: weights of songs-small\nheld-out loss of the starting point: 1.62\ncharacters: 58", 6.1, True),
    ("resumed weights: menus-lm, perplexity 5.7 on held-out menus. 140 pieces", 8.2, True),
    ("base: wiki-char (card: 1.58 nats/char on held-out pages, alphabet 41)", 1.9, False),
    ("last year's model had a held-out loss of 1.62\ncharacters: 58", 6.1, False),
])  # fmt: skip
def test_a_head_that_states_the_loss_of_the_weights_shows_that_their_tokens_are_others(
    head: str, start: float, stated: bool, tmp_path: Path
) -> None:
    level = [1.7 + (start - 1.7) * math.exp(-at / 4) for at in range(16)]
    lines = [f"it {20 * at:3d}  train {loss:.3f}  dev {loss + 0.06:.3f}" for at, loss in enumerate(level)]
    (tmp_path / "train.log").write_text("\n".join([head, *lines]) + "\n")
    answer = diagnose_run(tmp_path / "train.log")
    assert ("surer_than_guess_as_loaded" in texts(answer)) is stated
    assert (answer.hypotheses[0].cause == "tokenizer_mismatch") is stated


@pytest.mark.parametrize(("start", "name", "stated"), [
    (7.53, "base_eval_loss", True), (7.6, "init_ckpt_eval_loss", True), (7.1, "base_eval_loss", False),
    (7.53, "eval_loss_goal", False),
])  # fmt: skip
def test_a_start_a_little_above_a_guess_is_above_it_where_the_loss_of_the_checkpoint_is_known(
    start: float, name: str, stated: bool
) -> None:
    answer = diagnosed({}, {}, start=start, low=4.6, **{name: 3.6}, vocab_size=1024, task="sft")
    assert ("surer_than_guess" in texts(answer)) is stated
    assert (answer.hypotheses[0].cause == "tokenizer_mismatch") is stated


@pytest.mark.parametrize("start", [math.log(31), 0.4], ids=["a guess", "as it was"])
def test_a_start_at_a_guess_or_where_the_checkpoint_was_is_of_no_other_tokens(start: float) -> None:
    answer = diagnosed({}, {}, start=start, low=0.3, init_ckpt_eval_loss=0.35, vocab_size=31, task="pretraining")
    assert "surer_than_guess_as_loaded" not in texts(answer)


SFT: dict[str, Any] = {"prompt_tokens": 9, "completion_tokens": 9, "completion_only_loss": True, "dataset": "sft"}


def test_more_tokens_in_the_loss_than_answers_have_are_those_of_prompts_whatever_the_flag_says() -> None:
    train = {"mean_token_accuracy": 0.6, "loss_tokens_per_seq": 17.0}
    answer = diagnosed(train, {"eval_mean_token_accuracy": 1.0}, low=1.3, **SFT)
    assert "is 17 or more in all 80 records, and completion_tokens is 9" in texts(answer)["prompts_count_unmeant"]
    assert answer.hypotheses[0].cause == "prompt_not_masked"


def test_as_many_tokens_in_the_loss_as_answers_have_with_their_end_are_no_prompts() -> None:
    answer = diagnosed({"loss_tokens_per_seq": 10.0}, {}, **SFT)
    assert "prompts_count_unmeant" not in texts(answer)
    states = {finding.symptom: finding.state.value for finding in answer.findings}
    assert states["prompt_in_loss"] == "absent"


@pytest.mark.parametrize(("oracle", "near"), [(0.79, True), (0.5, False)])
def test_an_error_that_ends_at_that_of_a_logged_oracle_has_little_left_to_learn(oracle: float, near: bool) -> None:
    still = {"eval_oracle(AR2 true coef)": oracle, "eval_persistence": 1.4}
    answer = diagnosed({}, still, start=3.2, low=0.8, task="regression")
    assert ("near_data_floor" in texts(answer)) is near
    assert answer.hypotheses[0].cause == "healthy"


def test_an_evaluation_that_few_rows_at_once_make_worse_uses_statistics_of_the_batch() -> None:
    few = {"val_acc_bs2": 0.59, "val_loss_bs2": 1.7}
    answer = diagnosed({"train_acc": 0.99}, {"val_acc": 0.99, **few}, num_classes=10)
    assert "val_acc_bs2 ends at about 0.59 and val_acc at 0.99" in texts(answer)["evaluation_by_rows_at_once"]
    assert "held_out_sets_disagree" not in texts(answer)
    assert answer.hypotheses[0].cause == "eval_mode_bug"


def test_an_evaluation_that_is_as_good_with_few_rows_at_once_is_healthy() -> None:
    answer = diagnosed({"train_acc": 0.99}, {"val_acc": 0.99, "val_acc_bs2": 0.985}, num_classes=10)
    assert "evaluation_by_rows_at_once" not in texts(answer)
    assert answer.hypotheses[0].cause == "healthy"
