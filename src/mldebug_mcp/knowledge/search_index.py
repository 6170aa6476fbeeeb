"""An index in memory over all that can be found: causes are ranked by what was learnt, other entries by their words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from mldebug_mcp.knowledge.asked import asked_for
from mldebug_mcp.knowledge.bm25 import MOST_HELD, Bm25, Stems
from mldebug_mcp.knowledge.concepts import DOMAINS, NAMES, STACK, STOPWORDS, concepts
from mldebug_mcp.knowledge.documents import Answer, Document, Found
from mldebug_mcp.knowledge.learnt import learnt
from mldebug_mcp.knowledge.numbers import Meaning, meanings
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
NAMED = 1.35
"""Times the score of a symptom or an error that the question names (fitted on half of the plain questions)."""
NAMEABLE = ("symptom", "error")
ALIKE = 0.85
"""What each further quote of one source counts of the one before (chosen: an answer is of several)."""
RANKED = 120
"""Documents that are looked at, best first (measured: more changes no answer of benchmarks/search)."""
LEADING, BEHIND = 1.5, 1.0
"""Times the score of the best other entry: the likeliest cause, and one that is no likelier than the others."""
LEADERS = 3
"""Causes that lead so, the likeliest ones (chosen: an answer's first five hold other entries too)."""
FURTHER = 0.5
"""The same for the causes that follow (chosen)."""
CAUSES = 8
"""Causes that are found at most (chosen: the others are hardly likely)."""
WORDS_COUNT = 0.3
"""What the words of a cause's entry count beside how likely it is (fitted on half of the plain questions)."""
ALONE = 10.0
"""Score of the best other entry where there is none (chosen: that of a middling one)."""
EVIDENCE = 24.0
"""What has to speak for a cause for a question to be of this field (fitted on files that were left out: of the
questions of `askers.jsonl` one in two hundred has less, of those of other fields five in six)."""
_COUNT = re.compile(r"\d+[a-z]?")
"""A number, with a unit or without: 100, 4k, 30B, 5s. No entry is about one, except with a point in it."""
UNKNOWN = 1 / 3
"""From this share of a question on, its unknown words are told: chosen, so that a stray word is not."""
_WEIGHTS = (2.0, 1.0, 1.5, 2.0, 0.4, 1.0)
"""Of the columns: title, text, words of the tags, tags as single tokens, source, how people ask. Fitted as above."""


class Index:
    """Documents, searchable. It is only read after it was built, one query at a time, so threads may share it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents: Mapping[str, Document] = {f"{one.kind}:{one.id}": one for one in documents}
        self.words = frozenset(re.findall(r"[^\W\d_]+", " ".join(map(_said, self.documents.values())).lower()))
        tags = {tag for one in self.documents.values() for tag in one.tags}
        stems = Stems({*self.words, *map(_token, tags)})
        self._stems = stems
        self._keys = tuple(self.documents)
        self._texts = Bm25([_row(one) for one in self.documents.values()], _WEIGHTS, stems)
        self._held: dict[str, frozenset[str]] = {}

    def find(self, query: str, shown: Collection[str] = ()) -> Answer:
        """Return the documents that answer a question, best first; equal scores in the order of their keys.

        Args:
            query: The question.
            shown: Keys of documents that are known to be meant, such as an error whose message the question holds.
        """
        question = spelt(reworded(query), self.words)
        said = _words(question)
        words = [word for word in said if self._holders(word) or not _is_name(word)]
        numbers = tuple(meanings(question))
        named = _tags(question, numbers)
        tags = {tag: said for tag, said in named.items() if self._holders(_token(tag))}
        reading = learnt().read(self._stemmed(said), list(named), question, query)
        covered, unknown = self._coverage(words, tags)
        if not shown and reading.evidence < EVIDENCE:
            return Answer([], unknown)
        least = COVERED if tags else COVERED_BY_WORDS
        wanted = {name for name, pattern in DOMAINS.items() if pattern.search(question)}
        specific = STACK.search(question) is not None
        found = []
        for place, rank in self._texts.ranked((*words, *map(_token, tags)), RANKED):
            key = self._keys[place]
            share = covered.get(key, 0.0)
            if share >= least or key in shown:
                document = self.documents[key]
                fitness = _fitness(document, wanted, specific=specific) * (COVERED_COUNTS + share)
                fitness *= NAMED if _is_named(document, words, tags) else 1.0
                found.append(Found(document, rank * fitness))
        with_causes = self._with_causes(found, reading.likely, shown)
        contrary = _contrary(question)
        answers = _ordered(_varied(_ordered(one for one in with_causes if one.key not in contrary)))
        return Answer(answers, unknown, numbers)

    def known_by(self, query: str) -> tuple[list[str], list[str], str, str]:
        """Return what `learnt` knows a question by."""
        question = spelt(reworded(query), self.words)
        return self._stemmed(_words(question)), list(_tags(question, meanings(question))), question, query

    def _stemmed(self, words: Iterable[str]) -> list[str]:
        return [self._stems.of(word) or word for word in words]

    def _with_causes(
        self, found: Iterable[Found], likely: Mapping[str, float], shown: Collection[str]
    ) -> Iterator[Found]:
        """Yield what was found, the causes by how likely they are: the likeliest first, and with it what is shown.

        Messages of errors that the question does not hold come behind them: most are of something else.
        """
        others = [one for one in found if one.document.kind != "cause"]
        most = max(likely.values(), default=1.0)
        scores = {f"cause:{cause}": share / most for cause, share in likely.items()}
        by_words = {one.key: one.score for one in found if one.document.kind == "cause"}
        highest = max(by_words.values(), default=1.0)
        for key in scores:
            scores[key] += WORDS_COUNT * by_words.get(key, 0.0) / highest
        best = max((one.score for one in others if one.document.kind != "error"), default=ALONE)
        ranked = sorted((-score, key) for key, score in scores.items() if key in self.documents)[:CAUSES]
        for place, (score, key) in enumerate(ranked):
            share = score / ranked[0][0]
            counts = BEHIND + (LEADING - BEHIND) * share if place < LEADERS else FURTHER * share
            yield Found(self.documents[key], best * counts)
        most_like = max((one.score for one in others if one.document.kind == "error"), default=best)
        lowered = min(1.0, BEHIND * best / max(most_like, 1e-9))
        for one in others:
            if one.key in shown:
                yield Found(one.document, LEADING * best)
            else:
                yield Found(one.document, lowered * one.score) if one.document.kind == "error" else one

    def _holders(self, term: str) -> frozenset[str]:
        found = self._held.get(term)
        if found is None:
            found = frozenset(self._keys[place] for place in self._texts.holders(term))
            if len(self._held) < MOST_HELD:
                self._held[term] = found
        return found

    def _coverage(self, words: list[str], tags: Mapping[str, set[str]]) -> tuple[dict[str, float], list[str]]:
        """Return which share of the question each document is about, rare words counting more, and what is unknown.

        That is the unknown words, if they make up much of the question.
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
        return about_each, unknown if missing >= UNKNOWN else []


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


def _row(document: Document) -> tuple[str, str, str, str, str, str]:
    return (
        document.title.replace("_", " "),
        document.text,
        " ".join(document.tags).replace("_", " "),
        " ".join(map(_token, document.tags)),
        document.source,
        _asked(document),
    )


def _asked(document: Document) -> str:
    return ". ".join((*asked_for((*document.tags, document.id)), *document.asked))


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
    """Tell whether a word is a number or names a model, a data set or a device: those with a digit in them are many."""
    return word in NAMES or any(map(str.isdigit, word))


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
