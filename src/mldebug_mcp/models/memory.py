"""The answers of `check_memory` and `estimate_memory`. Sizes are bytes throughout."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import Model, Number, Severity, Text
from mldebug_mcp.models.call import NextCall
from mldebug_mcp.models.diagnosis import Hypothesis
from mldebug_mcp.models.knowledge import Citation

Precision = Literal["mixed", "bf16", "fp16", "fp32"]
Optimizer = Literal["adamw", "adamw_8bit", "lion", "sgd", "sgd_momentum", "adafactor"]
Checkpointing = Literal["none", "selective", "full"]
Sharding = Literal["none", "zero1", "zero2", "zero3"]
Frozen = Literal["32bit", "16bit", "8bit", "4bit"]
Attention = Literal["flash", "eager"]


class MemoryFinding(Model):
    """Something observed in the memory of a run, in numbers."""

    finding: str
    severity: Severity = Field(description="error: it stopped the run or will; warning: worth acting on; info: normal.")
    summary: Text
    bytes: int = Field(0, description="How much memory this is about.")
    device: int | None = None
    stack: list[Text] = Field(
        default_factory=list, description="The stack that allocated it, innermost first, library frames folded."
    )
    fix: Text = ""
    values: dict[str, Number] = Field(default_factory=dict, description="The numbers behind the summary.")
    citations: list[Citation] = Field(default_factory=list)


class MemoryTotals(Model):
    """What was read, over all devices."""

    path: Text
    layout: Text = Field(description="Kind of file.")
    devices: int
    segments: int
    trace_events: int
    reserved_bytes: int = Field(description="Held by the allocator when the snapshot was taken.")
    allocated_bytes: int = Field(description="Held by tensors then, as torch.cuda.memory_allocated() counts.")
    requested_bytes: int = Field(0, description="Requested for those tensors, without rounding.")
    peak_allocated_bytes: int = Field(description="The most that tensors held in the history; devices added up.")
    peak_reserved_bytes: int = 0


class CategoryBytes(Model):
    """What one kind of memory takes at the moment shown (see `moment`)."""

    category: Text
    bytes: int
    share: Number = Field(description="Share of all that is allocated at that moment.")
    sure: Text = Field(description="certain, high, medium, low or not: how certain the category is for most of it.")
    how: Text = Field(description="How it was inferred.")


class CallSite(Model):
    """Memory held at the moment shown, by the line of code that allocated it."""

    id: str = Field(
        description="Pass it as `focus` for the whole stack, the sizes and the lifetimes of these allocations."
    )
    site: Text = Field(description="The innermost frame outside torch.")
    caller: Text = Field("", description="The innermost frame of the user's own code, if it is another one.")
    category: Text
    bytes: int
    count: int
    device: int = 0
    stack: list[Text] = Field(default_factory=list)
    details: dict[str, Number] = Field(default_factory=dict)


class StepMemory(Model):
    """One step of the training loop."""

    step: int = Field(description="Counted from 0 in the history.")
    peak_bytes: int
    end_bytes: int = Field(description="Held when the next step began.")
    reserved_bytes: int


class DeviceSummary(Model):
    """One device."""

    device: int
    allocated_bytes: int
    reserved_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_event: int | None = Field(None, description="Index of the event at the peak.")
    peak_step: int | None = None
    capacity_bytes: int | None = None
    free_split_bytes: int = Field(0, description="Free, but in segments that tensors partly hold.")
    largest_free_bytes: int = 0
    moment: Text = Field(
        "", description="The moment that `categories` and `top_allocations` show: the peak or the failure."
    )
    categories: list[CategoryBytes] = Field(default_factory=list)
    steps: list[StepMemory] = Field(default_factory=list)
    steps_found: int = 0
    steps_from: Text = ""


class OutOfMemoryReport(Model):
    """An allocation that failed."""

    device: int
    requested_bytes: int
    device_free_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    free_in_reserved_bytes: int
    largest_free_bytes: int | None = Field(None, description="The largest piece; null if it is not known.")
    missing_bytes: int
    failures: int
    site: Text = ""
    stack: list[Text] = Field(default_factory=list)


class Lever(Model):
    """One usual way to save memory, and what it would save here."""

    lever: str
    saves_bytes: int
    enough: bool | None = Field(None, description="Whether it alone would have let the failed request succeed.")
    how: Text


class MemoryChange(Model):
    """What differs between two snapshots, by call site."""

    site: Text
    category: Text
    before_bytes: int
    after_bytes: int
    change_bytes: int


class MemoryComparison(Model):
    """This snapshot compared with another."""

    other: Text
    allocated_change_bytes: int
    reserved_change_bytes: int
    peak_change_bytes: int
    categories: dict[str, int] = Field(description="Change of each category in bytes, at the moment shown.")
    sites: list[MemoryChange]


class MemoryReport(Model):
    """The answer to "what filled the GPU, what leaks, why did it run out?"."""

    snapshot: MemoryTotals
    findings: list[MemoryFinding] = Field(description="Only what is present, worst first.")
    top_allocations: list[CallSite]
    devices: list[DeviceSummary] = Field(default_factory=list)
    oom: OutOfMemoryReport | None = None
    levers: list[Lever] = Field(default_factory=list, description="What is at fault first, then what would save most.")
    hypotheses: list[Hypothesis] = Field(default_factory=list, description="Causes that the findings support.")
    comparison: MemoryComparison | None = None
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list)


class MemoryPart(Model):
    """One part of an estimate."""

    part: str
    bytes: int
    formula: Text


class MemoryEstimate(Model):
    """The memory that training a model takes on each device, by formula."""

    model: Text
    parameters: int
    trained_parameters: int
    parts: list[MemoryPart]
    total_bytes: int
    settings: dict[str, Text]
    measured_peak_bytes: int | None = Field(None, description="The peak of the snapshot given, for comparison.")
    sources: list[Text] = Field(default_factory=list)
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=list)
