"""Memory snapshot → finding. One small file per symptom."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mldebug_mcp.memory.snapshot import MemorySnapshot
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.symptoms.discovery import import_modules
from mldebug_mcp.symptoms.memory.registry import Judged, MemoryEvidence, MemorySymptom, judge, registered

__all__ = ["Judged", "MemoryEvidence", "MemorySymptom", "examine_memory", "memory_symptoms"]


@lru_cache(maxsize=1)
def memory_symptoms() -> Mapping[str, MemorySymptom]:
    """Return every memory symptom by id; the modules of this package are found and imported once."""
    import_modules(__name__)
    return dict(sorted(registered().items()))


def examine_memory(snapshot: MemorySnapshot) -> tuple[list[Judged], list[str]]:
    """Judge every memory symptom on a snapshot. Returns them all, and notes on those that broke."""
    judged = []
    for one in memory_symptoms().values():
        checkpoint(f"looking for {one.id}")
        judged.append(judge(one, snapshot))
    return [found for found, _ in judged], [note for _, note in judged if note is not None]
