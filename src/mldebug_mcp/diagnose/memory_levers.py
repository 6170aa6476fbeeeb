"""The usual ways to save memory, and what each would save here: from the bytes that each category holds."""

from __future__ import annotations

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import DeviceMemory
from mldebug_mcp.models.memory import Lever

CHECKPOINTED = 32 / 34
"""Share of a layer's activations that full recomputation drops: 34 bytes per token and hidden unit become 2, the
layer's input (Korthikanti et al. 2022, arXiv 2205.05198, equations 1 and 2, without the part that grows with the
square of the length)."""
LOGIT_CHUNKS = 8
EIGHT_BIT = 3 / 4
"""Two moments of 4 bytes become two of 1 byte (Dettmers et al. 2022, arXiv 2110.02861)."""
LEAST = 1024 * 1024


def levers(device: DeviceMemory, leaked: int = 0, *, fragmented: bool = False) -> list[Lever]:
    """Return what would save at least 1 MiB on a device at its peak or failure, best first.

    What is at fault comes first: memory that leaks or lies in pieces is of no use to training, while all else costs
    time, batch size or precision.

    Args:
        device: The device.
        leaked: Bytes that earlier steps left behind, according to the findings.
        fragmented: Whether the findings say that free memory lies in pieces too small to use.
    """
    view = device.view
    missing = device.oom.short if device.oom is not None else None
    found = [*_by_settings(device), ("stop_the_leak", leaked, "what earlier steps left behind; see the finding")]
    if view is not None:
        request = device.oom.requested if device.oom is not None else 0
        found += _by_category(view.bytes_by_category(view.held), request)
    at_fault = {"stop_the_leak", *(["expandable_segments"] if fragmented else [])}
    return [
        Lever(
            lever=name, saves_bytes=saved, enough=None if missing is None or not missing else saved >= missing, how=how
        )
        for name, saved, how in sorted(found, key=lambda one: (one[0] not in at_fault, -one[1]))
        if saved >= LEAST
    ]


def _by_category(held: dict[Category, int], request: int) -> list[tuple[str, int, str]]:
    def of(*categories: Category) -> int:
        return sum(held.get(one, 0) for one in categories)

    activations, logits = of(Category.ACTIVATIONS), of(Category.LOGITS)
    # The request that failed grows with the batch, too.
    per_token = activations + logits + of(Category.TEMPORARY) + request
    parameters, gradients, state = of(Category.PARAMETERS), of(Category.GRADIENTS), of(Category.OPTIMIZER_STATE)
    return [
        (
            "halve_micro_batch",
            per_token // 2,
            "half of activations, logits and temporary memory; double the accumulation to keep the batch",
        ),
        ("halve_sequence_length", per_token // 2, "half of the same; more where attention scores are stored"),
        (
            "activation_checkpointing",
            int(activations * CHECKPOINTED),
            "keeps one tensor per layer instead of all; costs one more forward pass",
        ),
        (
            "logits_in_chunks",
            logits - logits // LOGIT_CHUNKS,
            f"a fused or chunked loss holds 1/{LOGIT_CHUNKS} of the logits at a time",
        ),
        ("eight_bit_optimizer", int(state * EIGHT_BIT), "if the state is float32: two moments of 1 byte instead of 4"),
        ("offload_optimizer", state, "moves the optimizer state to the CPU; slower steps"),
        (
            "shard_over_two_devices",
            (parameters + gradients + state) // 2,
            "FSDP or ZeRO-3 on two devices; N devices save (N-1)/N",
        ),
        (
            "lower_precision",
            (parameters + gradients + activations) // 2,
            "only if they are float32 now: half of parameters, gradients and activations",
        ),
    ]


def _by_settings(device: DeviceMemory) -> list[tuple[str, int, str]]:
    free = device.oom.free if device.oom is not None else device.free
    found = []
    if not device.expandable:
        found.append(
            ("expandable_segments", free.split, "joins free pieces: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
        )
    if device.oom is None:
        found.append(
            ("empty_cache", device.free.releasable, "only for other processes: this one reuses its cache by itself")
        )
    return found
