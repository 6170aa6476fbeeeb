"""The answer of `explain_error`."""

from __future__ import annotations

from pydantic import Field

from mldebug_mcp.models.base import Model, Text
from mldebug_mcp.models.call import NextCall


class FirstError(Model):
    """The first real error in a text: the cause, not its echoes from other ranks."""

    text: Text = Field(description="The line with the error and what follows, shortened.")
    line: int = Field(description="Its line number in the text, from 1.")
    ranks: list[str] = Field(default_factory=list, description="Ranks that report it; empty if none is named.")
    exception: Text = Field("", description="The type of the exception, if it is one.")
    user_frame: Text = Field("", description="The innermost frame that is not a library's: file, line, function, code.")


class ErrorMatch(Model):
    """A known message that fits the error."""

    id: str = Field(description="`explain` gives the entry whole.")
    message: Text = Field(description="An example of the message.")
    cause: Text = Field(description="What it means.")
    fix: Text = Field(description="What to do.")
    mistaken_for: Text = Field("", description="What it is often taken for, and is not.")
    causes: list[str] = Field(default_factory=list, description="Causes of the playbook that it points to.")
    credence: str = Field(description="How certain it is that the message has this cause.")
    source: Text = Field(description="Where this is documented.")
    locator: Text = Field("", description="The section there.")


class ErrorExplanation(Model):
    """What an error message means and what to do."""

    error: FirstError | None = Field(description="null if nothing in the text reads like an error.")
    problem: Text = Field("", description="The class of problem.")
    matches: list[ErrorMatch] = Field(default_factory=list, description="Known messages that fit, likeliest first.")
    advice: Text = Field("", description="What to try.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list, description="Echoes, other errors, what was skipped.")
