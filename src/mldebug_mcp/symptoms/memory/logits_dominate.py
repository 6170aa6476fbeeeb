"""Logits that make the peak."""

from __future__ import annotations

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.sizes import MIB, percent, size
from mldebug_mcp.memory.snapshot import MemorySnapshot
from mldebug_mcp.symptoms.memory.composition import largest_share
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom

LEAST_SHARE = 0.3
"""Of the peak that logits must hold, if nothing else holds more. Chosen: by hand."""
ALONE = 0.45
"""Of the peak that logits must hold, whatever else holds more. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Compute the loss in chunks or with a fused kernel (`use_liger_kernel=True`, cut cross entropy); do not copy "
    "the logits to float32; drop positions whose label is ignored before the last layer; shorten the sequence.",
    quotes=("axolotl_oom_batch",),
    background=0.05,
)
def logits_dominate(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """Logits of vocabulary size, their float32 copy or their gradient make the peak.

    They take batch x length x vocabulary elements, several times over. Known by the loss's stack and by sizes equal
    to its.
    """
    share = largest_share(snapshot, Category.LOGITS)
    if share is None or share.bytes < 16 * MIB or share.part < (LEAST_SHARE if share.largest else ALONE):
        return None
    return MemoryEvidence(
        f"device {share.device.device}: logits, their copies and gradients hold {size(share.bytes)}, "
        f"{percent(share.bytes, share.total)} of what is allocated at the peak; most of it at {share.stack.site}",
        bytes=share.bytes,
        device=share.device.device,
        stack=share.stack.frames,
        values={"bytes": share.bytes, "share": share.part},
        severity="warning" if share.device.oom is not None else None,
    )
