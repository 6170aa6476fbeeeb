"""Every number that decides what is measured or seen has a name, and says where it is from."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs import update_thresholds

UNNAMED = 330
"""Numbers inside of functions: a bound that may only be lowered."""


def test_every_threshold_says_where_it_is_from() -> None:
    found = update_thresholds.thresholds()
    assert len(found) > 500
    assert [f"{one.where}: {one.name}" for one in found if not one.origin or not one.reason] == []


def test_numbers_without_a_name_do_not_become_more() -> None:
    assert sum(len(update_thresholds.unnamed(path)) for path in update_thresholds.modules()) <= UNNAMED


def test_the_page_lists_what_the_source_says() -> None:
    page = update_thresholds.PAGE.read_text(encoding="utf-8")
    assert page == update_thresholds.page(update_thresholds.thresholds()), "run: python docs/update_thresholds.py"


@pytest.mark.parametrize(
    ("source", "named", "unnamed"),
    [
        ('LEAST = 7\n"""Records. Chosen: fewer are noise."""\n', [("LEAST", "Chosen")], 0),
        ("LEAST = 7\n", [("LEAST", "")], 0),
        ("def seen(value: float) -> bool:\n    return value > 7\n", [], 1),
    ],
)
def test_a_number_is_found_by_its_name_or_by_its_lack_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, named: list[tuple[str, str]], unnamed: int
) -> None:
    folder = tmp_path / "src" / "mldebug_mcp" / "symptoms"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text(source)
    monkeypatch.setattr(update_thresholds, "ROOT", tmp_path)
    monkeypatch.setattr(update_thresholds, "FOLDERS", (folder,))
    assert [(one.name, one.origin) for one in update_thresholds.thresholds()] == named
    assert len(update_thresholds.unnamed(folder / "one.py")) == unnamed
