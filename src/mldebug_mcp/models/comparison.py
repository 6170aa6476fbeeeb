"""The answer to "where does this run differ from that one?"."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Text


class SettingDifference(Model):
    """A setting that differs between the two configurations."""

    setting: Text = Field(description="Its canonical name, such as learning_rate.")
    run: Text | Number | None = Field(description="Its value in this run; null if it is not set.")
    reference: Text | Number | None = Field(description="Its value in the reference run; null if it is not set.")
    factor: Number | None = Field(None, description="How many times as large it is here, where both are above zero.")


class Parting(Model):
    """Where a metric of this run departs from that of the reference run, beyond the noise of both."""

    metric: Text = Field(description="Its canonical name, such as loss.")
    step: Number = Field(description="The step from which they differ.")
    run: Number = Field(description="The level of this run just after that step.")
    reference: Number = Field(description="The level of the reference run there.")
    sigmas: Number = Field(
        description="How far apart they are there, in standard deviations of the noise of both, 1000 at most."
    )
    run_at_end: Number = Field(description="The level of this run over the last tenth of the steps that both have.")
    reference_at_end: Number = Field(description="The level of the reference run there.")
    ends: Literal["worse", "better", "alike", ""] = Field(
        "", description="How this run ends beside the reference, by the last levels; empty for what is no result."
    )
    worse: bool = Field(description="Whether it is a result of training and ends clearly worse than the reference.")


class Comparison(Model):
    """A run compared with one that went well."""

    reference: Text = Field(description="The run that it was compared with.")
    settings: list[SettingDifference] = Field(description="What differs, what is known to matter first.")
    partings: list[Parting] = Field(description="The metric that departs first comes first.")
    alike: list[Text] = Field(description="Metrics that do not depart over the steps that both runs have.")
