"""Curves in a JSON document: metrics that each keep where they were logged beside their values.

ClearML writes `{title: {series: {"x": [...], "y": [...]}}}`, Sacred `{metric: {"steps": [...], "values": [...]}}`, and
charts of Plotly and Visdom hold a list of curves, each with its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.decoding.json_values import is_column
from mldebug_mcp.logs.decoding.points import Points
from mldebug_mcp.logs.numbers import to_number

MAX_DEPTH = 8
"""Objects within each other that are looked into: Visdom nests six."""
MAX_CURVES = 1000
"""Objects of a list that are looked into: the records of a list are no curves, and may be millions."""
_PLACES = ("x", "step", "steps", "global_step", "iteration", "iterations", "iter", "iters", "epoch", "epochs")
_VALUES = ("y", "value", "values")


def curves_in(document: object) -> dict[str, Points]:
    """Return the curves of a document by the names of the objects that they stand in; empty if it holds none."""
    return {"/".join(path): curve for path, curve in _curves(document, ()) if path}


def _curves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Points]]:
    if len(path) > MAX_DEPTH:
        return
    if isinstance(value, list):
        for one in value[:MAX_CURVES]:
            if isinstance(one, dict):
                yield from _curves(one, path)
    elif isinstance(value, dict):
        curve = _curve(value)
        if curve is not None:
            yield (*path, *_own_name(value, path)), curve
            return
        path = _title(value) or path
        for key, one in value.items():
            yield from _curves(one, path if isinstance(one, list) else (*path, str(key)))


def _curve(value: Mapping[str, object]) -> Points | None:
    """Return the curve that an object is, None if it is none: a list of values and one, as long, of their places."""
    places, values = (_first(value, keys) for keys in (_PLACES, _VALUES))
    if not values or len(places) != len(values):
        return None
    step = _numbers(places)
    counted = np.isfinite(step)
    return Points(step[counted], step[counted], _numbers(values)[counted]) if counted.any() else None


def _first(value: Mapping[str, object], keys: Sequence[str]) -> Sequence[object]:
    """Return the first column of numbers that an object has under one of some keys."""
    columns = (value.get(key) for key in keys)
    return next((one for one in columns if isinstance(one, list) and is_column(one)), ())


def _numbers(column: Sequence[object]) -> Floats:
    numbers = [to_number(value) for value in column]
    return np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)


def _own_name(curve: Mapping[str, object], path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name that a curve gives itself, unless its place has it, or it is but a number."""
    name = curve.get("name")
    return (name,) if isinstance(name, str) and name and path[-1:] != (name,) and not name.isdigit() else ()


def _title(value: Mapping[str, object]) -> tuple[str, ...]:
    """Return the title of a chart, which says what its curves show."""
    layout = value.get("layout")
    title = layout.get("title") if isinstance(layout, dict) else None
    title = title.get("text") if isinstance(title, dict) else title
    return (title,) if isinstance(title, str) and title else ()
