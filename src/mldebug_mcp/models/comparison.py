"""The answer to "where does this run part from that one?"."""

from __future__ import annotations

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Text


class SettingDifference(Model):
    """A setting that the two configurations do not share."""

    setting: Text
    run: Text | Number | None = Field(description="Its value in this run; null if it is not set.")
    reference: Text | Number | None = Field(description="Its value in the reference run; null if it is not set.")


class Parting(Model):
    """Where a metric of this run leaves that of the reference run beyond the noise of both."""

    metric: Text
    step: Number = Field(description="The first step from which on they differ.")
    run: Number = Field(description="The level of this run just after that step.")
    reference: Number = Field(description="The level of the reference run there.")
    sigmas: Number = Field(description="How far they are apart there, in standard deviations of the noise of both.")


class Comparison(Model):
    """A run beside another one that is taken for good."""

    reference: Text
    settings: list[SettingDifference]
    partings: list[Parting] = Field(description="The metric that parts first comes first.")
    alike: list[Text] = Field(description="Metrics that do not part over the steps that both runs have.")
