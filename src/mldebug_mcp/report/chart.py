"""Curves as pictures, by SVG on pages and by Matplotlib in files."""

from __future__ import annotations

import io
import math
import os
from html import escape
from itertools import cycle
from typing import TYPE_CHECKING, Literal

import numpy as np

from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.paths import temporary_folder
from mldebug_mcp.core.text import figure, percent, shorten
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import Diagnosis, Finding, ProbeResult
from mldebug_mcp.report.curves import MAX_RUN_NAME, REFERENCE_RUN, Curve, Mark, Panel, labels, panels, round_values
from mldebug_mcp.report.sections import worth_showing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A panel of curves as SVG: drawn on any background, nothing loaded.


PANEL_WIDTH = 960
PANEL_HEIGHT = 220
LEFT_MARGIN = 70
RIGHT_MARGIN = 24
TOP_MARGIN = 24
BOTTOM_MARGIN = 34
COLOURS = ("#4c78a8", "#cf6a0a", "#3f8f3a", "#a9649a", "#9d755d", "#2f8f89")
"""After Vega's tableau10, whose hues people with colour blindness tell apart; 3:1 against white and dark pages."""
REFERENCE = "#8a8a8a"
"""Colour of a reference, seen on a light and on a dark page like the next two."""
GRID = "#8884"
"""Colour of the grid."""
ONSET = "#c62828"
"""Colour of an onset."""
BADGE_HEIGHT = 18
"""Height of the numbers above a panel."""
SVG_LETTER = 7.5
"""Width of a letter in them."""


def panel_svg(panel: Panel, first: float, last: float, step_name: str) -> str:
    """Return a panel over the steps from `first` to `last`."""
    place = _Place(first, last, panel)
    names = ", ".join(curve.title for curve in panel.curves)
    parts = [
        *(_tick(place, value) for value in panel.scale.ticks()),
        *(_step_tick(place, step) for step in round_values(first, last, 8)),
        f'<text x="{(LEFT_MARGIN + PANEL_WIDTH) / 2}" y="{PANEL_HEIGHT + 31}" text-anchor="middle">'
        f"{escape(step_name)}</text>",
        *(
            f'<line stroke="{REFERENCE}" stroke-dasharray="1 3" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{PANEL_HEIGHT}"/>'
            for x in place.x(np.array(panel.restarts)).tolist()
        ),
        *(
            _mark(place, *label)
            for label in labels(panel.marks, place.steps(BADGE_HEIGHT + 2), place.steps(SVG_LETTER))
        ),
        *(_curve(place, curve, colour) for curve, colour in zip(panel.curves, colours(panel), strict=True)),
        *([] if panel.worst is None else [_worst(place, panel.worst)]),
    ]
    width, height = PANEL_WIDTH + RIGHT_MARGIN, PANEL_HEIGHT + TOP_MARGIN + BOTTOM_MARGIN
    return (
        f'<svg viewBox="0 {-TOP_MARGIN} {width} {height}" fill="currentColor" font-size="11" role="img" '
        f'aria-label="{escape(names)} over {escape(step_name)}s">{"".join(parts)}</svg>'
    )


def points_of(x: Floats, y: Floats) -> str:
    """Return places in a picture as SVG takes them."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def colours(panel: Panel) -> list[str]:
    """Return a colour for each curve of a panel: the run's own in order, siblings from the end, the reference grey."""
    own, siblings = cycle(COLOURS), cycle(reversed(COLOURS))
    return [REFERENCE if curve.of == REFERENCE_RUN else next(siblings if curve.of else own) for curve in panel.curves]


class _Place:
    """Where steps and values stand in the picture."""

    def __init__(self, first: float, last: float, panel: Panel) -> None:
        # Halves, because the difference of two steps may be larger than a float holds.
        self._first, self._span, self._scale = first / 2, last / 2 - first / 2 or 1.0, panel.scale

    def x(self, step: Floats) -> Floats:
        return LEFT_MARGIN + (PANEL_WIDTH - LEFT_MARGIN) * np.clip((step / 2 - self._first) / self._span, 0.0, 1.0)

    def steps(self, width: float) -> float:
        return 2 * width / (PANEL_WIDTH - LEFT_MARGIN) * self._span

    def y(self, value: Floats) -> Floats:
        return PANEL_HEIGHT * (1 - self._scale.share(value))


