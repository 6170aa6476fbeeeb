"""The tools on GPU memory and the tool that probes a batch."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ImageContent
from pydantic import Field

from mldebug_mcp.core.errors import MissingExtraError
from mldebug_mcp.models import ProbeResult
from mldebug_mcp.models.data import (
    Attention,
    Checkpointing,
    Frozen,
    MemoryEstimate,
    MemoryReport,
    Offload,
    Optimizer,
    Precision,
    Sharding,
)
from mldebug_mcp.server.isolated import SECONDS, read_batch
from mldebug_mcp.server.messages import Detail, reply

if TYPE_CHECKING:
    from mldebug_mcp.probe import Progress

# The tools on GPU memory: what filled it, and how much a training run needs.


def check_memory(
    path: Annotated[
        str,
        Field(description="The pickle (or .gz) or text: a message, memory_summary(), nvidia-smi"),
    ],
    against: str | None = None,
    focus: Annotated[
        str | None,
        Field(description="An id of top_allocations or a category: whole stacks"),
    ] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, MemoryReport]:
    """Find out what is eating GPU memory and why it ran out: CUDA out of memory (OOM), growing VRAM, a memory leak.

    Use it when training is OOM after some steps or at the second epoch, GPU memory usage keeps growing every
    iteration, tensors are not freed; or reserved but unallocated memory (fragmentation) is huge. Analyzes a memory
    snapshot pickle (_dump_snapshot), compares two, or reads a message: the peak, who allocated it (activations,
    logits), leaks, what saves memory.
    """
    from mldebug_mcp.judge.memory import check_memory as check
    from mldebug_mcp.report.concise import concise_memory

    return reply(check(path, against, focus), detail, concise_memory)


def estimate_memory(
    config: Annotated[str, Field(description="config.json or its folder")],
    *,
    batch_size: int = 1,
    length: int | None = None,
    precision: Annotated[Precision, Field(description="mixed: autocast over float32")] = "mixed",
    optimizer: Optimizer = "adamw",
    checkpointing: Annotated[
        Checkpointing,
        Field(description="selective: attention; full: layers"),
    ] = "none",
    attention: Attention = "flash",
    accumulation: int = 1,
    devices: int = 1,
    sharding: Sharding = "none",
    lora_rank: int | None = None,
    chunked_loss: bool = False,
    frozen: Frozen | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    gpu: Annotated[
        str | None,
        Field(description="H100, 4090 or GiB (24)"),
    ] = None,
    snapshot: str | None = None,
    offload: Offload = "none",
    optimizer_in_backward: bool = False,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, MemoryEstimate]:
    """Estimate how much GPU memory (VRAM) training needs: will the model fit, on how many GPUs, with what batch size?

    Use it before you train or fine-tune a 7B or 70B model on a 24 GB GPU or an A100 80GB: full
    fine-tuning, LoRA, checkpointing, ZeRO (zero3: FSDP), 8-bit optimizers, offload, the longest rows.
    """
    from mldebug_mcp.memory.estimate import estimate_memory as estimate
    from mldebug_mcp.report.concise import concise_estimate

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
        offload=offload,
        optimizer_in_backward=optimizer_in_backward,
    )
    return reply(answer, detail, concise_estimate)


# The tool `probe_overfit`: one awaited call with progress; cancelling it ends the worker.


QUEUE = 100
"""Reports that wait to be sent; more are dropped."""
PROBE_LIMITER = anyio.CapacityLimiter(2)
"""Probes that run at the same time. Chosen."""


async def probe_overfit(  # noqa: PLR0917 - MCP calls by name
    context: Context[Any, Any],
    batch: Annotated[
        str | None,
        Field(description="A file with inputs and labels; or give `entry`"),
    ] = None,
    model: Annotated[
        str | None,
        Field(description="With `batch`: a config.json, built scaled down"),
    ] = None,
    entry: Annotated[
        str | None,
        Field(
            description="FILE.py:function, which is run; returns a dict or object: model, batch, loss(model, batch), "
            "optimizer?, train_step?"
        ),
    ] = None,
    python: Annotated[
        str | None,
        Field(description="An environment with torch; it is run"),
    ] = None,
    device: str = "auto",
    steps: Annotated[int, Field(ge=1, le=10_000)] = 300,
    time_limit: Annotated[float, Field(ge=1, le=3600)] = 60.0,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    detail: Detail = "concise",
) -> Annotated[CallToolResult, ProbeResult]:
    """Overfit a single batch, the sanity check of model, loss function and training loop: can my model learn at all?

    Use it to verify a model or when it does not learn: can it memorize one batch or example, is the initial loss right?
    Do gradients reach all parameters, which layer or module outputs the first NaN, is a custom loss buggy?
    """
    from mldebug_mcp.probe import Progress

    await asyncio.to_thread(_prepare)  # importing takes seconds on a busy machine, in which others are answered
    from mldebug_mcp.judge.probe import probe
    from mldebug_mcp.report.concise import concise_probe

    async with _reporting(context) as note:
        if not PROBE_LIMITER.available_tokens:
            note(Progress("waiting for another probe to end", 0, 0, None))
        async with PROBE_LIMITER, _while_connected(context):
            answer = await probe(
                batch, model, entry, python, device,
                on_progress=note, read=read_batch, steps=steps, time_limit=time_limit, dtype=dtype,
            )  # fmt: skip
    pictures = await asyncio.to_thread(picture_of, answer)
    return reply(answer, detail, concise_probe, *pictures)


def _prepare() -> None:
    """Import and read what a probe needs."""
    from mldebug_mcp.judge import probe  # noqa: F401
    from mldebug_mcp.knowledge import catalogue
    from mldebug_mcp.report import concise  # noqa: F401

    catalogue()


@asynccontextmanager
async def _while_connected(context: Context[Any, Any]) -> AsyncIterator[None]:
    """Cancel the work inside once an HTTP client is gone: nobody would get its answer, and another waits for the slot.

    Over stdio the end of the client is the end of the server.
    """
    is_disconnected = getattr(context.request_context.request, "is_disconnected", None)
    work = asyncio.current_task()
    if is_disconnected is None or work is None:
        yield
        return

    async def watch() -> None:
        while not await is_disconnected():
            await asyncio.sleep(SECONDS)
        work.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


@asynccontextmanager
async def _reporting(context: Context[Any, Any]) -> AsyncIterator[Callable[[Progress], None]]:
    """Give what is to be called with the progress of the work inside: the client receives it."""
    updates: asyncio.Queue[Progress] = asyncio.Queue(QUEUE)

    def note(progress: Progress) -> None:
        if not updates.full():
            updates.put_nowait(progress)

    reporter = asyncio.create_task(_report(context, updates))
    try:
        yield note
    finally:
        reporter.cancel()


async def _report(context: Context[Any, Any], updates: asyncio.Queue[Progress]) -> None:
    done, doing = 0, "starting"
    while True:
        # A long silent phase, such as importing torch, is reported again and again.
        with suppress(TimeoutError):
            doing = str(await asyncio.wait_for(updates.get(), SECONDS))
        done += 1
        await context.report_progress(done, message=doing)


def picture_of(answer: ProbeResult) -> list[ImageContent]:
    """Return the loss curve as an image, if there is one and matplotlib to draw it."""
    from mldebug_mcp.report.chart import draw_probe

    if len(answer.curve) < 2:
        return []
    try:
        data = draw_probe(answer)
    except MissingExtraError:
        return []
    return [ImageContent(data=base64.b64encode(data).decode(), mime_type="image/png")]
