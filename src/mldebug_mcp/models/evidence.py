"""The answer of `evidence verify`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Text


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
    changed: list[QuoteCheck] = Field(default_factory=list, description="Read, but the words differ or are gone.")
    unreachable: list[QuoteCheck] = Field(default_factory=list, description="Not read: no copy, no answer, no text.")
    problems: list[Text] = Field(
        default_factory=list, description="Records and documents that disagree with themselves or with each other."
    )
