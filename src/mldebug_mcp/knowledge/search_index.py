"""A full-text index in memory over whatever can be found: SQLite's FTS5, ranked by BM25, concepts and generality."""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from mldebug_mcp.knowledge.asked import asked_for
from mldebug_mcp.knowledge.concepts import DOMAINS, NAMES, STACK, STOPWORDS, concepts
from mldebug_mcp.knowledge.documents import Answer, Document, Found
from mldebug_mcp.knowledge.numbers import Meaning, meanings
from mldebug_mcp.knowledge.phrases import Phrases, sentences
from mldebug_mcp.knowledge.wording import reworded, spelt

GENERALITY_STEP = 0.06
"""Share of the score per level of generality, fitted on the first half of benchmarks/search."""
OTHER_DOMAIN = 0.55
"""What is left of the score of an entry of a special domain that nobody asked for (fitted as above)."""
COVERED_COUNTS = 0.2
"""A score is multiplied by this and the share of the question that an entry covers (fitted as above)."""
COVERED = 0.12
"""Below this share of a question, an entry does not answer it (fitted as above, and on questions of other fields)."""
COVERED_BY_WORDS = 0.5
"""The same where the question names nothing that the field has a word for."""
LEAST = 6.0
"""A best score below this is of an entry that shares a word by chance: no tuned question has so little."""
SPEAKS = 0.2
"""Share of the score of an entry that goes to the causes it speaks for (fitted on half of the plain questions)."""
NEAREST = 0.3
"""Of the score of the best cause: what the cause gets that has the nearest phrase (fitted as `SPEAKS`)."""
FURTHER = 0.5
"""What each further entry that speaks for a cause counts of the one before (chosen)."""
OF_KIND = {"cause": 1.2, "menu": 1.9}
"""A cause is what a question is after, more than a quote or a symptom (fitted as `SPEAKS`)."""
COMMON = 0.1
"""Power of how common a cause is, by which its score is multiplied (fitted as `SPEAKS`)."""
SHOWN = 2.0
"""Times the score of an entry that is known to be meant (chosen: a message is exact)."""
NAMED = 1.35
"""Times the score of a symptom or an error that the question names (fitted as `SPEAKS`)."""
NAMEABLE = ("symptom", "error")
ALIKE = 0.85
"""What each further quote of one source counts of the one before (chosen: an answer is of several)."""
RANKED = 150
"""Documents that are looked at, best first (measured: more changes no answer of benchmarks/search)."""
MOST_HELD = 5_000
"""Terms whose holders are remembered (chosen: the words of all entries are fewer)."""
_COUNT = re.compile(r"\d+[a-z]?")
"""A number, with a unit or without: 100, 4k, 30B, 5s. No entry is about one, except with a point in it."""
UNKNOWN = 1 / 3
"""From this share of a question on, its unknown words are told: chosen, so that a stray word is not."""
MOSTLY_UNKNOWN = 0.5
"""Above this share of unknown words, two at least, a question is of another field: no question of benchmarks/search
has as many."""
# Columns: id, title, text, words of the tags, tags as single tokens, source, how people ask. Fitted as above.
_WEIGHTS = "0.0, 2.0, 1.0, 1.5, 2.0, 0.4, 1.0"


