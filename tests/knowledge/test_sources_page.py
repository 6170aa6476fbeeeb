"""The page that says where the sections of well-known guides live: what it names exists, and is found by its words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mldebug_mcp import explain, search_folklore

PAGE = Path(__file__).parents[2] / "docs" / "sources.md"
ROWS = [
    (cells[1], cells[2], re.findall(r"`(\w+)`", cells[3]))
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "`" in line and len(cells := [cell.strip() for cell in line.split("|")]) == 5
]


def test_the_page_names_the_sections_of_four_guides() -> None:
    assert PAGE.read_text(encoding="utf-8").count("\n## ") == 4
    assert len(ROWS) >= 65


@pytest.mark.parametrize(("section", "ids"), [(row[0], row[2]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_every_place_that_is_named_exists(section: str, ids: list[str]) -> None:
    assert ids, section
    assert [explain(one).id for one in ids] == ids


@pytest.mark.parametrize(("words", "ids"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_section_is_found_by_its_words(words: str, ids: list[str]) -> None:
    answer = search_folklore(words)
    entries = {hit.id for hit in answer.entries}
    found = entries.union(*((quote.id, quote.source) for quote in answer.quotes))
    assert found.intersection(ids), sorted(found)
