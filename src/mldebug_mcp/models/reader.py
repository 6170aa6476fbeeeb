"""What a reader of the user's own makes of a run, and the rules that it, an agent and a client's model get alike."""

from __future__ import annotations

from pydantic import Field

from mldebug_mcp.models.base import Model, RankedCause, Text, empty_list

RULES = (
    "Keep at least three hypotheses. `healthy` and `unknown` are always among them.",
    "Ask of each hypothesis which facts it does not explain. What explains the earliest fact often explains the later.",
    "Compare each number with what is expected of it: chance, a ceiling, passes over the data, the planned schedule.",
    "What was not logged is unknown, not absent.",
    "What many healthy runs show too, such as clipping, noise or one spike that recovers, accuses nobody by itself.",
    "A result that is too good is as suspicious as one that is too bad.",
    "Doubt stays in the numbers: a probability of 0.9 has to be right nine times of ten.",
)
"""How to judge a run from facts. SKILL.md and the prompts of the server hold the same lines."""


class ReaderOpinion(Model):
    """The judgement of a reader that the user named, and the one of reader and own ranking together."""

    causes: list[RankedCause] = Field(description="As the reader says, best first; the rest is for all other causes.")
    combined: list[RankedCause] = Field(description="Reader and own ranking together, best first; they sum to 1.")
    grounds: Text = Field("", description="Why, in the reader's words, with the numbers of facts.")
    facts: list[Text] = Field(default_factory=empty_list, description="The facts that the grounds cite.")
    not_explained: Text = Field("", description="What the reader's first cause does not explain.")
    check: Text = Field("", description="The check that would settle it, in the reader's words.")
