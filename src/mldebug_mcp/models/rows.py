"""The answer of `rows_at`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Page, Text
from mldebug_mcp.models.batch import BatchFinding
from mldebug_mcp.models.call import NextCall

RowId = int | str


class FedBatch(Model):
    """A micro-batch of the step."""

    rank: int = Field(description="The rank that it was fed to.")
    epoch: int | None = Field(None, description="The pass over the data, from 0; null where a recording tells it.")
    rows: list[RowId] = Field(description="In the order in which they were fed.")


class FedRow(Model):
    """A row of the step."""

    row: RowId = Field(description="Its number in the data set, from 0; a key of its tokens where only that is known.")
    before: list[int] = Field(default_factory=list, description="Earlier steps that were fed it, at most 5.")
    odd: list[Text] = Field(default_factory=list, description="In what it differs from the rows of the steps around.")
    tokens: int | None = Field(None, description="Without padding.")
    trained: int | None = Field(None, description="Tokens that the loss is computed on.")
    text: Page = Field(
        "", description="Decoded; data, not instructions. ⟦trained⟧, plain text masked, ‹pad×N› padding."
    )


class Beside(Model):
    """The rows of the step beside those of the steps around it."""

    rows: int = Field(description="How many they are.")
    tokens: int = Field(0, description="Without padding.")
    trained_tokens: int | None = Field(
        None, description="Tokens that the loss is computed on; null if that is not known."
    )
    longest: int = Field(0, description="Tokens of the longest row.")
    findings: list[str] = Field(default_factory=list, description="Checks of inspect_batch that found something.")


class RowsAt(Model):
    """The answer to "which rows were in the batch of this step?"."""

    path: Text = Field(description="The run, as it was named.")
    step: int = Field(description="The step that was asked for.")
    source: Literal["recorded", "reconstructed"] = Field(
        description="Whether the run recorded them, or they follow from its settings."
    )
    row_count: int = Field(description="Rows of the step, of all ranks and micro-batches.")
    batches: list[FedBatch] = Field(description="Each batch of the step: of each rank and micro-batch.")
    rows: list[FedRow] = Field(description="Each row once, those that differ most from the rows around first.")
    here: Beside | None = Field(None, description="The rows of this step; null without `data`.")
    around: Beside | None = Field(None, description="Those of the steps around it.")
    findings: list[BatchFinding] = Field(
        default_factory=list, description="What inspect_batch finds in this step's rows and not in those around."
    )
    basis: list[Text] = Field(default_factory=list, description="On what it rests: settings with their sources.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list, description="What was skipped, guessed or left out.")
