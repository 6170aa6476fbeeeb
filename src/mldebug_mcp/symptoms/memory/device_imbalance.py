"""Devices that hold different amounts."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.memory.sizes import MIB, size
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom

LEAST_RATIO = 1.5
"""Fullest to emptiest device. Chosen: the first and last stage of a balanced pipeline differ by less."""
GATHERED_RATIO = 1.1
"""The same where outputs gathered by `nn.DataParallel` make the difference. Chosen: its replicas otherwise hold the
same, so that less is no chance."""
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

    A smaller difference is told where `nn.DataParallel` gathers at least that much on the fullest device.

    Not this when: a device holds next to nothing, so does not take part.
    """
    amounts = {device.device: _amount(device) for device in snapshot.devices}
    most = max(amounts.values(), default=0)
    part = {number: amount for number, amount in amounts.items() if amount > TAKES_PART * most}
    if len(part) < 2:
        return None
    full, empty = max(part, key=lambda one: part[one]), min(part, key=lambda one: part[one])
    gap = part[full] - part[empty]
    gathered = _gathered(next(one for one in snapshot.devices if one.device == full))
    least = GATHERED_RATIO if gathered >= LEAST_BYTES else LEAST_RATIO
    if part[full] < least * part[empty] or gap < LEAST_BYTES:
        return None
    told = f"; {size(gathered)} of it are outputs that DataParallel gathered there" if gathered >= LEAST_BYTES else ""
    return MemoryEvidence(
        f"device {full} holds {size(part[full])} at its peak, device {empty} {size(part[empty])}: "
        f"{part[full] / part[empty]:.1f} times as much{told}",
        bytes=gap,
        device=full,
        values={f"device_{number}": float(amount) for number, amount in part.items()} | {"gathered": float(gathered)},
    )


def _gathered(device: DeviceMemory) -> int:
    """Return the bytes of gathered outputs that a device holds at its peak."""
    view = device.view
    if view is None:
        return 0
    gathers = np.array([one.gathers for one in view.stacks.all])
    return int(view.allocations.size[view.held & gathers[view.allocations.stack]].sum())


def _amount(device: DeviceMemory) -> int:
    return device.peak_allocated or device.peak_reserved
