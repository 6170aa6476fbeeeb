"""Memory snapshot → finding. One small file per symptom."""

from __future__ import annotations

from mldebug_mcp.symptoms.memory.registry import Judged, MemoryEvidence, MemorySymptom, examine_memory, memory_symptoms

__all__ = ["Judged", "MemoryEvidence", "MemorySymptom", "examine_memory", "memory_symptoms"]
