"""The record of what was tried on a run: hypotheses, checks and changes, what they predicted and what came."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Text

_ID = r"^[a-z0-9_.]{0,80}$"
_TIME = r"^\d{4}-\d\d-\d\dT[0-9:.+Z-]{5,30}$"
"""What ids and times look like: whoever writes into a folder may write a record."""


class Tried(Model):
    """A check that was made or a change that was tried, or one that is planned: an entry of the record."""

    at: str = Field(pattern=_TIME, description="When it was recorded, in UTC (ISO 8601).")
    cause: str = Field(pattern=_ID, description="The hypothesis: the id of a cause.")
    check: str = Field("", pattern=_ID, description="The id of the check, such as lr_too_high.1; empty for a change.")
    done: Text = Field(description="The check that was made, or what was changed, as it was recorded.")
    predicted: Text = Field("", description="What would show that the cause is there.")
    predicted_otherwise: Text = Field("", description="What would show that it is not.")
    outcome: Literal["open", "confirms", "refutes"] = Field("open", description="open: no verdict yet.")
    measured: dict[str, Number] = Field(default_factory=dict, description="What came, in numbers, by name.")
    compared: Text = Field("", description="What comparing runs with the change and without it gave.")
    before: Number | None = Field(None, description="Probability of the cause before this outcome.")
    after: Number | None = Field(None, description="Probability of the cause with it.")
    note: Text = Field("", description="What whoever recorded it wrote.")
    version: str = Field("", pattern=r"^[0-9A-Za-z.+-]{0,40}$", description="The version of mldebug-mcp that wrote it.")

    def line(self) -> str:
        """Return it in a line."""
        verdict = {"open": "open", "confirms": "confirmed", "refutes": "ruled out"}[self.outcome]
        what = f"check {self.check}" if self.check else "a change"
        measured = ", ".join(f"{name}={_figure(value)}" for name, value in self.measured.items())
        came = "; ".join(part for part in (measured, self.compared, self.note) if part)
        return f"{self.cause}: {verdict} on {self.at[:10]} by {what} ({self.done})" + (f": {came}" if came else "")


class Record(Model):
    """What was tried on a run, the oldest first."""

    path: Text = Field(description="The run, as it was named.")
    file: Text = Field(description="Where the record stands.")
    tried: list[Tried] = Field(default_factory=list, description="All entries.")
    ruled_out: list[str] = Field(default_factory=list, description="Causes whose last verdict refutes them.")
    confirmed: list[str] = Field(default_factory=list, description="Causes whose last verdict confirms them.")
    open: list[Text] = Field(default_factory=list, description="Checks and changes without a verdict yet.")
    notes: list[Text] = Field(default_factory=list, description="What could not be read.")


def _figure(value: float) -> str:
    return f"{value:.4g}"
