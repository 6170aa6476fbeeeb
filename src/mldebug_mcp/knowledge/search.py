"""Search over the quotes: SQLite's full-text index in memory, ranked by BM25 and by how generally a quote holds."""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache

from mldebug_mcp.errors import InputError
from mldebug_mcp.knowledge.catalogue import Catalogue, catalogue
from mldebug_mcp.models import QuoteHit, SearchResult
from mldebug_mcp.text import shorten

MAX_LIMIT = 20
MAX_QUERY = 500
GENERALITY_BONUS = 0.05
"""Score added per level of generality: of two quotes that fit alike, the one that holds more widely comes first."""

# The text itself counts most, then what it was filed under, then who said it.
_WEIGHTS = "0.0, 1.0, 2.0, 2.0, 0.5"


def search_folklore(query: str, domain: str | None = None, topic: str | None = None, limit: int = 5) -> SearchResult:
    """Find what practitioners said, verbatim, best first.

    Args:
        query: A question or keywords, as one would put it to a colleague.
        domain: Only quotes of this domain, such as "rl" or "vision".
        topic: Only quotes on this topic, such as "loss_spike" or "learning_rate".
        limit: How many quotes at most, 1 to 20.

    Raises:
        InputError: the query is empty, or the domain or topic does not exist; the message lists those that do.
    """
    known = catalogue()
    words = re.findall(r"\w+", query[:MAX_QUERY].lower())
    if not words:
        raise InputError("the query is empty; ask in a few words, for example 'loss spike after warmup'")
    _check(domain, {name for quote in known.quotes.values() for name in quote.domains}, "domain")
    _check(topic, {name for quote in known.quotes.values() for name in quote.topics}, "topic")
    terms = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
    rows = _index().execute(f"SELECT id, bm25(quotes, {_WEIGHTS}) FROM quotes WHERE quotes MATCH ?", (terms,))  # noqa: S608
    hits = []
    for quote_id, rank in rows:
        quote = known.quotes[quote_id]
        if (domain is None or domain in quote.domains) and (topic is None or topic in quote.topics):
            score = -rank * (1 + GENERALITY_BONUS * (5 - quote.generality))
            hits.append(QuoteHit(**quote.cite().model_dump(), score=round(score, 4)))
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    found = hits[: max(1, min(limit, MAX_LIMIT))]
    notes = (
        []
        if found
        else ["no quote has any of these words; try the words of the symptom, such as 'loss plateau' or 'NaN'"]
    )
    return SearchResult(query=shorten(query, MAX_QUERY), quotes=found, notes=notes)


def _check(value: str | None, allowed: set[str], name: str) -> None:
    if value is not None and value not in allowed:
        raise InputError(f"{name} {shorten(value, 60)!r} does not exist; use one of: {', '.join(sorted(allowed))}")


@lru_cache(maxsize=1)
def _index() -> sqlite3.Connection:
    return build_index(catalogue())


def build_index(known: Catalogue) -> sqlite3.Connection:
    """Return an in-memory index of the quotes. It is only read after that, so threads may share it."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute(
        "CREATE VIRTUAL TABLE quotes USING "
        "fts5(id UNINDEXED, text, topics, situations, source, tokenize='porter unicode61')"
    )
    connection.executemany(
        "INSERT INTO quotes VALUES (?, ?, ?, ?, ?)",
        (
            (
                quote.id,
                quote.text,
                _spoken(quote.topics + quote.domains),
                _spoken(quote.situations),
                f"{quote.source.authors} {quote.source.title}",
            )
            for quote in known.quotes.values()
        ),
    )
    return connection


def _spoken(ids: tuple[str, ...]) -> str:
    return " ".join(ids).replace("_", " ")
