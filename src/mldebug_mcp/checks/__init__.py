"""Observation → finding. One small file per question; `run/` holds those that are asked of a log."""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.checks.asking import answer
from mldebug_mcp.checks.check import SYMPTOMS, CannotTell, Evidence, Symptom
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding

__all__ = ["CannotTell", "Evidence", "Symptom", "examine", "symptoms"]


def symptoms() -> Mapping[str, Symptom]:
    """Return every symptom of a run by id; the modules of `run/` are imported on the first call."""
    return SYMPTOMS.all()


def examine(run: Run) -> tuple[list[Finding], list[str]]:
    """Ask every question of a run. Returns the findings, one per symptom, and notes on questions that broke."""
    findings, notes = [], []
    for asked in {one.question.id: one.question for one in symptoms().values()}.values():
        checkpoint(f"asking about {asked.id}")
        seen, note = answer(asked, run)
        findings += seen
        notes += [] if note is None else [note]
    return sorted(findings, key=lambda finding: finding.symptom), notes
