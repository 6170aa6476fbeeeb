"""The record of what was tried on a run: hypotheses, checks and changes, what they predicted and what came."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.core.text import percent
from mldebug_mcp.models.base import Model, Number, Text, empty_list

_ID = r"^[a-z0-9_.]{0,80}$"
_TIME = r"^\d{4}-\d\d-\d\dT[0-9:.+Z-]{5,30}$"
"""What ids and times look like: whoever writes into a folder may write a record."""
MAX_CHANCE_OF_RULED_OUT = 0.1
"""Probability from which a cause that a check refutes is not called ruled out. Chosen: it may still lead."""


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

    @property
    def rules_out(self) -> bool:
        """Whether it refutes the cause, and the cause has hardly a chance after it; unknown chances do not count."""
        return self.outcome == "refutes" and (self.after is None or self.after < MAX_CHANCE_OF_RULED_OUT)

    def verdict(self) -> str:
        """Return what it says of its cause, in words."""
        if self.outcome == "refutes":
            return "ruled out" if self.rules_out else "contradicted"
        return {"open": "open", "confirms": "confirmed"}[self.outcome]

    def by(self) -> str:
        """Return what gave the verdict, in words."""
        return f"check {self.check}" if self.check else "a change"

    def line(self) -> str:
        """Return it in a line."""
        measured = ", ".join(f"{name}={_figure(value)}" for name, value in self.measured.items())
        came = "; ".join(part for part in (measured, self.compared, self.note) if part)
        left = (
            f" ({percent(self.after)} after it)" if self.verdict() == "contradicted" and self.after is not None else ""
        )
        said = f"{self.cause}: {self.verdict()} on {self.at[:10]}{left} by {self.by()} ({self.done})"
        return said + (f": {came}" if came else "")


class Record(Model):
    """What was tried on a run, the oldest first."""

    path: Text = Field(description="The run, as it was named.")
    file: Text = Field(description="Where the record stands.")
    tried: list[Tried] = Field(default_factory=empty_list, description="All entries.")
    ruled_out: list[str] = Field(
        default_factory=empty_list,
        description="Causes whose last verdict refutes them and leaves them hardly a chance.",
    )
    contradicted: list[str] = Field(
        default_factory=empty_list, description="Causes whose last verdict refutes them, and that may be all the same."
    )
    confirmed: list[str] = Field(default_factory=empty_list, description="Causes whose last verdict confirms them.")
    open: list[Text] = Field(default_factory=empty_list, description="Checks and changes without a verdict yet.")
    notes: list[Text] = Field(default_factory=empty_list, description="What could not be read.")


def _figure(value: float) -> str:
    return f"{value:.4g}"