def _curve(place: _Place, curve: Curve, colour: str) -> str:
    style = f'fill="none" stroke="{colour}" stroke-width="{0.9 if curve.of else 1.6}" stroke-linejoin="round"'
    parts = []
    for step, value in curve.lines:
        x, y = place.x(step), place.y(value)
        if len(x) == 1:
            parts.append(f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="3" fill="{colour}"/>')
        else:
            parts.append(f'<polyline {style} points="{points_of(x, y)}"/>')
    parts += [
        f'<text x="{x:.1f}" y="12" text-anchor="middle" fill="{colour}">×<title>NaN or infinite</title></text>'
        for x in place.x(curve.lost).tolist()
    ]
    return "".join(parts)


def _mark(place: _Place, numbers: str, group: list[Mark]) -> str:
    """Return a line at each onset that shares a label, and the label above the first."""
    half = max(BADGE_HEIGHT, SVG_LETTER * len(numbers) + 8) / 2
    steps = place.x(np.array([mark.step for mark in group])).tolist()
    x, y = min(steps[0], PANEL_WIDTH + RIGHT_MARGIN - half), -TOP_MARGIN + 1
    lines = "".join(
        f'<line stroke="{ONSET}" stroke-dasharray="4 3" x1="{at:.1f}" x2="{at:.1f}" '
        f'y1="{y + BADGE_HEIGHT}" y2="{PANEL_HEIGHT}"/>'
        for at in steps
    )
    tooltip = "; ".join(mark.words for mark in group)
    return (
        f'<g>{lines}<rect x="{x - half:.1f}" y="{y}" width="{2 * half:.1f}" height="{BADGE_HEIGHT}" '
        f'rx="{BADGE_HEIGHT / 2}" fill="{ONSET}"/>'
        f'<text x="{x:.1f}" y="{y + 13}" text-anchor="middle" fill="#fff" font-weight="bold">{numbers}'
        f"</text><title>{escape(tooltip)}</title></g>"
    )


def _worst(place: _Place, step: float) -> str:
    """Return an arrow at the worst event."""
    x = float(place.x(np.array([step]))[0])
    arrow = f"M{x:.1f},{PANEL_HEIGHT - 12} l7,12 h-14 z"
    return f'<path fill="{ONSET}" d="{arrow}"><title>worst: at {figure(step)}</title></path>'


def _tick(place: _Place, value: float) -> str:
    y = float(place.y(np.array([value]))[0])
    return (
        f'<line stroke="{GRID}" x1="{LEFT_MARGIN}" x2="{PANEL_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT_MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{figure(value)}</text>'
    )


def _step_tick(place: _Place, step: float) -> str:
    x = float(place.x(np.array([step]))[0])
    return f'<text x="{x:.1f}" y="{PANEL_HEIGHT + 16}" text-anchor="middle">{figure(step)}</text>'


# Matplotlib's `Figure`, imported without a trace: by itself it writes its list of fonts below the user's home.


_FOLDER = "MPLCONFIGDIR"


def figure_class() -> type[Figure]:
    """Return the class; its caches go to a folder that is gone again, unless the user has named one.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    named = os.environ.get(_FOLDER)
    with temporary_folder("mldebug-fonts-") as folder:
        os.environ[_FOLDER] = named or folder
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingExtraError("matplotlib", "plot") from None
        finally:
            os.environ[_FOLDER] = named or ""
            if named is None:
                del os.environ[_FOLDER]
    # By itself a notebook shows a figure only where pyplot made it.
    return type("Figure", (Figure,), {"_repr_png_": png_of})


def png_of(picture: Figure, dpi: float | Literal["figure"] = "figure") -> bytes:
    """Return a picture as the content of a PNG file."""
    content = io.BytesIO()
    picture.savefig(content, format="png", dpi=dpi)
    return content.getvalue()


# A run's curves as a PNG, with the onsets of what was seen and the leading hypotheses.


MAX_DRAWN_HYPOTHESES = 3
MOST_LISTED = 12
MAX_LABEL_CHARACTERS = 150
DIGIT_WIDTH = 0.02
"""Width of a number of one digit, as a share of the run."""
DIAGNOSIS_PLOT_LETTER = 0.01
"""Width of each further letter, as a share of the run."""


def diagnosis_png(diagnosis: Diagnosis, run: Run, reference: Run | None = None) -> bytes:
    """Return the picture as a PNG; raises what `diagnosis_figure` does."""
    return png_of(diagnosis_figure(diagnosis, run, reference))


def diagnosis_figure(diagnosis: Diagnosis, run: Run, reference: Run | None = None) -> Figure:
    """Draw the panels one above the other, with what was seen below them.

    Raises:
        InputError: no curve can be drawn.
        MissingExtraError: matplotlib is not installed.
    """
    noteworthy = worth_showing(diagnosis.findings)
    drawn = panels(run, diagnosis, noteworthy, reference)
    if not drawn:
        raise InputError(f"{diagnosis.run.path}: no curve to draw: no metric has a finite value")
    listed = _listed(noteworthy)
    inches = 0.9 + 2.1 * len(drawn) + 0.19 * len(listed)
    picture = figure_class()(figsize=(11, inches), dpi=90, layout="constrained")
    axes = picture.subplots(len(drawn), 1, squeeze=False, sharex=True)[:, 0]
    for panel, where in zip(drawn, axes, strict=True):
        _draw(where, panel, run.last_step - run.first_step)
    axes[-1].set_xlabel("\n".join([run.step_name, *listed]), loc="left", fontsize=9, parse_math=False)
    leading = ", ".join(
        f"{hypothesis.cause} {percent(hypothesis.probability)}"
        for hypothesis in diagnosis.hypotheses[:MAX_DRAWN_HYPOTHESES]
    )
    name = shorten(diagnosis.run.title, MAX_RUN_NAME)
    picture.suptitle(f"{name}: what it may be: {leading}", x=0.01, ha="left", fontsize=11, parse_math=False)
    return picture


def _listed(findings: list[Finding]) -> list[str]:
    lines = [
        shorten(f"{number}  {finding.symptom}: {finding.summary}", MAX_LABEL_CHARACTERS)
        for number, finding in enumerate(findings, start=1)
    ]
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
    for numbers, group in labels(panel.marks, DIGIT_WIDTH * span, DIAGNOSIS_PLOT_LETTER * span):
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
    return png_of(figure, dpi=100)
