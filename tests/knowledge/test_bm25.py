"""BM25 in memory: the scores of SQLite's FTS5, whatever form a word has."""

from __future__ import annotations

import re
import sqlite3

import pytest

from mldebug_mcp.knowledge.search_index import Bm25, Stems

ROWS = [
    ("loss spike", "the loss jumped and came back after a spike in the gradients"),
    ("nan", "the loss is nan from the first step, or the gradient is"),
    ("plateau", "it does not learn at all: 2.302 is the logarithm of ten"),
    ("hang", "all ranks wait for one that left"),
    ("memory", "memory grows step by step until the allocation fails"),
]
WEIGHTS = (2.0, 1.0)


@pytest.fixture(scope="module")
def texts() -> Bm25:
    return Bm25(ROWS, WEIGHTS, Stems(re.findall(r"\w+", " ".join(map(" ".join, ROWS)))))


@pytest.mark.parametrize("words", [["loss"], ["spikes", "gradient"], ["learning", "steps", "loss"], ["nan", "waiting"]])
def test_texts_are_ranked_with_the_scores_of_fts5(words: list[str], texts: Bm25) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE texts USING fts5(title, text, tokenize='porter unicode61')")
    connection.executemany("INSERT INTO texts VALUES (?, ?)", [(a, b.replace("2.302", "2302")) for a, b in ROWS])
    statement = "SELECT rowid - 1, -bm25(texts, 2.0, 1.0) FROM texts WHERE texts MATCH ? ORDER BY 2 DESC"
    expected = connection.execute(statement, (" OR ".join(words),)).fetchall()
    assert expected
    found = texts.ranked(words, len(ROWS))
    assert [place for place, _ in found] == [place for place, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected])


def test_no_more_texts_are_given_than_asked_for(texts: Bm25) -> None:
    assert len(texts.ranked(["loss", "memory", "ranks"], 10)) == 4
    assert texts.ranked(["loss", "memory", "ranks"], 2) == texts.ranked(["loss", "memory", "ranks"], 10)[:2]


def test_a_number_with_a_point_is_one_word(texts: Bm25) -> None:
    assert texts.holders("2.302").tolist() == [2]
    assert not texts.holders("302").size


@pytest.mark.parametrize("word", ["", "unheard", "two words", '"', "NEAR("])
def test_what_is_in_no_text_is_found_nowhere(word: str, texts: Bm25) -> None:
    assert not texts.holders(word).size
    assert texts.ranked([word], 5) == []
