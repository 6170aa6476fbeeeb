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
        Field(
            description="The pickle of torch.cuda.memory._dump_snapshot() (or .gz), or a text with a CUDA "
            "out-of-memory message, torch.cuda.memory_summary() or nvidia-smi"
        ),
    ],
    against: Annotated[str | None, Field(description="An earlier snapshot, to see what changed")] = None,
    focus: Annotated[
        str | None,
        Field(
            description="The id of a call site in top_allocations, or a category such as activations: list only that, "
            "with whole stacks"
        ),
    ] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, MemoryReport]:
    """Find out what is eating GPU memory and why it ran out: CUDA out of memory (OOM), growing VRAM, a memory leak.

    Use it when training runs out of memory, OOM after some steps or at the second epoch, GPU memory usage keeps growing
    every iteration, tensors are not freed, or reserved but unallocated memory (fragmentation) is huge. Analyzes a
    memory snapshot pickle (_dump_snapshot; without running anything in it), compares two snapshots, or reads an
    out-of-memory message: where the memory goes, the peak and who allocated it, by line of code and category
    (parameters, gradients, optimizer state, activations, logits), leaks, fragmentation, the failed request, and in
    `levers` what each usual way to save memory would save here, in bytes.
    """
    from mldebug_mcp.diagnose.memory import check_memory as check
    from mldebug_mcp.report.memory_concise import concise_memory

    return reply(check(path, against, focus), detail, concise_memory)


def estimate_memory(
    config: Annotated[str, Field(description="The model's config.json, or the folder that holds it")],
    *,
    batch_size: Annotated[int, Field(description="Rows per device and forward pass")] = 1,
    length: Annotated[
        int | None, Field(description="Tokens per row; by default the model's longest, 2048 at most")
    ] = None,
    precision: Annotated[
        Precision, Field(description="mixed: autocast over float32 weights; else all in one")
    ] = "mixed",
    optimizer: Annotated[Optimizer, Field(description="Decides the size of the optimizer state")] = "adamw",
    checkpointing: Annotated[
        Checkpointing,
        Field(description="Recomputed in backward: nothing, the attention scores (selective) or whole layers (full)"),
    ] = "none",
    attention: Annotated[
        Attention, Field(description="eager stores scores of length x length, flash does not")
    ] = "flash",
    accumulation: Annotated[int, Field(description="Micro-batches per optimizer step")] = 1,
    devices: Annotated[int, Field(description="Devices that `sharding` splits over; the estimate is per device")] = 1,
    sharding: Annotated[Sharding, Field(description="ZeRO stage; zero3 also stands for FSDP's full shard")] = "none",
    lora_rank: Annotated[int | None, Field(description="LoRA rank, if only adapters are trained")] = None,
    chunked_loss: Annotated[bool, Field(description="A fused or chunked loss, which never holds all logits")] = False,
    frozen: Annotated[
        Frozen | None, Field(description="The frozen base of a LoRA; 4bit is QLoRA's. By default 16bit")
    ] = None,
    tensor_parallel: Annotated[int, Field(description="Devices among which each layer is split")] = 1,
    pipeline_parallel: Annotated[int, Field(description="Stages in which the layers are split")] = 1,
    gpu: Annotated[
        str | None,
        Field(description="A GPU (H100, A100-80GB, 4090, T4) or its GiB (24): whether it fits, and what makes it fit"),
    ] = None,
    snapshot: Annotated[
        str | None, Field(description="A memory snapshot of the run, to show its peak beside the estimate")
    ] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, MemoryEstimate]:
    """Estimate how much GPU memory (VRAM) training needs: will the model fit, on how many GPUs, with what batch size?

    Use it before you train or fine-tune a 7B, 13B or 70B model (Llama 3 8B, Qwen, GPT) on a 24 GB GPU or an A100 80GB,
    as a memory calculator: is there enough VRAM for full fine-tuning? And to compare: how much memory LoRA, gradient
    checkpointing, ZeRO-3 or FSDP sharding save, AdamW or 8-bit optimizer states, the biggest batch size or sequence
    length that fits. Calculates from the model's config.json what parameters, gradients, optimizer states, activations
    and logits need on each device, in bytes, each with its formula, and the peak in `total_bytes`. Call it again to
    see what a change saves.
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
