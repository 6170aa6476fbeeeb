"""The sheet of a run: what was observed, from which a reader can judge without the log. It names no cause."""

from __future__ import annotations

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Text


class SettingFact(Model):
    """A setting that matters, or one that follows from several."""

    name: str = Field(description="Its canonical name, or as it is called in the configuration.")
    value: Text = Field(description="As it is set.")
    usual: Text = Field("", description="What is usual, where this is not; empty for a usual value.")

    def __str__(self) -> str:
        return f"{self.name}={self.value}" + (f" [! usual: {self.usual}]" if self.usual else "")


class CurveFact(Model):
    """One logged quantity over the run, in the unit in which it was logged."""

    name: str = Field(description="As it was logged.")
    records: int = Field(description="Values that were logged.")
    first: Number = Field(description="The first value.")
    early: Number = Field(description="Median of the first twentieth of the records.")
    low: Number = Field(description="The lowest value.")
    low_at: Number = Field(description="The step of the lowest value.")
    high: Number = Field(description="The highest value.")
    high_at: Number = Field(description="The step of the highest value.")
    last: Number = Field(description="The last value.")
    noise: Number = Field(description="Standard deviation from record to record, without the trend.")
    course: Text = Field("", description="What it does: falls, rises, jumps, rests since, frozen since, not finite.")
    text: Text = Field(description="All of that in one line.")


class QuantityFact(Model):
    """A quantity of the run: in training, beside it in evaluation, or a group of columns that are alike."""

    name: str = Field(description="Canonical name of the series of the first curve.")
    role: str = Field("", description="What it is; empty where its name is not understood.")
    curves: list[CurveFact] = Field(description="Training first. Of a group, its extremes.")
    columns: int = Field(1, description="How many columns of the log it stands for.")
    gap: Text = Field("", description="Evaluation beside training, in numbers.")
    decides: bool = Field(False, description="Whether a finding that is present rests on it.")
    matters: bool = Field(False, description="Whether a finding rests on it, or it is the loss or a result.")

    @property
    def parts(self) -> list[str]:
        """The line in its parts: training, evaluation, and the gap; of a group its extremes."""
        group = [f"{self.columns} columns, among them"] if self.columns > len(self.curves) else []
        return [*group, *(one.text for one in self.curves), *([self.gap] if self.gap else [])]


class EventFact(Model):
    """Something that happened at a step."""

    step: Number = Field(description="Where it happened, or first happened.")
    text: Text = Field(description="What moved, and by how much; or what the log says.")
    first_mover: str = Field("", description="The curve that moved before the others; empty where none did.")
    findings: list[str] = Field(default_factory=list, description="The findings that begin about there.")
    worst_at: Number | None = Field(None, description="The step of the largest of jumps that recur.")
    size: Number = Field(0.0, description="In standard deviations of what is usual; 0 for what is no jump.")

    def __str__(self) -> str:
        seen = f" ({', '.join(self.findings)})" if self.findings else ""
        first = f"; first: {self.first_mover}" if self.first_mover else ""
        return f"{self.text}{first}{seen}"


class Sheet(Model):
    """What was observed of a run; findings, hypotheses and the next call stand beside it in the diagnosis."""

    lines: list[Text] = Field(default_factory=list, description="All of it as lines; in a concise answer, alone.")
    ran: list[Text] = Field(
        default_factory=list, description="What ran, how much of the plan, attempts, resumes, how the log ends."
    )
    settings: list[SettingFact] = Field(
        default_factory=list, description="Those that matter, the unusual ones first, each with what is usual."
    )
    quantities: list[QuantityFact] = Field(default_factory=list, description="What decides or moved most first.")
    events: list[EventFact] = Field(default_factory=list, description="On one time line.")
    not_judged: list[Text] = Field(
        default_factory=list, description="What could not be judged, and the metric or setting that is missing."
    )
