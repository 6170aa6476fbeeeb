"""The verb `read_metric`: the values of curves, thinned so that their extremes survive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mldebug_mcp.checks.course import course_of
from mldebug_mcp.checks.curve import thinned
from mldebug_mcp.checks.results import named
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import figure, nearest, shorten
from mldebug_mcp.judge.next_call import diagnose_call
from mldebug_mcp.logs import Run, Series, read_run
from mldebug_mcp.models.runs import MetricReading, MetricValues

POINTS = 60
"""Points of a curve by default: what a reader takes in."""
MOST_NAMES = 20
LEAST_POINTS = 4
MOST_POINTS = 2000
MOST_OTHERS = 40
MOST_NOTES = 3
CLOSE = 0.5


def read_metric(
    path: str | Path,
    names: Sequence[str] | str,
    first: float | None = None,
    last: float | None = None,
    *,
    points: int = POINTS,
    run: str = "",
    meanings: Mapping[str, str] | None = None,
) -> MetricReading:
    """Return the values of one or several curves of a run.

    Args:
        path: A log file or a run folder.
        names: What to read: names as logged (train/loss) or roles (loss, grad_norm, eval_loss).
        first: The first step; by default that of the log.
        last: The last step; by default that of the log.
        points: About how many points of each curve; the lowest and highest of each stretch are among them.
        run: Which run to read, if the path holds several.
        meanings: What names of the log mean that do not say it, as `names` of `diagnose_run`.

    Raises:
        InputError: the path cannot be used, a name is not in the log, or the stretch holds nothing of it; the message
            names the nearest names.
    """
    require_points(points)
    named = [names] if isinstance(names, str) else names
    return read_curves(read_run(path, None, run, meanings), named, first, last, points)


def require_points(points: int) -> None:
    """Raise InputError if so many points cannot show a curve."""
    if not LEAST_POINTS <= points <= MOST_POINTS:
        raise InputError(f"points is {points}; use {LEAST_POINTS} to {MOST_POINTS}")


def read_curves(
    run: Run, names: Sequence[str], first: float | None = None, last: float | None = None, points: int = POINTS
) -> MetricReading:
    """Return the values of curves of a run that has been read; see `read_metric`."""
    if not names or len(names) > MOST_NAMES:
        raise InputError(f"name one to {MOST_NAMES} of what {shorten(run.path, 200)} has: {_listed(_names(run))}")
    found = {name: named(run, name) for name in names}
    unknown = [_unknown(run, name) for name, some in found.items() if not some]
    if len(unknown) == len(found):
        raise InputError(f"{shorten(run.path, 200)}: {unknown[0]}")
    chosen = list({series.name: series for some in found.values() for series in some}.values())
    readings = [_values(run, series, first, last, points) for series in chosen]
    others = [name for name in _names(run) if name not in {metric_values.name for metric_values in readings}]
    return MetricReading(
        path=run.path,
        step_name=run.step_name,
        series=readings,
        others=others[:MOST_OTHERS],
        next_step=diagnose_call("what all of the log tells", run.path, run.name),
        notes=[*unknown, *run.notes[:MOST_NOTES]],
    )


def _unknown(run: Run, name: str) -> str:
    """Return that nothing has a name, with what is nearest to it."""
    near = nearest(name.strip(), dict.fromkeys((*run.series, *_names(run))), most=5, alike=CLOSE)
    hint = f"the nearest: {_listed(near)}" if near else f"in it are: {_listed(_names(run))}"
    return f"nothing called {shorten(name, 60)!r} is in it; {hint}"


def _names(run: Run) -> list[str]:
    return [series.logged_as or name for name, series in run.series.items()]


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(shorten(name, 60) for name in names[:most]) + (", …" if len(names) > most else "")


def _thinned_to(series: Series, points: int) -> Series:
    """Return a curve with about so many points: stretches whose extremes coincide leave room for further ones."""
    low, high = max(1, points // 4), points + 1
    fewer = thinned(series, low)
    while high - low > 1 and len(fewer) < len(series):
        middle = (low + high) // 2
        tried = thinned(series, middle)
        if len(tried) > points:
            high = middle
        else:
            low, fewer = middle, tried
    return fewer


def _values(run: Run, series: Series, first: float | None, last: float | None, points: int) -> MetricValues:
    """Return the values of a curve between two steps."""
    begin, end = -math.inf if first is None else first, math.inf if last is None else last
    inside = series.between(begin, end)
    if not len(inside):
        span = f"{figure(float(series.step[0]))} to {figure(float(series.step[-1]))}" if len(series) else "nowhere"
        raise InputError(
            f"{series.logged_as or series.name} was logged from {run.step_name} {span}, and nothing of it in the "
            "stretch that was asked for; change first and last"
        )
    with np.errstate(all="ignore"):
        course = course_of(inside)
    fewer = _thinned_to(inside, points)
    role = series.role
    return MetricValues(
        name=series.logged_as or series.name,
        unit=series.unit,
        metric=series.name,
        role="" if role is None else " ".join(part for part in (role.phase, str(role.quantity), role.part) if part),
        records=len(inside),
        course="" if course is None else str(course),
        points=list(zip(fewer.step.tolist(), fewer.value.tolist(), strict=True)),
    )
