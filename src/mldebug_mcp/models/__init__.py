"""Every type that leaves the process: the JSON contract of the library, the command line and the MCP server.

The answers of verbs other than `diagnose_run` are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldebug_mcp.lazy import lazily
from mldebug_mcp.models.base import Model, Number
from mldebug_mcp.models.call import Call
from mldebug_mcp.models.comparison import Comparison, Parting, SettingDifference
from mldebug_mcp.models.diagnosis import (
    Diagnosis,
    Finding,
    Hypothesis,
    MetricToLog,
    NextStep,
    Reason,
    RunSummary,
    RunVerdict,
    State,
    Tie,
    Update,
)
from mldebug_mcp.models.knowledge import Citation, EntryHit, Explanation, QuoteHit, SearchResult
from mldebug_mcp.models.sheet import CurveFact, EventFact, QuantityFact, SettingFact, Sheet

if TYPE_CHECKING:
    from mldebug_mcp.models.batch import BatchFinding, BatchInspection
    from mldebug_mcp.models.errors import ErrorExplanation, ErrorMatch, FirstError
    from mldebug_mcp.models.evidence import EvidenceReport, QuoteCheck
    from mldebug_mcp.models.metric import MetricReading, MetricValues
    from mldebug_mcp.models.probe import CurvePoint, ProbeResult, RankedCause

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
    "Sheet",
    "State",
    "Tie",
    "Update",
]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = lazily(
        __name__,
        {
            "BatchFinding": "batch",
            "BatchInspection": "batch",
            "ErrorExplanation": "errors",
            "ErrorMatch": "errors",
            "FirstError": "errors",
            "EvidenceReport": "evidence",
            "QuoteCheck": "evidence",
            "MetricReading": "metric",
            "MetricValues": "metric",
            "CurvePoint": "probe",
            "ProbeResult": "probe",
            "RankedCause": "probe",
        },
    )
