"""Activations that make the peak."""

from __future__ import annotations

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.sizes import MIB, percent, size
from mldebug_mcp.memory.snapshot import MemorySnapshot
from mldebug_mcp.symptoms.memory.composition import largest_share
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom

LEAST_SHARE = 0.5
"""Of what is allocated at the peak."""


@memory_symptom(
    severity="info",
    fix="If memory is short: a smaller micro-batch with more accumulation, shorter sequences, activation "
    "checkpointing, FlashAttention.",
    quotes=("torchtune_ckpt_tradeoff", "axolotl_oom_batch"),
    background=0.3,
)
def activations_dominate(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """Activations kept for backward are more than half of the peak.

    Common in healthy training with large batches; it says where to save.
    """
    share = largest_share(snapshot, Category.ACTIVATIONS)
    if share is None or share.bytes < 16 * MIB or share.part < LEAST_SHARE:
        return None
    return MemoryEvidence(
        f"device {share.device.device}: activations hold {size(share.bytes)}, {percent(share.bytes, share.total)} of "
        f"what is allocated at the peak; most of it at {share.stack.site}",
        bytes=share.bytes,
        device=share.device.device,
        stack=share.stack.frames,
        values={"bytes": share.bytes, "share": share.part},
        severity="warning" if share.device.oom is not None else None,
    )
