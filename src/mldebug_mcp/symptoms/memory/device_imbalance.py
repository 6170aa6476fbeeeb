"""Devices that hold different amounts."""

from __future__ import annotations

from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom
from mldebug_mcp.symptoms.memory.sizes import MIB, size

LEAST_RATIO = 1.5
"""Fullest to emptiest device. Chosen: the first and last stage of a balanced pipeline differ by less."""
LEAST_BYTES = 64 * MIB
"""Bytes by which the fullest device must exceed the emptiest. Chosen: by hand."""
TAKES_PART = 0.02
"""Of the fullest device's memory that a device must hold to take part. Chosen: what holds less only has a context."""


@memory_symptom(
    severity="warning",
    fix="See what the fullest device holds that the others do not: checkpoints loaded without `map_location`, "
    "`.cuda()` without a device in every rank, `nn.DataParallel` gathering outputs on device 0, `device_map` without "
    "`max_memory`, uneven stages.",
    background=0.03,
)
def device_imbalance(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """The devices that take part hold very different amounts at their peaks.

    Not this when: a device holds next to nothing, so does not take part.
    """
    amounts = {device.device: _amount(device) for device in snapshot.devices}
    most = max(amounts.values(), default=0)
    part = {number: amount for number, amount in amounts.items() if amount > TAKES_PART * most}
    if len(part) < 2:
        return None
    full, empty = max(part, key=lambda one: part[one]), min(part, key=lambda one: part[one])
    gap = part[full] - part[empty]
    if part[full] < LEAST_RATIO * part[empty] or gap < LEAST_BYTES:
        return None
    return MemoryEvidence(
        f"device {full} holds {size(part[full])} at its peak, device {empty} {size(part[empty])}: "
        f"{part[full] / part[empty]:.1f} times as much",
        bytes=gap,
        device=full,
        values={f"device_{number}": float(amount) for number, amount in part.items()},
    )


def _amount(device: DeviceMemory) -> int:
    return device.peak_allocated or device.peak_reserved
