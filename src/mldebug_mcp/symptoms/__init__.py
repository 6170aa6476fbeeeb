"""Observation → finding. One small file per symptom; `run/` holds those that are seen in a log."""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.symptoms.registry import SYMPTOMS, CannotTell, Evidence, Symptom, judge

__all__ = ["CannotTell", "Evidence", "Symptom", "examine", "symptoms"]


def symptoms() -> Mapping[str, Symptom]:
    """Return every symptom of a run by id; the modules of `run/` are imported on the first call."""
    return SYMPTOMS.all()


def examine(run: Run) -> tuple[list[Finding], list[str]]:
    """Judge every symptom on a run. Returns the findings, one per symptom, and notes on symptoms that broke."""
    judged = []
    for one in symptoms().values():
        checkpoint(f"looking for {one.id}")
        judged.append(judge(one, run))
    return [finding for finding, _ in judged], [note for _, note in judged if note is not None]
