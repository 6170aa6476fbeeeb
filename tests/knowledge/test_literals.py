"""Words that a pattern needs: none is asked for that a match may lack."""

from __future__ import annotations

import re

import pytest

from mldebug_mcp.knowledge.errors import known_errors, match, ranked, required_words


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"CUDA out of memory", ("CUDA out of memory",)),
        (r"illegal memory|misaligned address", ("illegal memory", "misaligned address")),
        (r"Wrong (?:a|an) \d+ tensors? here", (" tensor",)),
        (r"exit code:? 137\b", ("exit code",)),
        (r"\[Errno 12\] no room", ("[Errno 12] no room",)),
        (r"the [a-z]{1,9} is gone", (" is gone",)),
        (r"(?:a long group|another) end", (" end",)),
        (r"rank{2,3} lost x", (" lost x",)),
    ],
)
def test_the_longest_run_of_plain_characters_of_each_alternative_is_asked_for(
    pattern: str, words: tuple[str, ...]
) -> None:
    assert required_words(pattern) == words


@pytest.mark.parametrize(
    "pattern", [r"(?i)cuda error", r"(?:one|two)", r"\d{3}", r"CUDA error|\w+", r"a|CUDA error", ""]
)
def test_a_pattern_that_may_match_without_any_word_asks_for_none(pattern: str) -> None:
    assert required_words(pattern) == ()


def test_nothing_is_missed_that_trying_every_pattern_finds() -> None:
    for text in (row.message for row in known_errors().values()):
        line = " ".join(text.split())
        tried = [row for row in known_errors().values() if row.fits(line)]
        assert match(text, warnings=True) == ranked(tried)


def test_hardly_any_pattern_has_to_be_tried_on_every_line() -> None:
    always = [row.id for row in known_errors().values() if row.pattern and not row.required_words]
    assert len(always) <= 3
    assert all(re.compile(row.pattern) for row in known_errors().values())
