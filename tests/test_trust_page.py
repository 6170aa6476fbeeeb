"""The page on trust: every promise names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT


def test_every_test_that_the_page_names_stands_where_it_says() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    named = 0
    file: Path | None = None
    for word in re.findall(r"`((?:\w+/)?test_\w+(?:\.py)?)`", page):
        if word.endswith(".py"):
            file = ROOT / "tests" / word
        else:
            assert file is not None
            assert re.search(rf"^(?:async )?def {word}\(", file.read_text(encoding="utf-8"), re.MULTILINE), (file, word)
            named += 1
    assert named > 30


def test_every_promise_of_the_page_names_a_test() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\|[^\n]*\| held by \|\n\|[ |-]*\n((?:\|[^\n]*\n)+)", page, re.MULTILINE)
    promises = [line for table in tables for line in table.splitlines()]
    assert len(promises) > 50
    for promise in promises:
        assert re.search(r"`test_\w+`", promise.removesuffix("|").rpartition(" | ")[2]), promise
