"""What follows from several quantities of a run together: facts, neither symptoms nor causes."""

from __future__ import annotations

from mldebug_mcp.logs import Run
from mldebug_mcp.models.diagnosis import DerivedFact


def derived_facts(_: Run) -> list[DerivedFact]:
    """Return the facts, those on what was spent first."""
    return []
