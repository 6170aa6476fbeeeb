"""Every type that leaves the process: the JSON contract of the library, the command line and the MCP server."""

from __future__ import annotations

from mldebug_mcp.models.base import Model, Number, Text
from mldebug_mcp.models.batch import BatchFinding, BatchInspection, BatchSummary, Leak, RowView
from mldebug_mcp.models.call import Call
from mldebug_mcp.models.comparison import Comparison, Parting, SettingDifference
from mldebug_mcp.models.diagnosis import (
    Diagnosis,
    Finding,
    Hypothesis,
    MetricToLog,
    NextStep,
    RunSummary,
    State,
    Tie,
    Update,
)
from mldebug_mcp.models.errors import ErrorExplanation, ErrorMatch, FirstError
from mldebug_mcp.models.evidence import EvidenceReport, QuoteCheck
from mldebug_mcp.models.knowledge import Citation, EntryHit, Explanation, QuoteHit, SearchResult
from mldebug_mcp.models.probe import BadOperation, CurvePoint, ProbeResult, RankedCause, ResistingRow

__all__ = [
    "BadOperation",
    "BatchFinding",
    "BatchInspection",
    "BatchSummary",
    "Call",
    "Citation",
    "Comparison",
    "CurvePoint",
    "Diagnosis",
    "EntryHit",
    "ErrorExplanation",
    "ErrorMatch",
    "EvidenceReport",
    "Explanation",
    "Finding",
    "FirstError",
    "Hypothesis",
    "Leak",
    "MetricToLog",
    "Model",
    "NextStep",
    "Number",
    "Parting",
    "ProbeResult",
    "QuoteCheck",
    "QuoteHit",
    "RankedCause",
    "ResistingRow",
    "RowView",
    "RunSummary",
    "SearchResult",
    "SettingDifference",
    "State",
    "Text",
    "Tie",
    "Update",
]
