"""Numbers in a question are recognised by their formula, and others are left alone."""

from __future__ import annotations

import pytest

from mldebug_mcp import search_folklore
from mldebug_mcp.knowledge.numbers import AT_CHANCE, AT_START, OF_PAIRS, meanings


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
