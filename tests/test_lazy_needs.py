"""What a pattern needs, so that nothing is compiled for a text without it, lies in each text that it matches."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import mldebug_mcp
from mldebug_mcp.core.lazy import MAX_TEXTS_LOOKED_AT, regex
from mldebug_mcp.logs import line_prefixes

ANYTHING = "\0"
"""What stands between characters that are known."""
MOST_CASES = 10_000
"""Cases of a part of a pattern that are told apart; a part with more counts as anything."""


def cases(tree: Any) -> set[str]:
    """Return what texts that match look like: what is known of each, in lower case."""
    found = {""}
    for item in tree:
        following = cases_of(*item)
        if len(found) * len(following) > MOST_CASES:
            found, following = ({ANYTHING}, following) if len(found) > len(following) else (found, {ANYTHING})
        found = {before + after for before, after in product(found, following)}
    return found


def cases_of(kind: object, about: Any) -> set[str]:  # noqa: PLR0911 - one for each kind of part
    if kind is op.LITERAL:
        return {chr(about).lower()}
    if kind is op.IN and len(about) <= 3 and all(part is op.LITERAL for part, _ in about):
        return {chr(character).lower() for _, character in about}
    if kind is op.BRANCH:
        return set().union(*(cases(branch) for branch in about[1]))
    if kind is op.SUBPATTERN:
        return cases(about[3])
    if kind is op.ATOMIC_GROUP:
        return cases(about)
    if kind is op.ASSERT:  # what follows is matched again, or lies behind the match
        return {f"{ANYTHING}{case}{ANYTHING}" for case in cases(about[1])}
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, repeated = about
        once = cases(repeated)
        if (least, most) == (1, 1):
            return once
        if (least, most) == (0, 1):
            return {"", *once}
        return {(case if len(once) > 1 else case * least) + ANYTHING for case in once} if least else {ANYTHING}
    return {""} if kind in (op.AT, op.ASSERT_NOT) else {ANYTHING}


def needy_patterns() -> Iterator[tuple[str, Any]]:
    def within(value: object) -> Iterator[object]:
        if hasattr(type(value), "_cannot_match"):
            yield value
        elif isinstance(value, list | tuple):
            for part in value:
                yield from within(part)
        elif isinstance(value, dict):
            yield from within(list(value.values()))

    for module in pkgutil.walk_packages(mldebug_mcp.__path__, "mldebug_mcp."):
        if module.name.startswith(("mldebug_mcp.logs", "mldebug_mcp.judge", "mldebug_mcp.checks", "mldebug_mcp.core")):
            for name, value in vars(import_module(module.name)).items():
                yield from ((f"{module.name}.{name}", pattern) for pattern in within(value))


def test_each_text_that_a_pattern_matches_contains_something_that_it_needs() -> None:
    patterns = list(needy_patterns())
    assert len(patterns) > 50
    wrong = [
        (name, case)
        for name, pattern in patterns
        for case in cases(_parser.parse(pattern._source, pattern._flags))
        if case.isascii() and not any(need in case for need in pattern._needs)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text", ["", "a train loss 0.1", "A TRAIN loss", "tra1n", "eval 2", "ŧrain val", "two vals, one val"]
)
def test_a_pattern_that_needs_something_answers_as_one_that_is_compiled(text: str) -> None:
    def answers(made: Callable[[], re.Pattern[str]]) -> list[str]:
        matches = [str(found) for found in (made().search(text), made().match(text), made().fullmatch(text))]
        return [*matches, *map(str, made().finditer(text)), *made().findall(text), made().sub("x", text)]

    source = r"(train|val)\w*"
    assert answers(lambda: regex(source, re.IGNORECASE, needs=("train", "val"))) == answers(
        lambda: re.compile(source, re.IGNORECASE)
    )


def test_letters_beyond_ascii_that_match_where_case_is_ignored_are_found() -> None:
    assert regex("scale", re.IGNORECASE, needs="scale").search("loſs ſcale")
    assert regex("a b", needs="a b").split("1a b2") == ["1", "2"]


def test_a_pattern_finds_what_comes_late() -> None:
    pattern = regex(r"late\d", needs="late")
    assert not any(pattern.search("early1") for _ in range(2 * MAX_TEXTS_LOOKED_AT))
    assert pattern.search("early1 late1")


def test_a_line_in_which_no_logger_is_looked_for_begins_as_none_writes_it() -> None:
    written = [
        f"{path}{line}"
        for path in ("", "  ", "step 3 ", "loss ")
        for line in (
            "2024-01-01 10:00:00 INFO loss 2", "INFO loss 2", "trainer WARNING loss 2", "train.py:12 loss 2",
            "Jan 3 10:00:00 host a: loss 2", "Mon Jan  1 10:00:00 2024 loss 2", "I0101 10:00:00.1 12 a.cc:3] loss",
            "SUCCESS loss 2", "12.3s 4 loss 2", ">> loss 2",
        )
    ]  # fmt: skip
    samples = Path(__file__).parent / "logs" / "samples"
    for path in samples.rglob("*.[lto][oxu][gt]*"):
        written += path.read_text(encoding="utf-8", errors="replace").splitlines()[:300]
    assert len(written) > 1000
    assert [
        line for line in written if line_prefixes._LOGGING.match(line) and not line_prefixes._may_be_logged(line)
    ] == []
