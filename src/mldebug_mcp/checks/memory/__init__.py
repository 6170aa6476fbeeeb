"""Symptoms that are seen in a memory snapshot, found by `checks.symptoms`, and what their evidence shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps

from mldebug_mcp.checks.check import Allocation, Evidence, MemoryDetector
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.models.base import Severity


def memory_evidence(
    device: DeviceMemory,
    text: str,
    bytes: int,  # noqa: A002 - the name of the field
    stack: tuple[str, ...] = (),
    *,
    values: Mapping[str, float],
    severity: Severity | None = None,
    fix: str | None = None,
) -> Evidence:
    """Return what a symptom saw of the memory of a device."""
    allocation = Allocation(bytes, device.device, stack)
    summary = f"device {device.device}: {text}"
    return Evidence(summary, values=values, allocation=allocation, severity=severity, fix=fix)


def on_worst_device(detect: Callable[[DeviceMemory], Evidence | None]) -> MemoryDetector:
    """Make the symptom of a device one of a snapshot: of the devices that show it, that where it is most memory."""

    @wraps(detect)
    def worst(snapshot: MemorySnapshot) -> Evidence | None:
        found = [evidence for device in snapshot.devices if (evidence := detect(device)) is not None]
        return max(found, key=lambda evidence: evidence.allocation.bytes, default=None)

    return worst
