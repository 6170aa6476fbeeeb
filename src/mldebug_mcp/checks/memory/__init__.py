"""Symptoms that are seen in a memory snapshot, found by `checks.symptoms`, and what their evidence shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mldebug_mcp.checks.check import Allocation, Evidence
from mldebug_mcp.memory.snapshot import DeviceMemory
from mldebug_mcp.models.base import Severity


def memory_evidence(  # noqa: PLR0917 - the fields, in their order
    summary: str,
    bytes: int = 0,  # noqa: A002 - the name of the field
    device: int | None = None,
    stack: tuple[str, ...] = (),
    values: Mapping[str, float] | None = None,
    severity: Severity | None = None,
    fix: str | None = None,
) -> Evidence:
    """Return what a symptom saw of the memory of a device."""
    about = Allocation(bytes, device, stack)
    return Evidence(summary, values=values or {}, about=about, severity=severity, fix=fix)


def on_worst_device(
    devices: Iterable[DeviceMemory], detect: Callable[[DeviceMemory], Evidence | None]
) -> Evidence | None:
    """Return the evidence that is about most memory, of the devices that show some; None if none does."""
    found = [evidence for device in devices if (evidence := detect(device)) is not None]
    return max(found, key=lambda evidence: evidence.allocation.bytes, default=None)
