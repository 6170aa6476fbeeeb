"""Answers → text for people and short forms for agents."""

from __future__ import annotations

from mldebug_mcp.report.concise import concise
from mldebug_mcp.report.error_text import print_error
from mldebug_mcp.report.evidence_text import print_evidence
from mldebug_mcp.report.probe_terminal import print_probe
from mldebug_mcp.report.terminal import console_for, print_diagnosis, print_explanation, print_search

__all__ = [
    "concise",
    "console_for",
    "print_diagnosis",
    "print_error",
    "print_evidence",
    "print_explanation",
    "print_probe",
    "print_search",
]
