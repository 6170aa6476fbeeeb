"""A panel of curves as SVG: drawn on any background, nothing loaded."""

from __future__ import annotations

from html import escape
from itertools import cycle

import numpy as np

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.report.curves import REFERENCE_RUN, Curve, Mark, Panel, labels
from mldebug_mcp.report.scale import round_values
from mldebug_mcp.text import figure

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 220, 70, 24, 24, 34
COLOURS = ("#4c78a8", "#cf6a0a", "#3f8f3a", "#a9649a", "#9d755d", "#2f8f89")
"""After Vega's tableau10, whose hues people with colour blindness tell apart; 3:1 against white and dark pages."""
REFERENCE, GRID, ONSET = "#8a8a8a", "#8884", "#c62828"
"""Seen on a light and on a dark page."""
BADGE, LETTER = 18, 7.5
"""Height of the numbers above a panel, and the width of a letter in them."""


def panel_svg(panel: Panel, first: float, last: float, step_name: str) -> str:
    """Return a panel over the steps from `first` to `last`.

    Args:
        panel: The curves and marks.
        first: Step at the left edge.
        last: Step at the right edge.
        step_name: What a step is.
    """
    place = _Place(first, last, panel)
    names = ", ".join(one.title for one in panel.curves)
    parts = [
        *(_tick(place, value) for value in panel.scale.ticks()),
        *(_step_tick(place, step) for step in round_values(first, last, 8)),
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT + 31}" text-anchor="middle">{escape(step_name)}</text>',
        *(
            f'<line stroke="{REFERENCE}" stroke-dasharray="1 3" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}"/>'
            for x in place.x(np.array(panel.restarts)).tolist()
        ),
        *(_mark(place, *label) for label in labels(panel.marks, place.steps(BADGE + 2), place.steps(LETTER))),
        *(_curve(place, one, colour) for one, colour in zip(panel.curves, colours(panel), strict=True)),
        *([] if panel.worst is None else [_worst(place, panel.worst)]),
    ]
    return (
        f'<svg viewBox="0 {-TOP} {WIDTH + RIGHT} {HEIGHT + TOP + BOTTOM}" fill="currentColor" font-size="11" '
        f'role="img" aria-label="{escape(names)} over {escape(step_name)}s">{"".join(parts)}</svg>'
    )


def colours(panel: Panel) -> list[str]:
    """Return a colour for each curve of a panel: the run's own in order, siblings from the end, the reference grey."""
    own, siblings = cycle(COLOURS), cycle(reversed(COLOURS))
    return [REFERENCE if one.of == REFERENCE_RUN else next(siblings if one.of else own) for one in panel.curves]


class _Place:
    """Where steps and values stand in the picture."""

    def __init__(self, first: float, last: float, panel: Panel) -> None:
        # Halves, because the difference of two steps may be larger than a float holds.
        self._first, self._span, self._scale = first / 2, last / 2 - first / 2 or 1.0, panel.scale

    def x(self, step: Floats) -> Floats:
        return LEFT + (WIDTH - LEFT) * np.clip((step / 2 - self._first) / self._span, 0.0, 1.0)

    def steps(self, width: float) -> float:
        return 2 * width / (WIDTH - LEFT) * self._span

    def y(self, value: Floats) -> Floats:
        return HEIGHT * (1 - self._scale.share(value))


def _curve(place: _Place, curve: Curve, colour: str) -> str:
    style = f'fill="none" stroke="{colour}" stroke-width="{0.9 if curve.of else 1.6}" stroke-linejoin="round"'
    parts = []
    for step, value in curve.lines:
        x, y = place.x(step), place.y(value)
        if len(x) == 1:
            parts.append(f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="3" fill="{colour}"/>')
        else:
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
            parts.append(f'<polyline {style} points="{points}"/>')
    parts += [
        f'<text x="{x:.1f}" y="12" text-anchor="middle" fill="{colour}">×<title>NaN or infinite</title></text>'
        for x in place.x(curve.lost).tolist()
    ]
    return "".join(parts)


def _mark(place: _Place, numbers: str, group: list[Mark]) -> str:
    """Return a line at each onset that shares a label, and the label above the first."""
    half = max(BADGE, LETTER * len(numbers) + 8) / 2
    steps = place.x(np.array([one.step for one in group])).tolist()
    x, y = min(steps[0], WIDTH + RIGHT - half), -TOP + 1
    lines = "".join(
        f'<line stroke="{ONSET}" stroke-dasharray="4 3" x1="{at:.1f}" x2="{at:.1f}" y1="{y + BADGE}" y2="{HEIGHT}"/>'
        for at in steps
    )
    told = "; ".join(one.told for one in group)
    return (
        f'<g>{lines}<rect x="{x - half:.1f}" y="{y}" width="{2 * half:.1f}" height="{BADGE}" rx="{BADGE / 2}" '
        f'fill="{ONSET}"/><text x="{x:.1f}" y="{y + 13}" text-anchor="middle" fill="#fff" font-weight="bold">{numbers}'
        f"</text><title>{escape(told)}</title></g>"
    )


def _worst(place: _Place, step: float) -> str:
    """Return an arrow at the worst event."""
    x = float(place.x(np.array([step]))[0])
    return (
        f'<path fill="{ONSET}" d="M{x:.1f},{HEIGHT - 12} l7,12 h-14 z"><title>worst: at {figure(step)}</title></path>'
    )


def _tick(place: _Place, value: float) -> str:
    y = float(place.y(np.array([value]))[0])
    return (
        f'<line stroke="{GRID}" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{figure(value)}</text>'
    )


def _step_tick(place: _Place, step: float) -> str:
    x = float(place.x(np.array([step]))[0])
    return f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{figure(step)}</text>'
