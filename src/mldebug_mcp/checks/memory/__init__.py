"""Memory snapshot → finding. One small file per symptom."""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.checks.memory.registry import SYMPTOMS, Judged, MemoryEvidence, MemorySymptom, judge
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.memory.snapshot import MemorySnapshot

__all__ = ["Judged", "MemoryEvidence", "MemorySymptom", "examine_memory", "memory_symptoms"]


def memory_symptoms() -> Mapping[str, MemorySymptom]:
    """Return every memory symptom by id; the modules beside this one are imported on the first call."""
    return SYMPTOMS.all()


def examine_memory(snapshot: MemorySnapshot) -> tuple[list[Judged], list[str]]:
    """Judge every memory symptom on a snapshot. Returns them all, and notes on those that broke."""
    judged = []
    for one in memory_symptoms().values():
        checkpoint(f"looking for {one.id}")
        judged.append(judge(one, snapshot))
    return [found for found, _ in judged], [note for _, note in judged if note is not None]
