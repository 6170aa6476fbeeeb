"""Memory that grows from step to step."""

from __future__ import annotations

from mldebug_mcp.memory.sizes import MIB, size
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.memory.survivors import LEAST_STEPS, Grower, growers
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom
from mldebug_mcp.symptoms.registry import CannotTell

LEAST_GROWTH = MIB
LEAST_SHARE = 0.002
"""Of the peak that must be left behind over the whole history. Chosen: a list of scalars leaves less."""


@memory_symptom(
    severity="error",
    fix="Look at the line: what keeps a reference (a list, a dictionary, a closure, an attribute, the graph)? Keep "
    "numbers (`loss.item()`), or `detach()` and move to the CPU what must be kept; clear caches at the end of a step.",
    quotes=("pytorch_dont_accumulate_history", "pytorch_ref_cycles"),
    history=True,
    background=0.0005,
)
def leak(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """Memory allocated at one call site is left behind step after step and never freed.

    Not this when: it is allocated once (parameters, optimizer state), or only the last steps' allocations are alive
    (prefetching). It needs at least 4 steps, or as many batches of an evaluation that the history ends with. The
    shares were chosen on simulated histories.
    """
    found = [(device, one) for device in snapshot.recorded for one in worth_telling(device)]
    if not found:
        if all(len(device.history.steps) < LEAST_STEPS for device in snapshot.recorded if device.history):
            raise CannotTell(f"fewer than {LEAST_STEPS} steps found in the history")
        return None
    device, worst = max(found, key=lambda one: one[1].total)
    here = [one for where, one in found if where is device]
    rate = sum(one.per_step for one in here)
    left = _steps_left(device, rate)
    end = f"; at this rate the device is full after about {left:,} more steps" if left is not None else ""
    more = f" ({len(here)} such lines, {size(rate)} per step together)" if len(here) > 1 else ""
    return MemoryEvidence(
        f"device {device.device}: {worst.stack.site} leaves {size(worst.per_step)} behind in {worst.steps} of "
        f"{worst.of} steps, {size(worst.total)} so far{more}{end}",
        bytes=sum(one.total for one in here),
        device=device.device,
        stack=worst.stack.frames,
        values={
            "bytes_per_step": rate,
            "bytes_so_far": sum(one.total for one in here),
            "sites": len(here),
            **({"steps_left": left} if left is not None else {}),
        },
    )


def worth_telling(device: DeviceMemory) -> list[Grower]:
    """Return the growing sites of a device, if together they amount to something."""
    if device.history is None:
        return []
    found = growers(device.history, device.history.steps)
    if not found and device.history.evaluation is not None:
        found = growers(device.history, device.history.evaluation)
    total = sum(one.total for one in found)
    return found if total >= max(LEAST_GROWTH, LEAST_SHARE * device.peak_allocated) else []


def _steps_left(device: DeviceMemory, rate: int) -> int | None:
    """Return how many steps fit until the device is full, where its size is known and it is not full already."""
    if device.capacity is None or device.oom is not None or rate <= 0:
        return None
    return max(0, (device.capacity - device.peak_allocated) // rate)
