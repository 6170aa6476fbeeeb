"""The tools on GPU memory: what filled it, and how much a training run needs."""

from __future__ import annotations

from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from mldebug_mcp.models.memory import (
    Attention,
    Checkpointing,
    Frozen,
    MemoryEstimate,
    MemoryReport,
    Optimizer,
    Precision,
    Sharding,
)
from mldebug_mcp.server.reply import Detail, reply


def check_memory(
    path: Annotated[
        str,
        Field(description="The pickle (or .gz), or a text: a message, torch.cuda.memory_summary(), nvidia-smi"),
    ],
    against: str | None = None,
    focus: Annotated[
        str | None,
        Field(description="An id in top_allocations or a category, to list with whole stacks"),
    ] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, MemoryReport]:
    """Find out what is eating GPU memory and why it ran out: CUDA out of memory (OOM), growing VRAM, a memory leak.

    Use it when training is OOM after some steps or at the second epoch, GPU memory usage keeps growing every
    iteration, tensors are not freed, or reserved but unallocated memory (fragmentation) is huge. Analyzes a memory
    snapshot pickle (_dump_snapshot), compares two, or reads a message: the peak, who allocated it (activations,
    logits), leaks, what saves memory.
    """
    from mldebug_mcp.diagnose.memory import check_memory as check
    from mldebug_mcp.report.memory_concise import concise_memory

    return reply(check(path, against, focus), detail, concise_memory)


def estimate_memory(
    config: Annotated[str, Field(description="The model's config.json or its folder")],
    *,
    batch_size: int = 1,
    length: Annotated[int | None, Field(description="Default: the model's longest, at most 2048")] = None,
    precision: Annotated[Precision, Field(description="mixed: autocast over float32 weights")] = "mixed",
    optimizer: Optimizer = "adamw",
    checkpointing: Annotated[
        Checkpointing,
        Field(description="selective: attention scores; full: whole layers"),
    ] = "none",
    attention: Attention = "flash",
    accumulation: int = 1,
    devices: int = 1,
    sharding: Annotated[Sharding, Field(description="zero3 is also FSDP's full shard")] = "none",
    lora_rank: int | None = None,
    chunked_loss: bool = False,
    frozen: Frozen | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    gpu: Annotated[
        str | None,
        Field(description="H100, 4090 or its GiB (24): does it fit"),
    ] = None,
    snapshot: str | None = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, MemoryEstimate]:
    """Estimate how much GPU memory (VRAM) training needs: will the model fit, on how many GPUs, with what batch size?

    Use it before you train or fine-tune a 7B or 70B model (Llama 3 8B, Qwen) on a 24 GB GPU or an A100 80GB, as a
    memory calculator: full fine-tuning, LoRA, gradient checkpointing, ZeRO-3 or FSDP sharding, AdamW or 8-bit
    optimizer states, the biggest batch size or sequence length that fits.
    """
    from mldebug_mcp.memory.estimate import estimate_memory as estimate
    from mldebug_mcp.report.memory_concise import concise_estimate

    answer = estimate(
        config,
        batch_size=batch_size,
        length=length,
        precision=precision,
        optimizer=optimizer,
        checkpointing=checkpointing,
        attention=attention,
        accumulation=accumulation,
        devices=devices,
        sharding=sharding,
        lora_rank=lora_rank,
        chunked_loss=chunked_loss,
        frozen=frozen,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        gpu=gpu,
        snapshot=snapshot,
    )
    return reply(answer, detail, concise_estimate)
