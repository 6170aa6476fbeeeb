"""A panel as data for the script of a page."""

from __future__ import annotations

import json

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.report.curves import Curve, Panel, labels
from mldebug_mcp.report.svg import colours

DIGITS = 6
"""Significant digits of a value: more than a screen shows."""
NEAR = 0.0


def panel_json(panel: Panel, first: float, last: float) -> str:
    """Return the panel over the steps from `first` to `last`, safe inside of an element of HTML.

    Names were cleaned before they get here: what JSON escapes would come to life again.
    """
    data = {
        "first": first,
        "last": last,
        "low": panel.scale.low,
        "high": panel.scale.high,
        "logarithmic": panel.scale.logarithmic,
        "worst": panel.worst,
        "restarts": list(panel.restarts),
        "marks": [
            {
                "number": number,
                "step": group[0].step,
                "text": "; ".join(one.told for one in group),
            }
            for number, group in labels(panel.marks, NEAR, NEAR)
        ],
        "curves": [_curve(one, colour) for one, colour in zip(panel.curves, colours(panel), strict=True)],
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _curve(curve: Curve, colour: str) -> dict[str, object]:
    return {
        "name": curve.title,
        "of": bool(curve.of),
        "colour": colour,
        "lines": [[_rounded(step), _rounded(value)] for step, value in curve.lines],
        "lost": _rounded(curve.lost),
    }


def _rounded(values: Floats) -> list[float]:
    return [int(one) if one == int(one) and abs(one) < 1e15 else float(f"{one:.{DIGITS}g}") for one in values.tolist()]
