"""A probe's loss curve as a PNG."""

from __future__ import annotations

import io
import math
from pathlib import Path

from mldebug_mcp.models import ProbeResult
from mldebug_mcp.report.figure import figure_class
from mldebug_mcp.report.writing import write_file


def draw_probe(result: ProbeResult) -> bytes:
    """Return a PNG of the loss curve with the losses of reference.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = figure_class()(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    points = [point for point in result.curve if math.isfinite(point.loss)]
    axes.plot([point.step for point in points], [point.loss for point in points], label="loss")
    references = {
        "uniform guess": (result.expected_initial_loss, ":"),
        "label frequencies": (result.unigram_loss, "-."),
        "memorised": (result.goal, "--"),
    }
    for name, (value, style) in references.items():
        if value is not None and math.isfinite(value):
            axes.axhline(value, linestyle=style, color="grey", label=name)
    axes.set(xlabel="step", ylabel="loss", title=f"overfitting one batch: {result.verdict.replace('_', ' ')}")
    axes.legend()
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return picture.getvalue()


def plot_probe(result: ProbeResult, path: str | Path) -> None:
    """Write the loss curve to a PNG file.

    Raises:
        InputError: the file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    write_file(path, draw_probe(result))
