"""A snapshot without history."""

from __future__ import annotations

from mldebug_mcp.memory.snapshot import MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom
from mldebug_mcp.symptoms.registry import CannotTell


@memory_symptom(
    severity="warning",
    fix="Call `torch.cuda.memory._record_memory_history(max_entries=200_000)` before the model is built, run a few "
    "steps, then `torch.cuda.memory._dump_snapshot('snapshot.pickle')`.",
    background=0.1,
)
def history_missing(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """The snapshot holds no allocation history: peaks, leaks and steps cannot be judged."""
    if snapshot.from_text:
        raise CannotTell("a text has no history")
    if snapshot.recorded:
        return None
    blocks = sum(device.segments for device in snapshot.devices)
    stacks = any(device.blocks is not None and device.blocks.frames_recorded for device in snapshot.devices)
    known = "with the stacks of what is allocated" if stacks else "without stacks"
    return MemoryEvidence(f"no events were recorded; only the state at the end is known ({blocks} segments, {known})")
