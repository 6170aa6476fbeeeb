"""Every type that leaves the process: the JSON contract of the library, the command line and the MCP server.

The answers of verbs other than `diagnose_run` are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldebug_mcp.core.lazy import lazily
from mldebug_mcp.models.base import Call, Citation, Model, Number, RankedCause
from mldebug_mcp.models.diagnosis import (
    Comparison,
    CurveFact,
    Diagnosis,
    EventFact,
    Finding,
    Hypothesis,
    MetricToLog,
    NextStep,
    Parting,
    QuantityFact,
    Reason,
    RunSummary,
    RunVerdict,
    SettingDifference,
    SettingFact,
    SharedJump,
    Sheet,
    State,
    Tie,
)

if TYPE_CHECKING:
    from mldebug_mcp.models.data import BatchFinding, BatchInspection, CurvePoint, ProbeResult
    from mldebug_mcp.models.knowledge import (
        EntryHit,
        ErrorExplanation,
        ErrorMatch,
        EvidenceReport,
        Explanation,
        FirstError,
        QuoteCheck,
        QuoteHit,
        SearchResult,
    )
    from mldebug_mcp.models.runs import MetricReading, MetricValues, Update

__all__ = [
    "BatchFinding",
    "BatchInspection",
    "Call",
    "Citation",
    "Comparison",
    "CurveFact",
    "CurvePoint",
    "Diagnosis",
    "EntryHit",
    "ErrorExplanation",
    "ErrorMatch",
    "EventFact",
    "EvidenceReport",
    "Explanation",
    "Finding",
    "FirstError",
    "Hypothesis",
    "MetricReading",
    "MetricToLog",
    "MetricValues",
    "Model",
    "NextStep",
    "Number",
    "Parting",
    "ProbeResult",
    "QuantityFact",
    "QuoteCheck",
    "QuoteHit",
    "RankedCause",
    "Reason",
    "RunSummary",
    "RunVerdict",
    "SearchResult",
    "SettingDifference",
    "SettingFact",
    "SharedJump",
    "Sheet",
    "State",
    "Tie",
    "Update",
]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = lazily(
        __name__,
        {
            "BatchFinding": "data",
            "BatchInspection": "data",
            "EntryHit": "knowledge",
            "Explanation": "knowledge",
            "QuoteHit": "knowledge",
            "SearchResult": "knowledge",
            "ErrorExplanation": "knowledge",
            "ErrorMatch": "knowledge",
            "FirstError": "knowledge",
            "EvidenceReport": "knowledge",
            "QuoteCheck": "knowledge",
            "MetricReading": "runs",
            "MetricValues": "runs",
            "Update": "runs",
            "CurvePoint": "data",
            "ProbeResult": "data",
        },
    )
