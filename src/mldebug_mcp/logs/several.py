"""Stores that hold several runs: which of them is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

_SHOWN = 8


def choose_run(
    wanted: str, where: str, points: Mapping[str, int], labels: Mapping[str, str], note: Callable[[str], None]
) -> str:
    """Return the id of the run to read: the one that was asked for, else the one with the most points.

    Args:
        wanted: The id or the label of a run, or empty.
        where: What holds the runs, for messages.
        points: Points by id, in the order in which the store has the runs.
        labels: Names of runs by id, where they have one.
        note: Gets a note if there are several.

    Raises:
        InputError: there is no run, or not the one that was asked for.
    """
    if not points:
        raise InputError(
            f"{shorten(where, 200)}: no run in it has logged a metric; name another store, or wait for the first metric"
        )
    shown = {run: shorten(labels.get(run) or run, 60) for run in points}
    listed = ", ".join(f"{shown[run]} ({points[run]})" for run in sorted(points, key=lambda run: -points[run])[:_SHOWN])
    if wanted:
        found = [run for run in points if wanted in (run, labels.get(run))]
        if not found:
            raise InputError(f"{shorten(where, 200)}: no run {shorten(wanted, 60)!r}; there are {listed}")
        return found[-1]
    chosen = max(reversed(list(points)), key=lambda run: points[run])
    if len(points) > 1:
        note(
            f"read {shown[chosen]}, the longest of {len(points)} runs; run=NAME (--run NAME) reads another "
            f"(NAME (points)): {listed}"
        )
    return chosen
