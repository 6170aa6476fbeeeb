"""Every type that leaves the process: the JSON contract of the library, the command line and the MCP server."""

from __future__ import annotations

from mldebug_mcp.models.base import Model, Number, Text
from mldebug_mcp.models.diagnosis import Diagnosis, Finding, Hypothesis, NextStep, RunSummary, State
from mldebug_mcp.models.knowledge import Citation, Explanation, QuoteHit, SearchResult

__all__ = [
    "Citation",
    "Diagnosis",
    "Explanation",
    "Finding",
    "Hypothesis",
    "Model",
    "NextStep",
    "Number",
    "QuoteHit",
    "RunSummary",
    "SearchResult",
    "State",
    "Text",
]
