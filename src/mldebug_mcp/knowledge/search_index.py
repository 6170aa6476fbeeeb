"""A full-text index in memory over whatever can be found: SQLite's FTS5, ranked by BM25, concepts and generality."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mldebug_mcp.knowledge.concepts import DOMAINS, STACK, STOPWORDS, concepts

GENERALITY_STEP = 0.06
"""Share of the score per level of generality, fitted on the first half of benchmarks/search."""
OTHER_DOMAIN = 0.55
"""What is left of the score of an entry of a special domain that nobody asked for (fitted as above)."""
# Columns: id, title, text, words of the tags, tags as single tokens, source. Fitted as above.
_WEIGHTS = "0.0, 2.5, 1.0, 1.5, 3.0, 0.4"


@dataclass(frozen=True, slots=True)
class Document:
    """Something that can be found.

    Args:
        kind: quote, cause, symptom, menu or error.
        id: Its id.
        title: A few words.
        summary: A sentence that an answer shows.
        text: All its text.
        tags: What it is filed under.
        domains: Domains it belongs to; empty for all.
        generality: 1 holds for almost any run, 5 for one setting of one tool.
        source: Who said it.
    """

    kind: str
    id: str
    title: str
    summary: str
    text: str
    tags: tuple[str, ...]
    domains: tuple[str, ...] = ()
    generality: int = 3
    source: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A document with its score: higher is better."""

    document: Document
    score: float


class Index:
    """Documents, searchable. It is only read after it was built, one query at a time, so threads may share it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents: Mapping[str, Document] = {f"{one.kind}:{one.id}": one for one in documents}
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute(
            "CREATE VIRTUAL TABLE documents USING fts5"
            "(key UNINDEXED, title, text, words, tags, source, tokenize='porter unicode61')"
        )
        self._connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", map(_row, self.documents.values())
        )

    def find(self, query: str) -> list[Found]:
        """Return the documents that answer a question, best first; equal scores in the order of their keys."""
        question = query.lower()
        terms = _terms(question)
        if not terms:
            return []
        wanted = {name for name, words in DOMAINS.items() if words.search(question)}
        specific = STACK.search(question) is not None
        statement = f"SELECT key, bm25(documents, {_WEIGHTS}) FROM documents WHERE documents MATCH ?"  # noqa: S608
        with self._lock:
            rows = self._connection.execute(statement, (terms,)).fetchall()
        found = [
            Found(document, -rank * _fitness(document, wanted, specific=specific))
            for document, rank in ((self.documents[key], rank) for key, rank in rows)
        ]
        return sorted(found, key=lambda one: (-one.score, one.document.kind, one.document.id))


def _row(document: Document) -> tuple[str, str, str, str, str, str]:
    return (
        f"{document.kind}:{document.id}",
        document.title.replace("_", " "),
        document.text,
        " ".join(document.tags).replace("_", " "),
        " ".join(map(_token, document.tags)),
        document.source,
    )


def _token(tag: str) -> str:
    """Return a tag as one token that no word of a text equals."""
    return "q" + tag.replace("_", "") + "q"


def _terms(question: str) -> str:
    words = [word for word in re.findall(r"[^\W_]+", question) if word not in STOPWORDS]
    tags = [tag for concept in concepts() if concept.pattern.search(question) for tag in concept.tags]
    return " OR ".join(f'"{term}"' for term in (*dict.fromkeys(words), *dict.fromkeys(map(_token, tags))))


def _fitness(document: Document, wanted: set[str], *, specific: bool) -> float:
    level = document.generality if specific else 6 - document.generality
    special = {name for name in document.domains if name in DOMAINS}
    asked_for = not special or "general" in document.domains or bool(special & wanted)
    return (1 + GENERALITY_STEP * level) * (1.0 if asked_for else OTHER_DOMAIN)
