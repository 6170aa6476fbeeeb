"""What a reader of the user's own makes of a run."""

from __future__ import annotations

from pydantic import Field

from mldebug_mcp.models.base import Model, RankedCause, Text, empty_list


class ReaderOpinion(Model):
    """The judgement of a reader that the user named, and the one of reader and own ranking together."""

    causes: list[RankedCause] = Field(description="As the reader says, best first; the rest is for all other causes.")
    combined: list[RankedCause] = Field(description="Reader and own ranking together, best first; they sum to 1.")
    grounds: Text = Field("", description="Why, in the reader's words, with the numbers of facts.")
    facts: list[Text] = Field(default_factory=empty_list, description="The facts that the grounds cite.")
    not_explained: Text = Field("", description="What the reader's first cause does not explain.")
    check: Text = Field("", description="The check that would settle it, in the reader's words.")
