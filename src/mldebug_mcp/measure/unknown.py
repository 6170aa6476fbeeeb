"""What a measurement raises that cannot be made."""

from __future__ import annotations

from collections.abc import Callable

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.text import counted


class CannotTell(Exception):  # noqa: N818 - an answer, not an error
    """Raised where the metrics are there, or ought to be, but cannot be judged. The message says why."""


def require_values(series: Series, least: int, name: str = "") -> Series:
    """Return a series of finite values; raise CannotTell, with its name or the given one, if there are too few."""
    if len(series) < least:
        raise CannotTell(f"{name or series.name} has {counted(len(series), 'finite value')} here; {least} are needed")
    return series


def all_known(find: Callable[[Run], list[Series]], run: Run) -> list[Series]:
    """Return the series that are found in a run, none where that cannot be told."""
    try:
        return find(run)
    except CannotTell:
        return []
