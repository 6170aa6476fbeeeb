"""What the catalogue answers: citations, search results, explanations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Page, Text
from mldebug_mcp.models.call import NextCall


class Citation(Model):
    """A practitioner's words, verbatim, and where they are published."""

    id: str
    text: Text
    source: str
    author: Text
    title: Text
    year: str = Field("", description="When it was published; `undated` where nobody says.")
    regime: Text = Field("", description="What was trained, where the source is about one kind of run.")
    url: Text
    locator: Text = ""


class QuoteHit(Citation):
    """A quote that answers a search."""

    score: float


class EntryHit(Model):
    """A cause, symptom, menu or error message that answers a search; `explain` gives it whole."""

    kind: str
    id: str
    title: Text
    summary: Text
    score: float


class SearchResult(Model):
    """What `search_folklore` found, best first."""

    query: Text
    quotes: list[QuoteHit]
    entries: list[EntryHit] = Field(default_factory=list, description="Causes, symptoms, menus and error messages.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list)


class Explanation(Model):
    """One entry of the catalogue, whole."""

    id: str
    kind: Literal["symptom", "check", "cause", "quote", "source", "menu", "error"]
    title: Text
    text: Page = Field(description="The entry as Markdown.")
    citations: list[Citation] = Field(default_factory=list)
    related: list[str] = Field(default_factory=list, description="Ids to look at next.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list)
