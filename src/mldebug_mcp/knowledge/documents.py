"""What can be searched, and what a search finds."""

from __future__ import annotations

from dataclasses import dataclass

from mldebug_mcp.knowledge.numbers import Meaning


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
        asked: How people ask for it, beside what `asked.jsonl` has on its tags.
        leads_to: Ids of the causes that it speaks for.
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
    asked: tuple[str, ...] = ()
    leads_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A document with its score: higher is better."""

    document: Document
    score: float

    @property
    def key(self) -> str:
        """Its kind and id."""
        return f"{self.document.kind}:{self.document.id}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, the words of the question that nothing here knows, where they make up much of it, and numbers."""

    found: list[Found]
    unknown: list[str]
    numbers: tuple[Meaning, ...] = ()
