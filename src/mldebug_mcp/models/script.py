"""What a training script says by itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import AtAGlance, Citation, Glance, Model, NextCall, Text, empty_list

Certainty = Literal["certain", "likely", "depends"]
SUREST_FIRST: tuple[Certainty, ...] = ("certain", "likely", "depends")


class ScriptFinding(Model):
    """Something in a script that is wrong, or may be."""

    rule: str = Field(description="Its id.")
    file: Text = Field(description="The file.")
    line: int = Field(description="The line, from 1.")
    lines: list[int] = Field(default_factory=empty_list, description="Other lines that take part in it.")
    certainty: Certainty = Field(description="depends: on what the script does not show, such as shapes.")
    cause: str = Field(description="The cause that it is; `explain` gives it whole.")
    summary: Text = Field(description="What stands there, and why that is wrong.")
    shows: Text = Field("", description="What it would show in a log.")
    fix: Text = Field("", description="What to write instead.")
    probability: float | None = Field(None, description="What a reader gives it, from 0 to 1; None: a rule alone.")
    citations: list[Citation] = Field(default_factory=empty_list, description="What practitioners wrote about it.")


class RuledOut(Model):
    """A cause that a script makes unlikely by what it does right."""

    cause: str = Field(description="The cause.")
    file: Text = Field(description="The file.")
    line: int = Field(description="The line that says so.")
    summary: Text = Field(description="What stands there.")


class ReviewPlace(Model):
    """A question of a review, and where a script answers it."""

    file: Text = Field(description="The file.")
    question: Text = Field(description="What a reviewer asks of every training script.")
    lines: list[int] = Field(description="Lines that may answer it, from 1.")


class ScriptReport(Model):
    """The answer of `inspect_script`: what is wrong in a training script, read and never run."""

    at_a_glance: AtAGlance = Field(default_factory=Glance)
    path: Text = Field(description="The file or folder, as it was named.")
    files: int = Field(description="Files that were read.")
    unread: int = Field(0, description="Python files that could not be read; the notes name them.")
    not_judged: Text = Field("", description="Why no training loop was judged; empty where one was.")
    findings: list[ScriptFinding] = Field(default_factory=empty_list, description="By file and line.")
    ruled_out: list[RuledOut] = Field(default_factory=empty_list, description="Causes that the script makes unlikely.")
    places: list[ReviewPlace] = Field(
        default_factory=empty_list, description="What rules cannot prove: questions to read the script with."
    )
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was not read, and why.")
