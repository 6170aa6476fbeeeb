"""Numbers in a question are recognised by their formula, and others are left alone."""

from __future__ import annotations

import pytest

from mldebug_mcp import search_folklore
from mldebug_mcp.knowledge.search_index import AT_CHANCE, AT_START, OF_PAIRS, OF_SOFTMAX, meanings


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("loss is 2.302 on cifar10", 10),
        ("stays at 2.3026", 10),
        ("loss 2.303", 10),
        ("loss stuck at 6.9", 1000),
        ("6.907 on imagenet", 1000),
        ("binary loss of 0.693", 2),
        ("loss 10.82 and does not move", 50_257),
        ("1.386 with four classes", 4),
        ("loss 3.871 with 48 classes", 48),
        ("infonce at 5.951 with batch size 384", 384),
    ],
)
def test_the_loss_of_a_uniform_guess_is_recognised_rounded_or_cut_off(question: str, count: int) -> None:
    (found,) = meanings(question)
    assert found.is_.startswith(f"ln {count},")
    assert found.tags == AT_CHANCE


def test_a_first_loss_over_a_vocabulary_is_a_start_and_a_loss_of_pairs_tells_nothing_apart() -> None:
    assert next(meanings("gpt2 loss starts at 10.82")).tags == AT_START
    assert next(meanings("dpo loss stays at 0.6931")).tags == OF_PAIRS


@pytest.mark.parametrize(
    ("question", "least"),
    [
        ("will not go under 1.46 with ten classes", "ln(1 + 9/e)"),
        ("converges to 3.62 on cifar100", "ln(1 + 99/e)"),
        ("cannot get below 4.13 with 168 classes", "ln(1 + 167/e)"),
    ],
)
def test_the_least_loss_of_a_softmax_that_is_applied_twice_is_recognised(question: str, least: str) -> None:
    (found,) = meanings(question)
    assert found.is_.startswith(least)
    assert found.tags == OF_SOFTMAX


@pytest.mark.parametrize(
    "question", ["first loss is 11.9 for a 32k vocabulary", "initial cross entropy 38 on a 1000 class problem"]
)
def test_a_first_loss_above_that_of_a_uniform_guess_is_told(question: str) -> None:
    (found,) = meanings(question)
    assert found.is_.startswith("above ln ")
    assert found.tags == AT_START


@pytest.mark.parametrize(
    "question",
    [
        "val loss 1.46 after epoch 3",
        "loss is 4.7 from the first step with 1000 classes",
        "first epoch of 10 classes: 120 s",
    ],
)
def test_a_number_that_is_neither_least_nor_above_means_nothing(question: str) -> None:
    assert list(meanings(question)) == []


def test_a_count_of_none_is_no_count() -> None:
    assert list(meanings("initial loss 4.7 with 0 labels")) == []


@pytest.mark.parametrize(
    "question", ["version 2.302.1", "accuracy 69.3%", "lr 0.001", "at 2.41", "step 1000", "7 epochs"]
)
def test_other_numbers_mean_nothing(question: str) -> None:
    assert list(meanings(question)) == []


@pytest.mark.parametrize(
    ("question", "said"), [("loss = 87.3365", "smallest normal float32"), ("max is 65504", "largest number of fp16")]
)
def test_bounds_of_number_formats_are_recognised(question: str, said: str) -> None:
    assert said in next(meanings(question)).is_


def test_an_answer_says_what_a_number_of_the_question_is() -> None:
    notes = search_folklore("my cifar10 loss stays at 2.302").notes
    assert "2.302 is ln 10, the cross entropy of a uniform guess among 10" in notes


def test_classes_that_are_none_are_no_count() -> None:
    answer = search_folklore("long tail data, head classes are fine, tail classes 0 recall, 0 classes found")
    assert any(entry.id == "class_imbalance" for entry in answer.entries)
