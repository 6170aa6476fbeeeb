"""What `watch_run` tells."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Text


class News(Model):
    """Something new in a run that is watched."""

    what: Literal["waiting", "reading", "finding", "leader", "no_result", "silent", "finished"] = Field(
        description="waiting: there is no log to read yet. reading: what the log holds at first. finding: a symptom "
        "is present that was not, or begins anew. leader: another hypothesis leads, at two looks in a row. no_result: "
        "no loss, score or reward is among what is logged, at two looks in a row. silent: "
        "nothing was written for long. finished: the log says that training ended."
    )
    text: Text = Field(description="In one sentence.")
    step: Number | None = Field(None, description="How far the run had come.")
    step_name: str = Field("step", description="What a step is here: step, epoch or record.")
    symptom: str | None = Field(None, description="The symptom of a finding.")
    causes: dict[str, float] = Field(
        default_factory=dict, description="The leading hypotheses and their probabilities, best first."
    )
    alarm: bool = Field(
        False,
        description="Whether a cause leads that is neither `healthy` nor `unknown`, or there is no result to judge.",
    )
