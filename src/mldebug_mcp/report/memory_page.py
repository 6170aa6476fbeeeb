"""The page on a memory snapshot, and its picture by Matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted
from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import MemorySnapshot, Timeline, timeline_of
from mldebug_mcp.memory.tables import GIB, MIB, Ints, size
from mldebug_mcp.models.memory import MemoryReport, MemoryTotals
from mldebug_mcp.report.chart import GRID, figure_class
from mldebug_mcp.report.sections import block_of
from mldebug_mcp.report.web_page import WIDE, block_html, for_both_widths, prose, web_page, write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    Category.PARAMETERS: "#4c78a8",
    Category.OPTIMIZER_STATE: "#72b7b2",
    Category.GRADIENTS: "#54a24b",
    Category.COLLECTIVE: "#9d755d",
    Category.WORKSPACE: "#79706e",
    Category.INPUTS: "#d67195",
    Category.ATTENTION_SCORES: "#b279a2",
    Category.OPTIMIZER_TEMPORARY: "#83bcb6",
    Category.ACTIVATIONS: "#f58518",
    Category.LOGITS: "#e45756",
    Category.TEMPORARY: "#eeca3b",
    Category.UNKNOWN: "#bab0ac",
}
"""One colour per category, distinct for people with colour blindness too (Vega's tableau10)."""
MAX_DEVICES = 8
MAX_STEP_LINES = 60


def timelines(snapshot: MemorySnapshot) -> list[Timeline]:
    """Return the timelines to draw; raises InputError where nothing was recorded."""
    found = [timeline for device in snapshot.devices[:MAX_DEVICES] if (timeline := timeline_of(device)) is not None]
    if not found:
        raise InputError(
            f"{snapshot.path}: no history to draw; record one with torch.cuda.memory._record_memory_history()"
        )
    return found


def plot_memory(snapshot: MemorySnapshot, path: str | Path) -> None:
    """Draw one panel per device and save the picture as a PNG.

    Raises:
        InputError: nothing was recorded, or the file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    drawn = timelines(snapshot)
    figure = figure_class()(figsize=(11, 1.2 + 3.6 * len(drawn)), dpi=110, layout="constrained")
    axes = figure.subplots(len(drawn), 1, squeeze=False)[:, 0]
    for timeline, panel in zip(drawn, axes, strict=True):
        _draw(panel, timeline)
    axes[-1].set_xlabel("event of the allocator")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_file(path, picture.getvalue())


def _draw(panel: Axes, timeline: Timeline) -> None:
    unit, name = (GIB, "GiB") if timeline.peak_bytes >= GIB else (MIB, "MiB")
    panel.stackplot(
        timeline.moments,
        [byte_counts / unit for byte_counts in timeline.held.values()],
        labels=[category.label.replace("_", " ") for category in timeline.held],
        colors=[COLOURS[category] for category in timeline.held],
        linewidth=0,
    )
    panel.plot(timeline.moments, timeline.reserved / unit, color="black", linewidth=1, linestyle="--", label="reserved")
    top = float(np.max(timeline.reserved, initial=timeline.peak_bytes)) / unit
    if len(timeline.steps) <= MAX_STEP_LINES:
        panel.vlines(timeline.steps, 0, top * 1.02, color="white", linewidth=0.6, alpha=0.8)
    _mark_peak(panel, timeline, timeline.peak_bytes / unit, top)
    _mark_failures(panel, timeline)
    panel.set_ylim(0, top * 1.18)
    panel.set_xlim(0, max(1, timeline.events))
    panel.set_ylabel(name)
    panel.set_title(
        f"device {timeline.device}: {timeline.events:,} events, {len(timeline.steps)} steps", loc="left", fontsize=10
    )
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8, reverse=True)
    panel.spines[["top", "right"]].set_visible(False)


def _mark_peak(panel: Axes, timeline: Timeline, height: float, top: float) -> None:
    late = timeline.peak > 0.7 * timeline.events
    panel.plot([timeline.peak], [height], marker="v", color="black", markersize=8, clip_on=False, zorder=5)
    panel.annotate(
        f"peak {size(timeline.peak_bytes)}",
        (timeline.peak, top),  # above the reserved curve, which would strike it through
        xytext=(-6 if late else 6, 6),
        textcoords="offset points",
        fontweight="bold",
        ha="right" if late else "left",
    )


def _mark_failures(panel: Axes, timeline: Timeline) -> None:
    for moment in timeline.failures[:20]:
        panel.axvline(float(moment), color="#b00020", linewidth=2)
    if len(timeline.failures):
        panel.annotate(
            "out of memory",
            (float(timeline.failures[0]), 0),
            xytext=(-4, 6),
            textcoords="offset points",
            color="#b00020",
            fontweight="bold",
            rotation=90,
            ha="right",
        )


HEIGHT = 300
LEFT = 76
BOTTOM = 24
_STYLE = """
p, li { overflow-wrap: anywhere; }
@media (max-width: 40rem) { td { overflow-wrap: anywhere; display: block; padding: 0; }
  td.number { text-align: left; font-weight: bold; }
  tr { display: block; margin-bottom: .6rem; } }
"""
GRID_LINES = 4


def write_memory_html(snapshot: MemorySnapshot, report: MemoryReport, path: str | Path) -> None:
    """Write the report as a page that opens anywhere; raises InputError if the file cannot be written."""
    write_file(path, memory_html(snapshot, report))


def memory_html(snapshot: MemorySnapshot, report: MemoryReport) -> str:
    """Return the page."""
    read = report.snapshot
    pictures = [
        _picture(timeline) for device in snapshot.devices if (timeline := timeline_of(device, WIDE)) is not None
    ]
    parts = [
        f"<h1>GPU memory: {escape(read.path)}</h1>{block_html(block_of(report.at_a_glance))}",
        f"<p class=dim>{escape(read.layout)}; {counted(read.devices, 'device')}, {read.trace_events:,} events; "
        f"{_peak(read)}</p>",
        *pictures,
        "<h2>Seen</h2>",
        *(
            f"<p class={finding.severity}><b>{escape(finding.finding)}</b>: "
            f"{escape(finding.summary)}<br><span class=dim>"
            f"{prose(finding.fix)}</span></p>"
            for finding in report.findings
        ),
        "<h2>Who holds it</h2>",
        _table(
            (
                size(allocation.bytes),
                f"{allocation.count}×",
                allocation.category,
                " ← ".join(allocation.stack) or allocation.site,
            )
            for allocation in report.top_allocations
        ),
        "<h2>What would save how much</h2>",
        _table((size(lever.saves_bytes), lever.lever, lever.how, "") for lever in report.levers),
        *(f"<p class=dim>{escape(note)}</p>" for note in report.notes),
    ]
    return web_page(f"GPU memory: {read.path}", parts, _STYLE)


def _peak(read: MemoryTotals) -> str:
    if not read.peak_allocated_bytes:
        return "the peak is not known, without a history"
    return f"peak {size(read.peak_allocated_bytes)} allocated, {size(read.peak_reserved_bytes)} reserved"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = (
        f"<tr><td class=number>{escape(first)}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return f"<table>{''.join(lines)}</table>"


def _picture(timeline: Timeline) -> str:
    """Return the timeline drawn for a wide and for a narrow page: letters of one size in both."""
    key = "".join(
        f'<bdi><span style="background:{COLOURS[category]}"></span>{category.label.replace("_", " ")}</bdi> '
        for category in timeline.held
    )
    pictures = for_both_widths(lambda width: _drawn(timeline, width))
    return (
        f"<h2>Device {timeline.device}</h2>{pictures}"
        f"<p class=key>{key}<span></span>- - reserved; {timeline.events:,} events, {len(timeline.steps)} steps</p>"
    )


def _drawn(timeline: Timeline, width: int) -> str:
    top = float(np.max(timeline.reserved, initial=max(1, timeline.peak_bytes))) * 1.08
    below = np.zeros(len(timeline.moments), np.int64)
    shapes = []
    for category, byte_counts in timeline.held.items():
        name = category.label.replace("_", " ")
        points = _band(timeline, below, below + byte_counts, (top, width))
        title = f"{name}: up to {size(int(byte_counts.max()))}"
        shapes.append(f'<polygon fill="{COLOURS[category]}" points="{points}"><title>{title}</title></polygon>')
        below = below + byte_counts
    line = " ".join(
        f"{_x(timeline, m, width):.1f},{_y(r, top):.1f}"
        for m, r in zip(timeline.moments.tolist(), timeline.reserved.tolist(), strict=True)
    )
    shapes.append(f'<polyline fill="none" stroke="currentColor" stroke-dasharray="4 3" points="{line}"/>')
    grid = [_grid_line(top * number / GRID_LINES, top, width) for number in range(GRID_LINES + 1)]
    marks = [_failure(_x(timeline, moment, width)) for moment in timeline.failures[:20].tolist()]
    x, y = _x(timeline, timeline.peak, width), _y(timeline.peak_bytes, top)
    anchor = "end" if x > width * 0.7 else "start"
    marks.append(
        f'<path d="M{x:.1f} {y:.1f} l-5 -9 h10 z" fill="currentColor"/><text x="{x:.1f}" y="{y - 12:.1f}" '
        f'text-anchor="{anchor}" '
        f'class="over" font-weight="bold">peak {size(timeline.peak_bytes)}</text>'
    )
    return (
        f"<svg viewBox='0 -14 {width} {HEIGHT + BOTTOM + 14}' fill='currentColor' font-size='12' role='img' "
        f"aria-label='memory held over the events of the allocator'>{''.join(grid + shapes + marks)}"
        f"<text x='{LEFT}' y='{HEIGHT + BOTTOM - 6}'>0: events of the allocator</text>"
        f"<text x='{width}' y='{HEIGHT + BOTTOM - 6}' text-anchor='end'>{timeline.events:,}</text></svg>"
    )


def _failure(x: float) -> str:
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}" stroke="#b00020" stroke-width="2"/>'
    place = f'x="{max(LEFT + 90, x - 6):.1f}" y="{HEIGHT - 8}" text-anchor="end" class="over"'
    return f"{line}<text {place}>out of memory</text>"


def _x(timeline: Timeline, moment: int, width: int) -> float:
    return LEFT + (width - LEFT) * max(0, moment) / max(1, timeline.events)


def _y(byte_count: float, top: float) -> float:
    return HEIGHT * (1 - byte_count / top)


def _band(timeline: Timeline, below: Ints, above: Ints, scale: tuple[float, int]) -> str:
    top, width = scale
    up = [
        f"{_x(timeline, m, width):.1f},{_y(h, top):.1f}"
        for m, h in zip(timeline.moments.tolist(), above.tolist(), strict=True)
    ]
    down = [
        f"{_x(timeline, m, width):.1f},{_y(h, top):.1f}"
        for m, h in zip(timeline.moments.tolist(), below.tolist(), strict=True)
    ]
    return " ".join(up + down[::-1])


def _grid_line(byte_count: float, top: float, width: int) -> str:
    y = _y(byte_count, top)
    return (
        f'<line x1="{LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{size(byte_count)}</text>'
    )
