"""The memory report as one HTML file: timeline as SVG, findings, call sites."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

import numpy as np

from mldebug_mcp.memory.sizes import size
from mldebug_mcp.memory.snapshot import MemorySnapshot
from mldebug_mcp.memory.tables import Ints
from mldebug_mcp.memory.timeline import Timeline, timeline
from mldebug_mcp.models.memory import MemoryReport
from mldebug_mcp.report.memory_plot import COLOURS
from mldebug_mcp.report.svg import GRID
from mldebug_mcp.report.web_page import prose, web_page
from mldebug_mcp.report.writing import write_file
from mldebug_mcp.text import counted

WIDTH, HEIGHT, LEFT, BOTTOM = 960, 300, 70, 24
WIDTHS = {"on-wide": WIDTH, "on-narrow": 360}
"""Widths of the picture by the page that shows it: a phone would shrink the letters of the wide one."""
_STYLE = """
.on-narrow { display: none; }
@media (max-width: 40rem) { .on-wide { display: none; } .on-narrow { display: block; } }
p, li { overflow-wrap: anywhere; }
@media (max-width: 40rem) { td { overflow-wrap: anywhere; display: block; padding: 0; } td.number { text-align: left; font-weight: bold; }
  tr { display: block; margin-bottom: .6rem; } }
"""
GRID_LINES = 4


def write_memory_html(snapshot: MemorySnapshot, report: MemoryReport, path: str | Path) -> None:
    """Write the report as a page that opens anywhere; raises InputError if the file cannot be written."""
    write_file(path, memory_html(snapshot, report))


def memory_html(snapshot: MemorySnapshot, report: MemoryReport) -> str:
    """Return the page."""
    read = report.snapshot
    pictures = [_picture(one) for device in snapshot.devices if (one := timeline(device, WIDTH)) is not None]
    parts = [
        f"<h1>GPU memory: {escape(read.path)}</h1>",
        f"<p class=dim>{escape(read.layout)}; {counted(read.devices, 'device')}, {read.trace_events:,} events; peak "
        f"{size(read.peak_allocated_bytes)} allocated, {size(read.peak_reserved_bytes)} reserved</p>",
        *pictures,
        "<h2>Seen</h2>",
        *(
            f"<p class={one.severity}><b>{escape(one.finding)}</b>: {escape(one.summary)}<br><span class=dim>"
            f"{prose(one.fix)}</span></p>"
            for one in report.findings
        ),
        "<h2>Who holds it</h2>",
        _table(
            (size(one.bytes), f"{one.count}×", one.category, " ← ".join(one.stack) or one.site)
            for one in report.top_allocations
        ),
        "<h2>What would save how much</h2>",
        _table((size(one.saves_bytes), one.lever, one.how, "") for one in report.levers),
        *(f"<p class=dim>{escape(note)}</p>" for note in report.notes),
    ]
    return web_page(f"GPU memory: {read.path}", parts, _STYLE)


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = (
        f"<tr><td class=number>{escape(first)}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return f"<table>{''.join(lines)}</table>"


def _picture(one: Timeline) -> str:
    """Return the timeline drawn for a wide and for a narrow page: letters of one size in both."""
    key = "".join(
        f'<span style="background:{COLOURS[category]}"></span>{category.label.replace("_", " ")}'
        for category in one.held
    )
    pictures = "".join(f'<div class="{kind}">{_drawn(one, width)}</div>' for kind, width in WIDTHS.items())
    return (
        f"<h2>Device {one.device}</h2>{pictures}"
        f"<p class=key>{key}<span></span>- - reserved; {one.events:,} events, {len(one.steps)} steps</p>"
    )


def _drawn(one: Timeline, width: int) -> str:
    top = float(np.max(one.reserved, initial=max(1, one.peak_bytes))) * 1.08
    below = np.zeros(len(one.moments), np.int64)
    shapes = []
    for category, held in one.held.items():
        name = category.label.replace("_", " ")
        points = _band(one, below, below + held, (top, width))
        title = f"{name}: up to {size(int(held.max()))}"
        shapes.append(f'<polygon fill="{COLOURS[category]}" points="{points}"><title>{title}</title></polygon>')
        below = below + held
    line = " ".join(
        f"{_x(one, m, width):.1f},{_y(r, top):.1f}"
        for m, r in zip(one.moments.tolist(), one.reserved.tolist(), strict=True)
    )
    shapes.append(f'<polyline fill="none" stroke="currentColor" stroke-dasharray="4 3" points="{line}"/>')
    grid = [_grid_line(top * number / GRID_LINES, top, width) for number in range(GRID_LINES + 1)]
    marks = [_failure(_x(one, moment, width)) for moment in one.failures[:20].tolist()]
    x, y = _x(one, one.peak, width), _y(one.peak_bytes, top)
    anchor = "end" if x > width * 0.7 else "start"
    marks.append(
        f'<path d="M{x:.1f} {y:.1f} l-5 -9 h10 z" fill="currentColor"/><text x="{x:.1f}" y="{y - 12:.1f}" '
        f'text-anchor="{anchor}" '
        f'font-weight="bold">peak {size(one.peak_bytes)}</text>'
    )
    return (
        f"<svg viewBox='0 -14 {width} {HEIGHT + BOTTOM + 14}' fill='currentColor' font-size='11' role='img' "
        f"aria-label='memory held over the events of the allocator'>{''.join(grid + shapes + marks)}"
        f"<text x='{LEFT}' y='{HEIGHT + BOTTOM - 6}'>event 0 of the allocator</text>"
        f"<text x='{width}' y='{HEIGHT + BOTTOM - 6}' text-anchor='end'>{one.events:,}</text></svg>"
    )


def _failure(x: float) -> str:
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}" stroke="#b00020" stroke-width="2"/>'
    return f'{line}<text x="{max(LEFT + 80, x - 6):.1f}" y="{HEIGHT - 8}" text-anchor="end">out of memory</text>'


def _x(one: Timeline, moment: int, width: int) -> float:
    return LEFT + (width - LEFT) * max(0, moment) / max(1, one.events)


def _y(held: float, top: float) -> float:
    return HEIGHT * (1 - held / top)


def _band(one: Timeline, below: Ints, above: Ints, scale: tuple[float, int]) -> str:
    top, width = scale
    up = [
        f"{_x(one, m, width):.1f},{_y(h, top):.1f}" for m, h in zip(one.moments.tolist(), above.tolist(), strict=True)
    ]
    down = [
        f"{_x(one, m, width):.1f},{_y(h, top):.1f}" for m, h in zip(one.moments.tolist(), below.tolist(), strict=True)
    ]
    return " ".join(up + down[::-1])


def _grid_line(held: float, top: float, width: int) -> str:
    y = _y(held, top)
    return (
        f'<line x1="{LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{size(held)}</text>'
    )
