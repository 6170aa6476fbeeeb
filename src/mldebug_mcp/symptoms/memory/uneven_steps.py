"""A step that takes far more memory than the others."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.measure.statistics import median
from mldebug_mcp.memory.sizes import size
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom
from mldebug_mcp.symptoms.registry import CannotTell

LEAST_STEPS = 8
"""Steps that the history must have. Chosen: fewer show no usual peak."""
FACTOR = 2.0
"""How many times the median peak above what is always held. Chosen: batches of random lengths stay below it."""
FEW = 0.1
"""Of the steps that may peak so. Chosen: more of them are the run's habit."""
SPLIT = 2
"""Steps that one batch may lie in: where a step begins is inferred, and may be in the middle of a pass."""
LEAST_SHARE = 0.2
"""Of the device's peak by which the step must stand out. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Look at what runs there. An evaluation: a smaller batch for it. One batch with a sequence or image far longer "
    "than the rest: cap or bucket lengths, or fill batches by tokens instead of rows.",
    quotes=("axolotl_oom_batch",),
    history=True,
    background=0.02,
)
def uneven_steps(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """One step, or few, peak far above the others, as with one long batch among short ones.

    Not this when: it is the first step, in which libraries try out kernels and state is made. It needs at least 8
    steps. The factor was chosen on simulated histories.
    """
    found = [evidence for device in snapshot.recorded if (evidence := _on(device)) is not None]
    if not found and all(len(one.history.steps) < LEAST_STEPS for one in snapshot.recorded if one.history):
        raise CannotTell(f"fewer than {LEAST_STEPS} steps found in the history")
    return max(found, key=lambda one: one.bytes, default=None)


def _on(device: DeviceMemory) -> MemoryEvidence | None:
    history = device.history
    if history is None or len(history.steps) < LEAST_STEPS:
        return None
    allocated = history.replay.allocated[1:]
    peaks = np.maximum.reduceat(allocated, history.steps.starts)
    floor = int(np.minimum.reduceat(allocated, history.steps.starts)[1:].min())
    usual = median(peaks[1:])
    step = 1 + int(np.argmax(peaks[1:]))
    high = int(peaks[step])
    many = int((peaks[1:] - floor >= FACTOR * (usual - floor)).sum()) > max(SPLIT, FEW * len(peaks))
    if many or high - floor < FACTOR * (usual - floor) or high - usual < LEAST_SHARE * device.peak_allocated:
        return None
    return MemoryEvidence(
        f"device {device.device}: step {step} peaks at {size(high)}, the others at {size(usual)} (median of "
        f"{len(peaks)} steps)",
        bytes=high - int(usual),
        device=device.device,
        values={"step": step, "peak": high, "usual": usual},
        severity="warning" if device.oom is not None and step >= len(peaks) - 1 else None,
    )
