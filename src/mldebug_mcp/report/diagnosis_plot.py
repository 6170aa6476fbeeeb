"""A run's curves as a PNG, with the onsets of what was seen and the leading hypotheses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis, Finding
from mldebug_mcp.report.curves import MAX_NAME, Panel, labels, panels
from mldebug_mcp.report.figure import figure_class
from mldebug_mcp.report.sections import worth_showing
from mldebug_mcp.report.svg import ONSET, REFERENCE, colours
from mldebug_mcp.report.writing import write_file
from mldebug_mcp.text import figure, percent, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEADING = 3
MOST_LISTED, MAX_LINE = 12, 150
NEAR, LETTER = 0.02, 0.01
"""Of the run: the width of a number of one digit, and of each further letter."""


def plot_diagnosis(diagnosis: Diagnosis, run: Run, path: str | Path, reference: Run | None = None) -> None:
    """Save the picture as a PNG.

    Raises:
        InputError: no curve can be drawn, or the file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    content = io.BytesIO()
    diagnosis_figure(diagnosis, run, reference).savefig(content, format="png")
    write_file(path, content.getvalue())


def diagnosis_figure(diagnosis: Diagnosis, run: Run, reference: Run | None = None) -> Figure:
    """Draw the panels one above the other, with what was seen below them.

    Raises:
        InputError: no curve can be drawn.
        MissingExtraError: matplotlib is not installed.
    """
    seen = worth_showing(diagnosis.findings)
    drawn = panels(run, diagnosis, seen, reference)
    if not drawn:
        raise InputError(f"{diagnosis.run.path}: no curve to draw: no metric has a finite value")
    listed = _listed(seen)
    inches = 0.9 + 2.1 * len(drawn) + 0.19 * len(listed)
    picture = figure_class()(figsize=(11, inches), dpi=90, layout="constrained")
    axes = picture.subplots(len(drawn), 1, squeeze=False, sharex=True)[:, 0]
    for panel, where in zip(drawn, axes, strict=True):
        _draw(where, panel, run.last_step - run.first_step)
    axes[-1].set_xlabel("\n".join([run.step_name, *listed]), loc="left", fontsize=9, parse_math=False)
    leading = ", ".join(f"{one.cause} {percent(one.probability)}" for one in diagnosis.hypotheses[:LEADING])
    name = shorten(diagnosis.run.path, MAX_NAME)
    picture.suptitle(f"{name}: what it may be: {leading}", x=0.01, ha="left", fontsize=11, parse_math=False)
    return picture


def _listed(seen: list[Finding]) -> list[str]:
    lines = [shorten(f"{number}  {one.symptom}: {one.summary}", MAX_LINE) for number, one in enumerate(seen, start=1)]
    more = [f"and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
    return lines[:MOST_LISTED] + more


def _draw(where: Axes, panel: Panel, span: float) -> None:
    for curve, colour in zip(panel.curves, colours(panel), strict=True):
        for number, (step, value) in enumerate(curve.lines):
            style = "o" if len(step) == 1 else "-"
            width = 0.7 if curve.of else 1.4
            where.plot(step, value, style, color=colour, linewidth=width, label=None if number else curve.title)
        if len(curve.lost):
            top = [panel.scale.high] * len(curve.lost)
            where.plot(curve.lost, top, "x", color=colour, clip_on=False, label="NaN or infinite")
    for restart in panel.restarts:
        where.axvline(restart, color=REFERENCE, linewidth=1, linestyle=":", zorder=0)
    for mark in panel.marks:
        where.axvline(mark.step, color=ONSET, linewidth=1, linestyle="--", zorder=0)
    for numbers, group in labels(panel.marks, NEAR * span, LETTER * span):
        where.annotate(
            numbers,
            (group[0].step, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            color=ONSET,
            fontweight="bold",
        )
    where.set_yscale("log" if panel.scale.logarithmic else "linear")
    where.set_ylim(panel.scale.low, panel.scale.high)
    if panel.beyond is not None:
        where.set_ylabel(f"to {figure(panel.beyond)}", fontsize=8)
    where.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    where.spines[["top", "right"]].set_visible(False)
