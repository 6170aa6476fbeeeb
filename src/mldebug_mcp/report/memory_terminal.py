"""A memory report for a terminal: findings, what holds the peak, who holds most, what would save most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mldebug_mcp.logs import Series
from mldebug_mcp.memory.sizes import size
from mldebug_mcp.models.memory import (
    CallSite,
    DeviceSummary,
    Lever,
    MemoryComparison,
    MemoryEstimate,
    MemoryFinding,
    MemoryFit,
    MemoryReport,
)
from mldebug_mcp.report.console import bullets, plain_table, print_section
from mldebug_mcp.report.sparkline import sparkline
from mldebug_mcp.text import counted, percent

SHOWN_LEVERS = 6
SHOWN_STEPS = 60
SURE = {"certain": "", "high": " (very likely)", "medium": " (likely)", "low": " (a guess)", "not": ""}
"""What is added to how a category was recognised, by how sure it is."""
_COLOUR = {"error": "bold red", "warning": "bold yellow", "info": "bold"}


def print_memory(console: Console, report: MemoryReport) -> None:
    """Print what is seen, who holds the memory, and what would save most."""
    read = report.snapshot
    console.print(
        Text.assemble(
            (read.path, "bold"),
            f": {read.layout}, {counted(read.devices, 'device')}, {counted(read.segments, 'segment')}, "
            f"{counted(read.trace_events, 'event')}",
        )
    )
    print_section(console, "Seen", [_finding(one) for one in report.findings])
    if len(report.devices) > 1:
        print_section(console, "Devices", [_devices(report)])
    for device in report.devices:
        _print_device(console, device)
    if report.top_allocations:
        print_section(console, "Who holds it", [_sites(report.top_allocations, len(report.devices))])
    if report.levers:
        print_section(console, "What would save how much", [_levers(report.levers)])
    if report.comparison is not None:
        print_section(console, f"Against {report.comparison.other}", [_comparison(report.comparison)])
    print_section(console, "Notes", bullets(report.notes))


def print_estimate(console: Console, estimate: MemoryEstimate) -> None:
    """Print an estimate with its formulas."""
    settings = ", ".join(f"{name} {value}" for name, value in estimate.settings.items())
    console.print(Text.assemble((estimate.model, "bold"), f": {estimate.parameters:,} parameters; {settings}"))
    table = plain_table("left", "right", "text")
    for part in estimate.parts:
        table.add_row(part.part, size(part.bytes), Text(part.formula, style="dim"))
    table.add_row(Text("total", style="bold"), Text(size(estimate.total_bytes), style="bold"), "on each device")
    if estimate.measured_peak_bytes is not None:
        table.add_row("measured peak", size(estimate.measured_peak_bytes), "of the snapshot")
    console.print(Padding(table, (1, 0, 0, 2)))
    if estimate.fit is not None:
        print_section(console, "Does it fit?", _fit(estimate.fit))
    print_section(console, "Sources", bullets(estimate.sources))
    print_section(console, "Notes", bullets(estimate.notes))


def _fit(fit: MemoryFit) -> list[RenderableType]:
    """Return the verdict, and what to change in which order."""
    told = fit.summary if not fit.plan else fit.summary.partition(";")[0]
    lines: list[RenderableType] = [Text(told, style="bold" if fit.verdict == "fits" else _COLOUR["warning"])]
    if not fit.plan:
        return lines
    table = plain_table("left", "right", "right", "text")
    table.add_row("", *(Text(one, style="dim") for one in ("saves", "then needs", "costs")))
    for one in fit.plan:
        what = ", ".join(f"{name} {value}" for name, value in one.settings.items())
        table.add_row(what, size(one.saves_bytes), size(one.needed_bytes), Text(one.costs, style="dim"))
    return [*lines, table, Text(_after_plan(fit))]


def _after_plan(fit: MemoryFit) -> str:
    if fit.enough:
        return "With these it fits."
    if fit.devices_needed is not None:
        return f"Even so it does not fit; ZeRO-3 over {fit.devices_needed} such GPUs on top would."
    return "Even so it does not fit; use a smaller model."


def _finding(one: MemoryFinding) -> Text:
    text = Text.assemble((f"{one.finding}: ", _COLOUR[one.severity]), one.summary)
    if one.fix:
        text.append(f"\n   {one.fix}", style="dim")
    return text


def _devices(report: MemoryReport) -> Table:
    """Return what each device holds, and all together."""
    table = plain_table("left", "right", "right", "right", "right")
    table.add_row("", *(Text(one, style="dim") for one in ("peak", "peak reserved", "allocated", "reserved")))
    for one in report.devices:
        amounts = (one.peak_allocated_bytes, one.peak_reserved_bytes, one.allocated_bytes, one.reserved_bytes)
        table.add_row(f"device {one.device}", *map(size, amounts))
    read = report.snapshot
    sums = (read.peak_allocated_bytes, read.peak_reserved_bytes, read.allocated_bytes, read.reserved_bytes)
    table.add_row("sum", *(Text(size(one), style="bold") for one in sums))
    return table


def _print_device(console: Console, device: DeviceSummary) -> None:
    lines: list[RenderableType] = [
        Text(
            f"peak {size(device.peak_allocated_bytes)} allocated, {size(device.peak_reserved_bytes)} reserved; "
            f"now {size(device.allocated_bytes)} of {size(device.reserved_bytes)}"
        )
    ]
    if device.steps:
        peaks = np.array([step.peak_bytes for step in device.steps], dtype=np.float64)
        curve, _ = sparkline(Series("peak", np.arange(len(peaks), dtype=np.float64), peaks), SHOWN_STEPS)
        lines.append(
            Text.assemble("peak per step ", (curve, "cyan"), f" {device.steps_found} steps ({device.steps_from})")
        )
    if device.categories:
        table = plain_table("left", "right", "right", "text")
        for one in device.categories:
            table.add_row(
                one.category, size(one.bytes), percent(one.share), Text(one.how + SURE.get(one.sure, ""), style="dim")
            )
        lines += [Text(device.moment, style="dim"), table]
    print_section(console, f"Device {device.device}", lines)


def _sites(sites: Sequence[CallSite], devices: int) -> Table:
    """Return who holds how much; of several devices, where."""
    table = plain_table("right", "right", "text", "text")
    for one in sites:
        called = f"\nfrom {one.caller}" if one.caller else ""
        table.add_row(
            size(one.bytes),
            f"{one.count}×",
            one.category,
            Text.assemble(
                f"device {one.device}: " if devices > 1 else "", one.site, (called, "dim"), (f"  {one.id}", "dim")
            ),
        )
    return table


def _levers(levers: Sequence[Lever]) -> Table:
    table = plain_table("right", "left", "text")
    for one in levers[:SHOWN_LEVERS]:
        enough = {True: " [enough alone]", False: " [not enough alone]", None: ""}[one.enough]
        table.add_row(size(one.saves_bytes), one.lever, Text.assemble((one.how, "dim"), enough))
    return table


def _comparison(one: MemoryComparison) -> Text:
    lines = [
        f"allocated {_signed(one.allocated_change_bytes)}, reserved {_signed(one.reserved_change_bytes)}, peak "
        f"{_signed(one.peak_change_bytes)}",
        ", ".join(f"{name} {_signed(change)}" for name, change in one.categories.items()),
        *(f"{_signed(site.change_bytes):>12}  {site.category}  {site.site}" for site in one.sites),
    ]
    return Text("\n".join(line for line in lines if line))


def _signed(count: int) -> str:
    return f"{'+' if count >= 0 else '-'}{size(abs(count))}"
