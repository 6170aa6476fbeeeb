"""The answers of `check_memory` and `estimate_memory`. Sizes are bytes throughout."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import AtAGlance, Citation, Glance, Model, NextCall, Number, Severity, Text, empty_list
from mldebug_mcp.models.diagnosis import Hypothesis

Precision = Literal["mixed", "bf16", "fp16", "fp32"]
Optimizer = Literal[
    "adamw",
    "adamw_fused",
    "adamw_8bit",
    "adamw_4bit",
    "adamw_fp8",
    "paged_adamw",
    "paged_adamw_8bit",
    "lion",
    "lion_8bit",
    "paged_lion_8bit",
    "sgd",
    "sgd_momentum",
    "adafactor",
]
Offload = Literal["none", "optimizer", "parameters"]
Checkpointing = Literal["none", "selective", "full"]
Sharding = Literal["none", "zero1", "zero2", "zero3"]
Frozen = Literal["32bit", "16bit", "8bit", "4bit"]
Attention = Literal["flash", "eager"]


class MemoryFinding(Model):
    """Something observed in the memory of a run, in numbers."""

    finding: str = Field(description="Its id; `explain` tells how it is judged.")
    severity: Severity = Field(description="error: it stopped the run or will; warning: worth acting on; info: normal.")
    summary: Text = Field(description="What is seen, in numbers.")
    bytes: int = Field(0, description="How much memory this is about.")
    device: int | None = Field(None, description="Number of the device; null if it concerns all.")
    stack: list[Text] = Field(
        default_factory=empty_list, description="The stack that allocated it, innermost first, library frames folded."
    )
    fix: Text = Field("", description="What to change.")
    values: dict[str, Number] = Field(default_factory=dict, description="The numbers behind the summary.")
    citations: list[Citation] = Field(default_factory=empty_list, description="What practitioners wrote about it.")


class MemoryTotals(Model):
    """What was read, over all devices."""

    path: Text = Field(description="The file, as it was named.")
    layout: Text = Field(description="Kind of file.")
    devices: int = Field(description="Devices in it.")
    segments: int = Field(description="Stretches of memory that the allocator got from the devices.")
    trace_events: int = Field(description="Allocations, releases and the like in its history.")
    reserved_bytes: int = Field(description="Held by the allocator when the snapshot was taken.")
    allocated_bytes: int = Field(description="Held by tensors then, as torch.cuda.memory_allocated() counts.")
    requested_bytes: int = Field(0, description="Requested for those tensors, without rounding.")
    peak_allocated_bytes: int = Field(
        description="The most that tensors held in the history; devices added up. 0 without a history: it is not known."
    )
    peak_reserved_bytes: int = Field(
        0,
        description="The most that the allocator held in the history; devices added up. 0 without a history: it is not "
        "known.",
    )


class CategoryBytes(Model):
    """What one kind of memory takes at the moment shown (see `moment`)."""

    category: Text = Field(description="parameters, gradients, optimizer_state, activations, logits, temporary, …")
    bytes: int = Field(description="What it takes.")
    share: Number = Field(description="Share of all that is allocated at that moment.")
    sure: Text = Field(description="certain, high, medium, low or not: how certain the category is for most of it.")
    how: Text = Field(description="How it was inferred.")
    unexplained_share: Number = Field(
        0.0, description="Share of it that no stack explains: its size and lifetime alone put it here."
    )
    modules: dict[str, int] = Field(
        default_factory=dict,
        description="Of activations: bytes by the module of torch.nn that made them; `other` is plain code.",
    )


class CallSite(Model):
    """Memory held at the moment shown, by the line of code that allocated it."""

    id: str = Field(
        description="Pass it as `focus` for the whole stack, the sizes and the lifetimes of these allocations."
    )
    site: Text = Field(description="The innermost frame outside torch.")
    caller: Text = Field("", description="The innermost frame of the user's own code, if it is another one.")
    category: Text = Field(description="What kind of memory it is.")
    bytes: int = Field(description="What it holds at that moment.")
    count: int = Field(description="Allocations that hold it.")
    device: int = Field(0, description="Number of the device.")
    stack: list[Text] = Field(default_factory=empty_list, description="The stack that allocated it, innermost first.")
    details: dict[str, Number] = Field(default_factory=dict, description="More numbers on these allocations, by name.")


class StepMemory(Model):
    """One step of the training loop."""

    step: int = Field(description="Counted from 0 in the history; each ends with the optimizer's step.")
    peak_bytes: int = Field(description="The most that tensors held in it.")
    end_bytes: int = Field(description="Held when the next step began.")
    reserved_bytes: int = Field(description="Held by the allocator at its end.")


class DeviceSummary(Model):
    """One device."""

    device: int = Field(description="Its number.")
    allocated_bytes: int = Field(description="Held by tensors when the snapshot was taken.")
    reserved_bytes: int = Field(description="Held by the allocator then.")
    peak_allocated_bytes: int = Field(
        description="The most that tensors held in the history. 0 without a history: it is not known."
    )
    peak_reserved_bytes: int = Field(
        description="The most that the allocator held in the history. 0 without a history: it is not known."
    )
    peak_event: int | None = Field(None, description="Index of the event at the peak.")
    peak_step: int | None = Field(
        None, description="The step of the peak, counted from 0; null where no steps are found."
    )
    capacity_bytes: int | None = Field(None, description="What the device has; null if that is not known.")
    free_split_bytes: int = Field(0, description="Free, but in segments that tensors partly hold.")
    largest_free_bytes: int = Field(0, description="The largest free piece in what the allocator holds.")
    moment: Text = Field(
        "", description="The moment that `categories` and `top_allocations` show: the peak or the failure."
    )
    categories: list[CategoryBytes] = Field(
        default_factory=empty_list, description="What the memory is, the largest first."
    )
    steps: list[StepMemory] = Field(
        default_factory=empty_list, description="Step by step; of more than 200, as many at even distances."
    )
    steps_found: int = Field(0, description="Steps of the training loop in the history.")
    steps_from: Text = Field("", description="How the steps were found.")


class OutOfMemoryReport(Model):
    """An allocation that failed."""

    device: int = Field(description="Its number.")
    requested_bytes: int = Field(description="What was asked for.")
    device_free_bytes: int = Field(description="Free on the device, outside of the allocator.")
    limit_bytes: int | None = Field(None, description="What this process may take of the device; null if not given.")
    others_bytes: int = Field(0, description="Held by other processes on the device, if it is given.")
    own_bytes: int = Field(0, description="Held by CUDA's context and libraries of this process, if it is given.")
    allocated_bytes: int = Field(description="Held by tensors.")
    reserved_bytes: int = Field(description="Held by the allocator.")
    free_in_reserved_bytes: int = Field(description="Held by the allocator and free.")
    largest_free_bytes: int | None = Field(None, description="The largest piece; null if it is not known.")
    missing_bytes: int = Field(description="What was asked for beyond all that was free.")
    failures: int = Field(description="Failed requests in the history.")
    site: Text = Field("", description="The line of code that asked.")
    stack: list[Text] = Field(default_factory=empty_list, description="Its stack, innermost first.")


class Lever(Model):
    """One usual way to save memory, and what it would save here."""

    lever: str = Field(description="Its name.")
    saves_bytes: int = Field(description="What it would save, about.")
    enough: bool | None = Field(None, description="Whether it alone would have let the failed request succeed.")
    how: Text = Field(description="What to change.")


class MemoryChange(Model):
    """What differs between two snapshots, by call site."""

    site: Text = Field(description="The line of code that allocated it.")
    category: Text = Field(description="What kind of memory it is.")
    before_bytes: int = Field(description="In the other snapshot.")
    after_bytes: int = Field(description="In this one.")
    change_bytes: int = Field(description="How much more it is in this one.")


class MemoryComparison(Model):
    """This snapshot compared with another."""

    other: Text = Field(description="The snapshot that it was compared with.")
    allocated_change_bytes: int = Field(description="How much more tensors hold here.")
    reserved_change_bytes: int = Field(description="How much more the allocator holds here.")
    peak_change_bytes: int = Field(description="How much higher the peak is here; 0 where one of them has no history.")
    categories: dict[str, int] = Field(description="Change of each category in bytes, at the moment shown.")
    sites: list[MemoryChange] = Field(description="The largest changes first.")


class MemoryReport(Model):
    """The answer to "what filled the GPU, what leaks, why did it run out?"."""

    at_a_glance: AtAGlance = Field(default_factory=Glance)
    snapshot: MemoryTotals = Field(description="What was read.")
    findings: list[MemoryFinding] = Field(description="Only what is present, worst first.")
    top_allocations: list[CallSite] = Field(description="What holds most at the moment shown.")
    devices: list[DeviceSummary] = Field(default_factory=empty_list, description="Each device.")
    oom: OutOfMemoryReport | None = Field(None, description="The allocation that failed; null where none did.")
    levers: list[Lever] = Field(
        default_factory=empty_list, description="What is at fault first, then what would save most."
    )
    hypotheses: list[Hypothesis] = Field(default_factory=empty_list, description="Causes that the findings support.")
    comparison: MemoryComparison | None = Field(None, description="With `against`; null where that was not given.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed or left out.")


class MemoryPart(Model):
    """One part of an estimate."""

    part: str = Field(description="What it is.")
    bytes: int = Field(description="What it takes.")
    formula: Text = Field(description="How that was computed.")


class FitStep(Model):
    """One change on the way to a training that fits."""

    lever: str = Field(description="Its name.")
    settings: dict[str, Text] = Field(description="Arguments of `estimate_memory` that it sets.")
    saves_bytes: int = Field(description="What it saves after the changes before it; below 0 if it takes more.")
    needed_bytes: int = Field(description="What is needed then on each device.")
    costs: Text = Field(description="What it costs.")


class MemoryFit(Model):
    """Whether the training fits a GPU."""

    gpu: Text = Field(description="The GPU, as it is known here.")
    capacity_bytes: int = Field(description="What it holds.")
    needed_bytes: int = Field(description="The peak, and 1 GiB for CUDA's context.")
    verdict: Literal["fits", "tight", "does_not_fit"] = Field(
        description="tight: a fifth more of activations and logits would be too much."
    )
    plan: list[FitStep] = Field(
        default_factory=empty_list,
        description="The changes that make it fit, what saves most first; empty if it fits as it is.",
    )
    enough: bool = Field(description="Whether it fits as it is or with the plan.")
    devices_needed: int | None = Field(
        None, description="If not: over how many such GPUs ZeRO-3 would make it fit; null if that is not known."
    )
    largest_length: int | None = Field(
        None, description="Tokens of the longest row that fits with these settings; null if none does, and for images."
    )
    summary: Text = Field(description="All of this in a sentence.")


class MemoryEstimate(Model):
    """The memory that training a model takes on each device, by formula."""

    model: Text = Field(description="The model, as it was named.")
    parameters: int = Field(description="Parameters in all.")
    trained_parameters: int = Field(description="Parameters that are trained.")
    parts: list[MemoryPart] = Field(description="The largest first.")
    total_bytes: int = Field(description="On each device.")
    settings: dict[str, Text] = Field(description="What was assumed, by name.")
    measured_peak_bytes: int | None = Field(None, description="The peak of the snapshot given, for comparison.")
    fit: MemoryFit | None = Field(None, description="With `gpu`: whether it fits there; null where that was not given.")
    sources: list[Text] = Field(default_factory=empty_list, description="Where the formulas are from.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was assumed or left out.")
