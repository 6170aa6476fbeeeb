"""The answers about many runs: which of them is sick, what the sick ones share, and whether one kind is better."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Text
from mldebug_mcp.models.call import NextCall


class RunRow(Model):
    """A run among many, in a line."""

    name: Text = Field(description="The run, relative to the folder; `diagnose_run` takes it as `run`.")
    path: Text
    kind: str = "unknown"
    ending: str = Field("open", description="finished, error, interrupted, silence, cut, open; unread: see `note`.")
    step: Number | None = Field(None, description="The last step logged.")
    step_name: str = "step"
    metric: Text = Field("", description="The result that `last` and `best` are of.")
    last: Number | None = None
    best: Number | None = None
    best_step: Number | None = None
    cause: str = Field("", description="The leading hypothesis: no verdict.")
    probability: Number = 0.0
    onset: Number | None = Field(None, description="The first step of what speaks for a fault that leads.")
    seen: list[str] = Field(default_factory=list, description="The symptoms that are present.")
    note: Text = Field("", description="Why it could not be read.")

    @property
    def is_sick(self) -> bool:
        """Whether a fault leads."""
        return self.cause not in ("", "healthy", "unknown")


class SharedSetting(Model):
    """A setting that goes with a cause, beyond what chance does among so many settings."""

    cause: str
    setting: Text
    condition: Text = Field(description="Which values, such as '= 0.003' or '>= 0.003'.")
    sick_with: int = Field(description="Runs that the cause leads in, with such a value.")
    sick: int = Field(description="Runs that the cause leads in and that tell the setting.")
    others_with: int = Field(description="Other runs with such a value.")
    others: int = Field(description="Other runs that tell the setting.")
    p: Number = Field(description="Fisher's exact test, two-sided, times the number of conditions tried (Holm).")


class Runs(Model):
    """The answer to "which of my runs is sick?": those that need attention first."""

    path: Text
    rows: list[RunRow]
    shared: list[SharedSetting] = Field(default_factory=list, description="The most certain first.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list)


class Contest(Model):
    """The answer to "is A better than B?": the difference of their means, beside what chance does."""

    metric: Text
    better: Literal["higher", "lower"]
    a: list[Number] = Field(description="The result of each run of A.")
    b: list[Number]
    paired: bool = Field(description="Whether runs were compared seed by seed.")
    difference: Number = Field(description="Mean of A minus mean of B.")
    low: Number = Field(description="The 95 % interval of the difference.")
    high: Number
    p: Number = Field(description="Of a permutation test, two-sided: how often chance alone parts them as far.")
    verdict: Literal["a is better", "b is better", "cannot tell"]
    detectable: Number = Field(description="The difference that so many runs would show in four cases of five.")
    runs_needed: int | None = Field(
        description="Runs of each that would show the difference seen in four cases of five; null beyond 10,000."
    )
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list)
