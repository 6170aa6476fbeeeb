from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mldebug_mcp.core.text import capitalised, clean, figure, fits, percent, shorten


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("loss 2.5", "loss 2.5"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;https://evil\x07link\x1b]8;;\x07", "link"),
        ("a\u202eb\u200bc\x00d", "abcd"),
        ("bad\udcffbyte", "bad\ufffdbyte"),
        ("naïve 日本語 ✓\n\ttab", "naïve 日本語 ✓\n\ttab"),
    ],
)
def test_escapes_and_invisible_characters_go_and_words_stay(dirty: str, cleaned: str) -> None:
    assert clean(dirty) == cleaned


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 50))
def test_shortened_text_is_one_encodable_line_within_the_limit(text: str, limit: int) -> None:
    line = shorten(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert line.encode("utf-8").decode("utf-8") == line


@pytest.mark.parametrize(
    ("value", "said"),
    [(123892.0, "123892"), (40490.18, "4.049e+04"), (0.5, "0.5"), (3e9, "3e+09"), (float("nan"), "nan")],
)
def test_a_figure_has_four_digits_and_a_whole_number_all(value: float, said: str) -> None:
    assert figure(value) == said


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (0.0, "0%"),
        (0.0001, "<1%"),
        (0.005, "<1%"),
        (0.006, "1%"),
        (0.826, "83%"),
        (0.994, "99%"),
        (0.9999, ">99%"),
        (1.0, "100%"),
    ],
)
def test_a_percentage_rules_nothing_out_and_makes_nothing_sure(probability: float, said: str) -> None:
    assert percent(probability) == said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("give the loss the raw outputs", "Give the loss the raw outputs"),
        ("nn.ModuleList or nn.ModuleDict", "nn.ModuleList or nn.ModuleDict"),
        ("labels = input_ids.clone(), then mask", "labels = input_ids.clone(), then mask"),
        ("reduction='none'", "reduction='none'"),
        ("eval_loss rises", "eval_loss rises"),
    ],
)
def test_a_sentence_gets_a_capital_letter_and_code_keeps_its_own(text: str, sentence: str) -> None:
    assert capitalised(text) == sentence


@pytest.mark.parametrize(
    "pattern", ["loss", "*", "*loss", "loss*", "*loss*", "a*b", "a*b*a", "*a*b*", "a**b", "aba*ba"]
)
def test_a_pattern_with_stars_stands_for_what_the_standard_library_says(pattern: str) -> None:
    texts = ["", "loss", "eval_loss", "loss_eval", "ab", "aba", "abba", "axb", "xaxbx", "ababa", "a", "b\nloss"]
    assert [fits(text, pattern) for text in texts] == [fnmatchcase(text, pattern) for text in texts]
