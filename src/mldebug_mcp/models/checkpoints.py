"""The answer to "which checkpoint shall I keep?"."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Glance, Model, Number, Text, empty_list


class CheckpointFact(Model):
    """A checkpoint of a run, with its value of the metric."""

    name: Text = Field(description="Its path from the folder of the run.")
    step: Number | None = Field(None, description="Where it was saved, on the axis of the log; null: not known.")
    value: Number | None = Field(None, description="The metric there; null where it was not evaluated.")
    evaluated: Literal["there", "between", "by its name", "no"] = Field(
        "no", description="there: at its step. between: the value is read off between two evaluations."
    )
    as_good: bool = Field(False, description="Whether noise alone could part it from the best evaluation.")
    note: Text = Field("", description="What is wrong with it, or how it was matched.")


class CheckpointChoice(Model):
    """Which checkpoint of a run to keep, by the metric that its author chose."""

    at_a_glance: Glance | None = Field(None, description="What to read first; null inside of a diagnosis.")
    keep: Text = Field("", description="The one to keep, from the folder of the run; empty where that is unknown.")
    verdict: Literal["clear", "within noise", "too few evaluations", "not evaluated"] = Field(
        description="clear: no other is as good. within noise: others may be as good."
    )
    summary: Text = Field(description="The answer in a few sentences.")
    metric: Text = Field("", description="The metric that decides.")
    better: Literal["higher", "lower", ""] = Field("", description="Which way it is better.")
    chosen_by: Text = Field("", description="Who chose that metric: a setting, a state, a name, or this kind of run.")
    evaluations: int = Field(0, description="Finite values of the metric.")
    value: Number | None = Field(None, description="Its value at the one to keep.")
    best: Number | None = Field(None, description="Its best value in the log.")
    best_step: Number | None = Field(None, description="Where that is.")
    best_saved: bool = Field(False, description="Whether a checkpoint of that evaluation is there.")
    noise: Number | None = Field(None, description="Standard deviation from one evaluation to the next; null: unknown.")
    band: Number | None = Field(None, description="A smaller difference may be noise.")
    as_good: list[Text] = Field(
        default_factory=empty_list, description="Others that noise alone could part from the best."
    )
    checkpoints: list[CheckpointFact] = Field(
        default_factory=empty_list, description="All of them, in order of their steps."
    )
    notes: list[Text] = Field(default_factory=empty_list, description="What was taken for granted or left out.")
