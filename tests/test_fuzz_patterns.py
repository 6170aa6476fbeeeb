"""What the fuzzer of regular expressions takes for slow, and that it finds out soon."""

from __future__ import annotations

import re
import time

import pytest
from benchmarks.fuzz import patterns

LIMIT = 0.5


@pytest.mark.parametrize("pattern", ["a*b", "(?:a|a)*b", "(?:a+)+b", r"(?:loss\w*\s*\d)"])
def test_a_pattern_that_is_quadratic_or_worse_is_found_within_seconds(pattern: str) -> None:
    started = time.process_time()
    slow = patterns.slow_units({re.compile(pattern): "here"}, LIMIT)
    assert slow
    assert time.process_time() - started < 10 * LIMIT


@pytest.mark.parametrize("pattern", [r"\d+", "a{0,80}b", r"loss\w{0,40}\s*+\d"])
def test_a_pattern_whose_parts_are_bounded_is_not_slow(pattern: str) -> None:
    assert not patterns.slow_units({re.compile(pattern): "here"}, LIMIT)


def test_texts_that_repeat_to_the_same_are_one() -> None:
    assert [patterns.root(text) for text in ("a", "aa", "abab", "aba", " a a")] == ["a", "a", "ab", "aba", " a"]


def test_a_part_is_tried_behind_those_before_it_with_a_blank_and_without() -> None:
    assert {"run", "run ", "training "} <= set(patterns.units(re.compile(r"\b(?:run|training)\b(?: done)*")))
