"""The answer of `read_metric`: values of curves, as they were logged."""

from __future__ import annotations

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Text
from mldebug_mcp.models.call import NextCall


class MetricValues(Model):
    """Values of one curve."""

    name: str = Field(description="As it was logged.")
    metric: str = Field(description="Its canonical name, such as loss.")
    role: str = Field("", description="What it is; empty where its name is not understood.")
    records: int = Field(description="How many values were logged in this stretch.")
    course: Text = Field("", description="What it does there, in words.")
    points: list[tuple[Number, Number]] = Field(
        description="Steps and values in the unit in which they were logged; of many the extremes survive."
    )


class MetricReading(Model):
    """Values of one or several curves of a run."""

    path: Text = Field(description="The file or folder, as it was named.")
    step_name: str = Field("step", description="What a step is here: step, epoch or record.")
    series: list[MetricValues] = Field(description="The curves that were asked for.")
    others: list[str] = Field(default_factory=list, description="Other curves in the log.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list, description="What was skipped, guessed or left out.")
