"""The other runs of a sweep, read for a page that shows them beside a run."""

from __future__ import annotations

from mldebug_mcp.logs import Run

MOST = 6
"""Siblings that are drawn: more curves in one panel are not told apart (chosen)."""


def siblings_to_draw(run: Run) -> dict[str, Run]:
    """Return the first siblings of a run by name."""
    return {one.name: one.run for one in run.siblings[:MOST]}
