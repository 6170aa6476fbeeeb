"""Faults of the machine. What they do to clock and memory is simulated; the training beside it is real."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.faults.experiment import Record
from benchmarks.faults.faults.fault import Fault
from benchmarks.faults.loop import Setup


def clock(setup: Setup, edit: Callable[[int, Record, torch.Generator], Record]) -> None:
    """Log step time, data time and memory, and let a fault edit them."""
    generator = torch.Generator().manual_seed(setup.seed)

    def with_clock(step: int, record: Record) -> Record:
        jitter = torch.rand(1, generator=generator).item()
        record["step_time"] = 0.5 * (1 + 0.05 * jitter)
        record["data_time"] = 0.01 * (1 + jitter)
        record["memory"] = 20.0 + 0.05 * jitter
        return edit(step, record, generator)

    setup.edit = with_clock


def slow_loader(setup: Setup, severity: float) -> None:
    """Wait for data at each step."""

    def edit(_: int, record: Record, generator: torch.Generator) -> Record:
        wait = severity * (0.5 + torch.rand(1, generator=generator).item())
        return record | {"data_time": wait, "step_time": record["step_time"] + wait}

    clock(setup, edit)


def leak(setup: Setup, severity: float) -> None:
    """Keep some memory at each step."""
    clock(setup, lambda step, record, _: record | {"memory": record["memory"] + severity * step})


def slower_and_slower(setup: Setup, severity: float) -> None:
    """Let each step take a little longer than the one before."""

    def edit(step: int, record: Record, _: torch.Generator) -> Record:
        return record | {"step_time": record["step_time"] * (1 + severity * step / setup.steps)}

    clock(setup, edit)


def straggler(setup: Setup, severity: float) -> None:
    """Let one step in twenty-five take several times as long."""

    def edit(_: int, record: Record, generator: torch.Generator) -> Record:
        slow = torch.rand(1, generator=generator).item() < 0.04
        return record | {"step_time": record["step_time"] * (severity if slow else 1)}

    clock(setup, edit)


def constant_metric(setup: Setup, severity: float) -> None:
    """Log the same accuracy at each evaluation."""
    setup.edit = lambda _, record: record | ({"eval_accuracy": severity} if "eval_accuracy" in record else {})


FAULTS = (
    Fault("slow_loader", "dataloader_bottleneck", slow_loader, (0.5, 2.0)),
    Fault("leak", "memory_leak", leak, (0.01, 0.1)),
    Fault(
        "slower_and_slower", "throughput_degradation", slower_and_slower, (1.0, 4.0), also=("memory_leak",)
    ),
    Fault(
        "straggler", "hardware_fault", straggler, (4.0, 12.0),
        also=("dataloader_bottleneck", "throughput_degradation"),
    ),
    Fault(
        "constant_metric", "metric_bug", constant_metric, (0.0, 0.25), ("tabular", "images", "sequences", "sft"),
        ("class_imbalance",),
    ),
)  # fmt: skip
