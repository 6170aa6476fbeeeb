"""What the catalogue answers.

These are citations, search results, explanations, explained errors and checked quotes.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import AtAGlance, Citation, Glance, Model, NextCall, Page, Text, empty_list

# What the catalogue answers: citations, search results, explanations.


class QuoteHit(Citation):
    """A quote that answers a search."""

    score: float = Field(description="How well it fits, relative to the others (BM25); not a probability.")


class EntryHit(Model):
    """A cause, symptom, menu or error message that answers a search; `explain` gives it whole."""

    kind: str = Field(description="symptom, check, cause, menu or error.")
    id: str = Field(description="For `explain`.")
    title: Text = Field(description="What it is called.")
    summary: Text = Field(description="Its first sentences.")
    score: float = Field(description="How well it fits, relative to the others (BM25); not a probability.")


class SearchResult(Model):
    """What `search_folklore` found, best first."""

    query: Text = Field(description="As it was asked.")
    quotes: list[QuoteHit] = Field(description="Practitioners' words, best first.")
    entries: list[EntryHit] = Field(
        default_factory=empty_list, description="Causes, symptoms, menus and error messages."
    )
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was reworded or left out.")


class Explanation(Model):
    """One entry of the catalogue, whole."""

    id: str = Field(description="As it was asked for.")
    kind: Literal["symptom", "check", "cause", "quote", "source", "menu", "error"] = Field(description="What it is.")
    title: Text = Field(description="What it is called.")
    text: Page = Field(description="The entry as Markdown.")
    citations: list[Citation] = Field(default_factory=empty_list, description="The quotes that it rests on.")
    related: list[str] = Field(default_factory=empty_list, description="Ids to look at next.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was left out.")


# The answer of `explain_error`.


class FirstError(Model):
    """The first real error in a text: the cause, not its echoes from other ranks."""

    text: Text = Field(description="The line with the error and what follows, shortened.")
    line: int = Field(description="Its line number in the text, from 1.")
    ranks: list[str] = Field(default_factory=empty_list, description="Ranks that report it; empty if none is named.")
    exception: Text = Field("", description="The type of the exception, if it is one.")
    user_frame: Text = Field("", description="The innermost frame that is not a library's: file, line, function, code.")


class ErrorMatch(Model):
    """A known message that fits the error."""

    id: str = Field(description="`explain` gives the entry whole.")
    message: Text = Field(description="An example of the message.")
    cause: Text = Field(description="What it means.")
    fix: Text = Field(description="What to do.")
    mistaken_for: Text = Field("", description="What it is often taken for, and is not.")
    causes: list[str] = Field(default_factory=empty_list, description="Causes of the playbook that it points to.")
    credence: str = Field(description="How certain it is that the message has this cause.")
    source: Text = Field(description="Where this is documented.")
    locator: Text = Field("", description="The section there.")


class ErrorExplanation(Model):
    """What an error message means and what to do."""

    at_a_glance: AtAGlance = Field(default_factory=Glance)
    error: FirstError | None = Field(description="null if nothing in the text reads like an error.")
    problem: Text = Field("", description="The class of problem.")
    matches: list[ErrorMatch] = Field(
        default_factory=empty_list, description="Known messages that fit, likeliest first."
    )
    advice: Text = Field("", description="What to try.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="Echoes, other errors, what was skipped.")


# The answer of `evidence verify`.


class QuoteCheck(Model):
    """A quote that was compared with a copy of its source."""

    id: str = Field(description="Of the quote.")
    state: Literal["found", "changed", "unreachable"] = Field(description="What became of it.")
    where: Text = Field("", description="The copy or page that was read, or why none could be.")


class EvidenceReport(Model):
    """What agrees with the originals, what differs, what could not be read."""

    quotes: int = Field(description="Quotes in the records.")
    grades: dict[str, int] = Field(
        default_factory=dict, description="How many quotes were checked how, surest first; see evidence/README.md."
    )
    found: int = Field(0, description="Quotes that stand in a copy or on a page.")
    changed: list[QuoteCheck] = Field(default_factory=empty_list, description="Read, but the words differ or are gone.")
    unreachable: list[QuoteCheck] = Field(
        default_factory=empty_list, description="Not read: no copy, no answer, no text."
    )
    problems: list[Text] = Field(
        default_factory=empty_list,
        description="Records and documents that disagree with themselves or with each other.",
    )
