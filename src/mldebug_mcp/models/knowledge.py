"""What the catalogue answers: citations, search results, explanations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Page, Text
from mldebug_mcp.models.call import NextCall


class Citation(Model):
    """A practitioner's words, verbatim, and where they are published."""

    id: str = Field(description="Of the quote, for `explain`.")
    text: Text = Field(description="Verbatim.")
    source: str = Field(description="Id of the source, for `explain`.")
    author: Text = Field(description="Who said it.")
    title: Text = Field(description="Of the source.")
    year: str = Field("", description="When it was published; `undated` where nobody says.")
    regime: Text = Field("", description="What was trained, where the source is about one kind of run.")
    url: Text = Field(description="Where it is published.")
    locator: Text = Field("", description="The section or page there.")


class QuoteHit(Citation):
    """A quote that answers a search."""

    score: float = Field(description="How well it fits, beside the others (BM25); no probability.")


class EntryHit(Model):
    """A cause, symptom, menu or error message that answers a search; `explain` gives it whole."""

    kind: str = Field(description="symptom, check, cause, menu or error.")
    id: str = Field(description="For `explain`.")
    title: Text = Field(description="What it is called.")
    summary: Text = Field(description="Its first sentences.")
    score: float = Field(description="How well it fits, beside the others (BM25); no probability.")


class SearchResult(Model):
    """What `search_folklore` found, best first."""

    query: Text = Field(description="As it was asked.")
    quotes: list[QuoteHit] = Field(description="Practitioners' words, best first.")
    entries: list[EntryHit] = Field(default_factory=list, description="Causes, symptoms, menus and error messages.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list, description="What was reworded or left out.")


class Explanation(Model):
    """One entry of the catalogue, whole."""

    id: str = Field(description="As it was asked for.")
    kind: Literal["symptom", "check", "cause", "quote", "source", "menu", "error"] = Field(description="What it is.")
    title: Text = Field(description="What it is called.")
    text: Page = Field(description="The entry as Markdown.")
    citations: list[Citation] = Field(default_factory=list, description="The quotes that it rests on.")
    related: list[str] = Field(default_factory=list, description="Ids to look at next.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list, description="What was left out.")
