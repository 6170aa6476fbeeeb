"""A probe's loss curve as a PNG."""

from __future__ import annotations

import math
from pathlib import Path

from mldebug_mcp.errors import InputError, MissingExtraError
from mldebug_mcp.models import ProbeResult


def plot_probe(result: ProbeResult, path: str | Path) -> None:
    """Write the loss curve with the losses of reference.

    Raises:
        InputError: the file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    points = [point for point in result.curve if math.isfinite(point.loss)]
    axes.plot([point.step for point in points], [point.loss for point in points], label="loss")
    for name, value, style in (
        ("uniform guess", result.expected_initial_loss, ":"),
        ("label frequencies", result.unigram_loss, "-."),
        ("memorised", result.goal, "--"),
    ):
        if value is not None and math.isfinite(value):
            axes.axhline(value, linestyle=style, color="grey", label=name)
    axes.set(xlabel="step", ylabel="loss", title=result.verdict.replace("_", " "))
    axes.legend()
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