class Index:
    """Documents, searchable. It is only read after it was built, one query at a time, so threads may share it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents: Mapping[str, Document] = {f"{one.kind}:{one.id}": one for one in documents}
        self.words = frozenset(re.findall(r"[^\W\d_]+", " ".join(map(_said, self.documents.values())).lower()))
        self._phrases = Phrases(
            (key, said) for key, one in self.documents.items() if one.kind == "cause" for said in _ways(one)
        )
        self._lock = threading.Lock()
        self._held: dict[str, frozenset[str]] = {}
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute(
            "CREATE VIRTUAL TABLE documents USING fts5"
            "(key UNINDEXED, title, text, words, tags, source, asked, tokenize='porter unicode61')"
        )
        self._connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", map(_row, self.documents.values())
        )

    def find(self, query: str, shown: Collection[str] = ()) -> Answer:
        """Return the documents that answer a question, best first; equal scores in the order of their keys.

        Args:
            query: The question.
            shown: Keys of documents that are known to be meant, such as an error whose message the question holds.
        """
        question = spelt(reworded(query), self.words)
        words = [word for word in _words(question) if self._holders(word) or not _is_name(word)]
        numbers = tuple(meanings(question))
        tags = {tag: said for tag, said in _tags(question, numbers).items() if self._holders(_token(tag))}
        if not words and not tags:
            return Answer([], [])
        covered, unknown, share_unknown = self._coverage(words, tags)
        if share_unknown > MOSTLY_UNKNOWN and len(unknown) > 1:
            return Answer([], unknown)
        least = COVERED if tags else COVERED_BY_WORDS
        wanted = {name for name, pattern in DOMAINS.items() if pattern.search(question)}
        specific = STACK.search(question) is not None
        found = []
        for key, rank in self._ranked((*words, *map(_token, tags))):
            share = covered.get(key, 0.0)
            if share >= least or key in shown:
                document = self.documents[key]
                fitness = _fitness(document, wanted, specific=specific) * (COVERED_COUNTS + share)
                fitness *= SHOWN if key in shown else 1.0
                fitness *= NAMED if _is_named(document, words, tags) else 1.0
                found.append(Found(document, -rank * fitness))
        answers = _ordered(_varied(_ordered(self._with_causes(found, words, _contrary(question)))))
        return Answer(answers if answers and answers[0].score >= LEAST else [], unknown, numbers)

    def _with_causes(self, found: list[Found], words: list[str], contrary: set[str]) -> list[Found]:
        """Add to each cause a share of what speaks for it, each further entry counting less, and its nearest phrase.

        A cause of whose contrary is told is left out.
        """
        speaking: dict[str, list[float]] = {}
        for one in found:
            for cause in one.document.leads_to:
                speaking.setdefault(f"cause:{cause}", []).append(one.score / len(one.document.leads_to) ** 0.5)
        scores = {f"{one.document.kind}:{one.document.id}": one.score for one in found}
        for key, each in speaking.items():
            told = sum(score * FURTHER**place for place, score in enumerate(sorted(each, reverse=True)))
            scores[key] = scores.get(key, 0.0) + SPEAKS * told
        best = max((score for key, score in scores.items() if key.startswith("cause:")), default=0.0)
        for key, share in self._phrases.nearest(words).items() if best else ():
            scores[key] = scores.get(key, 0.0) + NEAREST * share * best
        return [
            Found(document, score * OF_KIND.get(document.kind, 1.0) * document.common**COMMON)
            for key, score in scores.items()
            if (document := self.documents.get(key)) is not None and key not in contrary
        ]

    def _ranked(self, terms: Iterable[str]) -> list[tuple[str, float]]:
        match = " OR ".join(f'"{term}"' for term in terms)
        statement = (
            f"SELECT key, bm25(documents, {_WEIGHTS}) FROM documents WHERE documents MATCH ? ORDER BY 2 LIMIT {RANKED}"  # noqa: S608
        )
        with self._lock:
            return self._connection.execute(statement, (match,)).fetchall()

    def _holders(self, term: str) -> frozenset[str]:
        found = self._held.get(term)
        if found is None:
            with self._lock:
                rows = self._connection.execute("SELECT key FROM documents WHERE documents MATCH ?", (f'"{term}"',))
                found = frozenset(key for (key,) in rows)
            if len(self._held) < MOST_HELD:
                self._held[term] = found
        return found

    def _coverage(self, words: list[str], tags: Mapping[str, set[str]]) -> tuple[dict[str, float], list[str], float]:
        """Return which share of the question each document is about, rare words counting more, and what is unknown.

        That is the unknown words, if they make up much of the question, and their share.
        """
        weights = dict.fromkeys(words, 0.0)
        shares: dict[str, float] = {}
        unknown = []
        for word in words:
            named = [self._holders(_token(tag)) for tag, said in tags.items() if word in said]
            holders = self._holders(word)
            weights[word] = math.log(1 + len(self.documents) / (1 + len(holders)))
            about = holders.union(*named)
            if not about:
                unknown.append(word)
            for key in about:
                shares[key] = shares.get(key, 0.0) + weights[word]
        whole = sum(weights.values()) or 1.0
        missing = sum(weights[word] for word in unknown) / whole
        about_each = {key: share / whole for key, share in shares.items()}
        return about_each, unknown if missing >= UNKNOWN else [], missing


def _ordered(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda one: (-one.score, one.document.kind, one.document.id))


def _varied(found: Iterable[Found]) -> Iterator[Found]:
    """Yield what was found, further quotes of one source with less than their score."""
    told: Counter[str] = Counter()
    for one in found:
        source = one.document.source
        yield Found(one.document, one.score * ALIKE ** told[source]) if source else one
        told[source] += 1


def _is_named(document: Document, words: list[str], tags: Mapping[str, set[str]]) -> bool:
    own = document.title.lower().split("_")
    return document.kind in NAMEABLE and (document.id in tags or set(own) <= set(words))


def _row(document: Document) -> tuple[str, str, str, str, str, str, str]:
    return (
        f"{document.kind}:{document.id}",
        document.title.replace("_", " "),
        document.text,
        " ".join(document.tags).replace("_", " "),
        " ".join(map(_token, document.tags)),
        document.source,
        _asked(document),
    )


def _asked(document: Document) -> str:
    return ". ".join((*asked_for((*document.tags, document.id)), *document.asked))


def _ways(document: Document) -> Iterator[str]:
    """Yield each way to ask for a document, and its own sentences."""
    yield document.title.replace("_", " ")
    yield from asked_for((*document.tags, document.id))
    yield from document.asked
    yield from sentences(document.text)


def _said(document: Document) -> str:
    tags = " ".join(document.tags).replace("_", " ")
    return f"{document.title.replace('_', ' ')} {document.text} {tags} {_asked(document)}"


def _token(tag: str) -> str:
    """Return a tag as one token that no word of a text equals."""
    return "q" + tag.replace("_", "") + "q"


def _words(question: str) -> list[str]:
    found = re.findall(r"\d+\.\d+|[^\W_]+", question)
    return list(dict.fromkeys(word for word in found if word not in STOPWORDS and not _COUNT.fullmatch(word)))


def _is_name(word: str) -> bool:
    """Tell whether a word names a model, a data set or a device: those with a digit in them are many."""
    return word in NAMES or (word[0].isalpha() and any(map(str.isdigit, word)))


def _tags(question: str, numbers: Iterable[Meaning]) -> dict[str, set[str]]:
    """Return the tags that a question names, each with the words or numbers that name it."""
    tags: dict[str, set[str]] = {}
    for number in numbers:
        for tag in number.tags:
            tags.setdefault(tag, set()).update(_words(number.number))
    for concept in concepts():
        for match in concept.pattern.finditer(question):
            end = re.match(r"[^\W_]*", question[match.end() :])
            said = match[0] + (end[0] if end else "")
            for tag in concept.tags:
                tags.setdefault(tag, set()).update(_words(said))
    return tags


def _contrary(question: str) -> set[str]:
    """Return the keys of the causes of which a question says the contrary."""
    return {
        f"cause:{one}"
        for concept in concepts()
        if concept.against and concept.pattern.search(question)
        for one in concept.against
    }


def _fitness(document: Document, wanted: set[str], *, specific: bool) -> float:
    level = document.generality if specific else 6 - document.generality
    special = {name for name in document.domains if name in DOMAINS}
    asked_for = not special or "general" in document.domains or bool(special & wanted)
    return (1 + GENERALITY_STEP * level) * (1.0 if asked_for else OTHER_DOMAIN)
