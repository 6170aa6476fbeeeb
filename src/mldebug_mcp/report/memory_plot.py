"""The timeline as a PNG: what was held at every moment, stacked by category, with the peak and failures marked."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.errors import InputError
from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.sizes import GIB, MIB, size
from mldebug_mcp.memory.snapshot import MemorySnapshot
from mldebug_mcp.memory.timeline import Timeline, timeline
from mldebug_mcp.report.figure import figure_class
from mldebug_mcp.report.writing import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    Category.PARAMETERS: "#4c78a8",
    Category.OPTIMIZER_STATE: "#72b7b2",
    Category.GRADIENTS: "#54a24b",
    Category.COLLECTIVE: "#9d755d",
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
    found = [one for device in snapshot.devices[:MAX_DEVICES] if (one := timeline(device)) is not None]
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
    for one, panel in zip(drawn, axes, strict=True):
        _draw(panel, one)
    axes[-1].set_xlabel("event of the allocator")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_file(path, picture.getvalue())


def _draw(panel: Axes, one: Timeline) -> None:
    unit, name = (GIB, "GiB") if one.peak_bytes >= GIB else (MIB, "MiB")
    panel.stackplot(
        one.moments,
        [held / unit for held in one.held.values()],
        labels=[category.label.replace("_", " ") for category in one.held],
        colors=[COLOURS[category] for category in one.held],
        linewidth=0,
    )
    panel.plot(one.moments, one.reserved / unit, color="black", linewidth=1, linestyle="--", label="reserved")
    top = float(np.max(one.reserved, initial=one.peak_bytes)) / unit
    if len(one.steps) <= MAX_STEP_LINES:
        panel.vlines(one.steps, 0, top * 1.02, color="white", linewidth=0.6, alpha=0.8)
    _mark_peak(panel, one, one.peak_bytes / unit, top)
    _mark_failures(panel, one)
    panel.set_ylim(0, top * 1.18)
    panel.set_xlim(0, max(1, one.events))
    panel.set_ylabel(name)
    panel.set_title(f"device {one.device}: {one.events:,} events, {len(one.steps)} steps", loc="left", fontsize=10)
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8, reverse=True)
    panel.spines[["top", "right"]].set_visible(False)


def _mark_peak(panel: Axes, one: Timeline, height: float, top: float) -> None:
    late = one.peak > 0.7 * one.events
    panel.plot([one.peak], [height], marker="v", color="black", markersize=8, clip_on=False, zorder=5)
    panel.annotate(
        f"peak {size(one.peak_bytes)}",
        (one.peak, top),  # above the reserved curve, which would strike it through
        xytext=(-6 if late else 6, 6),
        textcoords="offset points",
        fontweight="bold",
        ha="right" if late else "left",
    )


def _mark_failures(panel: Axes, one: Timeline) -> None:
    for moment in one.failures[:20]:
        panel.axvline(float(moment), color="#b00020", linewidth=2)
    if len(one.failures):
        panel.annotate(
            "out of memory",
            (float(one.failures[0]), 0),
            xytext=(-4, 6),
            textcoords="offset points",
            color="#b00020",
            fontweight="bold",
            rotation=90,
            ha="right",
        )
