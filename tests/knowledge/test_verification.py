"""Quotes are compared with copies and pages; what changed and what could not be read are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.playbook import normalised
from mldebug_mcp.knowledge.verification import readable, stands_in, verify
from mldebug_mcp.models import EvidenceReport

QUOTE = catalogue().quotes["bloom_patience"]


def states(report: EvidenceReport, source: str) -> set[str]:
    ids = {quote.id for quote in catalogue().quotes_of(source)}
    return {check.state for check in (*report.changed, *report.unreachable) if check.id in ids}


def test_offline_only_the_records_are_checked() -> None:
    report = verify(offline=True)
    assert report.quotes == len(catalogue().quotes)
    assert report.found == 0
    assert report.problems == []


def test_the_grades_of_all_quotes_are_counted_surest_first() -> None:
    report = verify(offline=True)
    assert list(report.grades) == ["primary", "compared", "secondary copy", "transcribed"]
    assert sum(report.grades.values()) == report.quotes
    assert report.grades["transcribed"] == 0


def test_a_quote_that_stands_in_a_copy_is_found_whatever_its_marks(tmp_path: Path) -> None:
    text = "\n\n".join(
        quote.text.replace("[...]", "and *more* of it") for quote in catalogue().quotes_of(QUOTE.source.id)
    )
    (tmp_path / f"{QUOTE.source.id}.md").write_text(text.replace("'", "\u2019").replace(" ", "\n  "), encoding="utf-8")
    report = verify(tmp_path)
    assert report.found == len(catalogue().quotes_of(QUOTE.source.id))
    assert states(report, QUOTE.source.id) == set()


def test_a_copy_with_other_words_is_reported_as_changed(tmp_path: Path) -> None:
    (tmp_path / f"{QUOTE.source.id}.md").write_text("quite another page", encoding="utf-8")
    assert states(verify(tmp_path), QUOTE.source.id) == {"changed"}


def test_a_source_without_a_copy_is_unreachable(tmp_path: Path) -> None:
    report = verify(tmp_path)
    assert len(report.unreachable) == report.quotes
    assert report.changed == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        verify(tmp_path / "nothing")


def test_pages_are_fetched_once_each_and_failures_are_unreachable() -> None:
    asked: list[str] = []

    def fetch(url: str) -> str:
        asked.append(url)
        if "bigscience" in url:
            return f"<!DOCTYPE html><html><script>x()</script><p>{QUOTE.text.replace('[...]', '<br>x</br>')}</p></html>"
        raise OSError("no network here")

    report = verify(fetch=fetch)
    assert len(asked) == len(set(asked))
    assert QUOTE.id not in {check.id for check in (*report.changed, *report.unreachable)}
    assert "changed" in states(report, QUOTE.source.id)
    assert states(report, "karpathy_recipe") == {"unreachable"}


def test_fragments_have_to_stand_in_order() -> None:
    assert stands_in("one [...] three", "one two three")
    assert not stands_in("three [...] one", "one two three")


def test_a_page_is_read_without_tags_and_targets_of_links() -> None:
    assert readable("<!doctype html><p>a <b>bold</b>&amp;brave</p>") == "a bold &brave"
    assert readable("see [the page](https://x.org/a_b) **now**") == normalised("see the page now")
