"""A quote as answers carry it."""

from __future__ import annotations

from pydantic import Field

from mldebug_mcp.models.base import Model, Text


class Citation(Model):
    """A practitioner's words, verbatim, and where they are published."""

    id: str = Field(description="Of the quote, for `explain`.")
    text: Text = Field(description="Verbatim.")
    source: str = Field(description="Id of the source, for `explain`.")
    author: Text = Field(description="Who wrote it.")
    title: Text = Field(description="Of the source.")
    year: str = Field("", description="When it was published; `undated` where nobody says.")
    regime: Text = Field("", description="What was trained, where the source is about one kind of run.")
    url: Text = Field(description="Where it is published.")
    locator: Text = Field("", description="The section or page there.")
