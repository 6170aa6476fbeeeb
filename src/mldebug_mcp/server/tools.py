"""The tools, one function for each verb, with the words that the model reads, and the list of all tools."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ImageContent
from pydantic import BeforeValidator, Field

from mldebug_mcp.core.errors import MissingExtraError
from mldebug_mcp.models import (
    BatchInspection,
    Diagnosis,
    ErrorExplanation,
    Explanation,
    MetricReading,
    ProbeResult,
    SearchResult,
    Update,
)
from mldebug_mcp.models.data import (
    Attention,
    Checkpointing,
    Frozen,
    MemoryEstimate,
    MemoryReport,
    Offload,
    Optimizer,
    Precision,
    RowsAt,
    Sharding,
)
from mldebug_mcp.models.runs import Contest, Runs
from mldebug_mcp.models.script import ScriptReport
from mldebug_mcp.server.isolated import MESSAGE_INTERVAL_SECONDS, read_batch
from mldebug_mcp.server.messages import Detail, reply

if TYPE_CHECKING:
    from mldebug_mcp.probe import Progress

SEPARATOR = "="


def _listed(value: object) -> object:
    """Return a single item as a list of it."""
    return [value] if isinstance(value, str | int) and not isinstance(value, bool) else value


def _by_id(value: object) -> object:
    """Return `id=word` or a list of such as a mapping; ids hold no equals sign, and one given twice is refused."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item.count(SEPARATOR) == 1 for item in items):
        return value
    pairs = [(before.strip(), after.strip()) for before, _, after in (item.partition(SEPARATOR) for item in items)]
    return dict(pairs) if len(dict(pairs)) == len(pairs) else value


ONE_OR_MORE = BeforeValidator(_listed)
BY_ID = BeforeValidator(_by_id)
# The tool on the rows of a step.


Whole = Annotated[int | None, Field(ge=1)]


def rows_at(
    path: Annotated[str, Field(description="The run's log, folder or recording")],
    step: Annotated[int, Field(ge=0)],
    *,
    data: str | None = None,
    tokenizer: Annotated[str | None, Field(description="Its local folder")] = None,
    sampler: Annotated[
        Literal["transformers", "accelerate", "lightning", "distributed", "random", "shuffle", "sequential"] | None,
        Field(description="Without a recording or training_args.bin; shuffle: DataLoader(shuffle=True)"),
    ] = None,
    seed: int | None = None,
    batch_size: Whole = None,
    accumulation: Whole = None,
    world: Whole = None,
    rows: Whole = None,
    drop_last: bool | None = None,
    split_batches: bool | None = None,
    dispatch_batches: bool | None = None,
    past_end: Annotated[
        Literal["step", "carry"] | None,
        Field(description="Micro-batches left at an epoch's end"),
    ] = None,
    first_step: Annotated[int | None, Field(ge=0, le=1)] = None,
    resumed_at: Annotated[
        list[int] | None, ONE_OR_MORE, Field(description="Steps after which an epoch began anew", max_length=1000)
    ] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, RowsAt]:
    """Tell which rows of the training data were in the batch of a step: which samples caused the loss spike at step N?

    Use it to see the data indices or examples fed at a step, decoded; what is odd in them; whether they were seen
    before. Without a recording, it redraws them from seed and sampler.
    """
    from mldebug_mcp.judge.rows import rows_at as look
    from mldebug_mcp.report.concise import concise_rows

    answer = look(
        path,
        step,
        data,
        tokenizer,
        sampler=sampler,
        seed=seed,
        batch_size=batch_size,
        accumulation=accumulation,
        world=world,
        rows=rows,
        drop_last=drop_last,
        split_batches=split_batches,
        dispatch_batches=dispatch_batches,
        past_end=past_end,
        first_step=first_step,
        resumed_at=resumed_at,
    )
    return reply(answer, detail, concise_rows)


# The tools on many runs: which of them is sick, and whether one kind is better than another.


MOST_RUNS = 200
"""Runs that a call reads: some twenty seconds' work."""
MOST_COMPARED = 50
Paths = Annotated[list[str], ONE_OR_MORE, Field(min_length=2, max_length=MOST_COMPARED)]


def diagnose_runs(
    path: Annotated[str, Field(max_length=4096)],
    detail: Detail = "concise",
) -> Annotated[CallToolResult, Runs]:
    """Diagnose every run of a sweep folder: which of these runs failed, and what do the failed ones have in common?

    Use it for a hyperparameter sweep, a grid or a fleet of experiments: which runs are sick, diverged or crashed;
    which setting the bad ones share, an overview table of all runs in a folder, the best value of each setting.
    """
    from mldebug_mcp.judge.runs import diagnose_runs as diagnose
    from mldebug_mcp.report.concise import concise_runs

    return reply(diagnose(path, most=MOST_RUNS), detail, concise_runs)


def compare_runs(
    a: Annotated[Paths, Field(description="Runs of one kind, such as seeds")],
    b: Annotated[Paths, Field(description="The other runs")],
    metric: Annotated[str, Field(description="Default: evaluation loss, reward or score")] = "",
    best: Annotated[bool, Field(description="Best values, not last levels")] = False,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, Contest]:
    """Say whether a difference between two groups of runs is significant: is recipe A better than B, or seed noise?

    Use it for an ablation over seeds: is the improvement real or random variation, how many seeds do I need to tell.
    """
    from mldebug_mcp.judge.group_comparison import compare_runs as compare

    return reply(compare(a, b, metric, best=best), detail, lambda answer: answer)


# The tools, one function per verb of the library, with the words that the model reads; and the list of all tools.


def diagnose_run(  # noqa: PLR0917 - MCP calls by name
    path: Annotated[str, Field(description="A log or a run folder")],
    config: str | None = None,
    run: Annotated[str, Field(description="Of several: a name from the notes, or 'attempt N'")] = "",
    reference: str | None = None,
    names: Annotated[
        dict[str, str] | None,
        Field(description="What columns mean: {'L': 'loss'}"),
    ] = None,
    script: str | None = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, Diagnosis]:
    """Diagnose a training run from its log: why did my loss spike, diverge, go to NaN or not go down, what went wrong?

    Use it first for any question about a run, to find out why, analyze or debug training logs and metrics: loss spike,
    spikes, loss NaN after 300 steps, a loss that won't go down, is stuck, on a plateau, is zero; did it
    converge; the model is not learning, stopped learning or predicts one class; training is slow, low utilization,
    unstable or diverged after warmup or resuming; learning rate too high; grad norm exploded around a step; overfitting
    (eval loss goes up); reward collapsed, flat or hacked, KL rising (PPO, GRPO, DPO rewards/accuracies). Reads
    trainer_state.json, TensorBoard logs, wandb, MLflow, JSONL, CSV, text, runs/7; compares a run with one that worked.
    """
    from mldebug_mcp.judge import diagnose_run as diagnose
    from mldebug_mcp.report.diagnosis_concise import concise

    return reply(diagnose(path, config, reference, run=run, names=names, script=script), detail, concise)


def read_metric(  # noqa: PLR0917 - MCP calls by name
    path: str,
    names: Annotated[
        list[str],
        ONE_OR_MORE,
        Field(description="As logged, or roles (eval_loss)"),
    ],
    first: float | None = None,
    last: float | None = None,
    points: Annotated[int, Field(ge=4)] = 60,
    run: str = "",
    detail: Detail = "concise",
) -> Annotated[CallToolResult, MetricReading]:
    """Read values of a metric from a log: show, print or list the numbers of a curve between two steps.

    Use it to zoom into a curve, show eval_loss, a schedule or grad norm values. Extremes survive thinning.
    """
    from mldebug_mcp.judge.read_metric import read_metric as read
    from mldebug_mcp.report.concise import concise_reading

    return reply(read(path, names, first, last, points=points, run=run), detail, concise_reading)


def update_diagnosis(  # noqa: PLR0917 - MCP calls by name
    outcomes: Annotated[
        dict[str, Literal["confirms", "refutes"]],
        BY_ID,
        Field(description="By next step: {'lr_too_high.1': 'refutes'}"),
    ],
    findings: Annotated[
        dict[str, Literal["present", "absent", "unknown"]] | None,
        BY_ID,
        Field(description="Without `path`: all, {'loss_spike': 'present'}; else changes"),
    ] = None,
    kind: Annotated[str, Field(description="Without `path`: run.kind", max_length=40)] = "unknown",
    path: Annotated[
        str,
        Field(description="As for diagnose_run (preferred)", max_length=4096),
    ] = "",
    error: Annotated[str, Field(description="Without `path`: the run's last error")] = "",
    config: str | None = None,
    run: str = "",
    reference: str | None = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, Update]:
    """Rank the causes again after a check that diagnose_run suggested: what is the most likely cause now, what else?

    Use it once the outcome of a next step is known: I tested it, the suggested check confirms or refutes a hypothesis;
    lowering the learning rate helped, a fix did not help. Nothing is stored: pass all outcomes so far.
    """
    from mldebug_mcp.judge.diagnosis import update_diagnosis as update
    from mldebug_mcp.report.diagnosis_concise import concise_update

    updated = update(findings or {}, outcomes, kind, path, error, config=config, reference=reference, run=run)
    return reply(updated, detail, concise_update)


def inspect_batch(  # noqa: PLR0917 - MCP calls by name
    path: Annotated[
        str,
        Field(description="JSON(L), CSV, parquet, Arrow, safetensors, npz, .pt, corpora, printed text"),
    ],
    tokenizer: Annotated[
        str | None,
        Field(description="Its local folder or tokenizer.json"),
    ] = None,
    model: Annotated[str | None, Field(description="Its local config.json")] = None,
    purpose: Literal[
        "auto", "sft", "pretraining", "dpo", "kto", "generation", "classification", "embedding", "vlm"
    ] = "auto",
    sample: Annotated[int | None, Field(ge=1)] = None,
    against: str | None = None,
    format: Annotated[str, Field(description="megatron, tokens, ...")] = "",  # noqa: A002 - the word that users see
    dtype: Annotated[str, Field(description="Of raw ids: uint16, >u2, ...")] = "",
    names: Annotated[dict[str, str] | None, Field(description="{'input_ids': 'my_column'}")] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, BatchInspection]:
    """Inspect training data, a tokenized batch or dataset: is my tokenization right, are my labels masked correctly?

    Use it to check or look at data before fine-tuning (SFT, DPO, pretraining), show the decoded batch; which tokens get
    trained (tokens the loss is computed on), or when the model outputs garbage or never stops generating. Finds labels
    all -100, prompt or padding in the loss, missing, masked or duplicate EOS or BOS tokens, wrong chat template; wrong
    padding side, bad attention mask or position ids, shifted labels; truncation, packing, swapped preference pairs,
    duplicates, eval or test data that leak into training data, NaN inputs, class imbalance.
    """
    from mldebug_mcp.judge.batch import inspect_batch as inspect
    from mldebug_mcp.report.concise import concise_inspection

    answer = inspect(
        path, tokenizer, model, purpose, sample=sample, against=against, format=format, dtype=dtype, names=names
    )
    return reply(answer, detail, concise_inspection)


def inspect_script(
    path: Annotated[str, Field(description="A Python file, or a folder of them")],
    detail: Detail = "concise",
) -> Annotated[CallToolResult, ScriptReport]:
    """Review a training script: is there a bug in my training loop, is this training code right? It is never run.

    Use it on the code of a training run, before or after it goes wrong: zero_grad, backward, step and scheduler order,
    gradient accumulation, detached or double-softmax losses, eval mode, splits, masks, shifts, frozen or left-out
    parameters. Rules prove little: then read `places` in the script, each a question with lines, and answer it.
    """
    from mldebug_mcp.judge.script import inspect_script as inspect
    from mldebug_mcp.report.concise import concise_script

    return reply(inspect(path), detail, concise_script)


def search_folklore(
    query: Annotated[str, Field(description="A question or keywords")],
    *,
    domain: Annotated[
        str | None, Field(description="general, llm, rl, vision, diffusion, vlm, distributed or memory")
    ] = None,
    topic: str | None = None,
    kind: Literal["quote", "cause", "symptom", "error", "menu", "any"] = "any",
    limit: Annotated[int, Field(ge=1, le=20)] = 5,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, SearchResult]:
    """Search what experts and practitioners say: best practices, rules of thumb, tips and advice, with citations.

    Use it to find what is known or recommended, and who wrote it: good learning rate, batch size, warmup, optimizer,
    gradient clipping; LoRA, RL agents, GANs, diffusion, vision, large language model training, spikes, instability.
    Quote it verbatim, with the source: Karpathy, Bekman, Schulman and others, papers, docs, blogs.
    """
    from mldebug_mcp.judge.search import search_folklore as search
    from mldebug_mcp.judge.search import within_size

    return reply(search(query, domain, topic, kind, limit, whole=True), detail, within_size)


def explain(
    id: Annotated[  # noqa: A002 - the word that users see
        str, Field(description="loss_spike, lr_too_high, a quote's id")
    ],
    detail: Detail = "concise",
) -> Annotated[CallToolResult, Explanation]:
    """Explain an id from another answer: what does it mean? Returns the full entry, to tell more about it.

    Use it to say what a symptom such as loss_spike_single, a cause such as lr_too_high, a menu or an error mean; what
    goes wrong, the fix, the full quote and source behind an id.
    """
    from mldebug_mcp.judge.search import explain as look_up
    from mldebug_mcp.report.concise import concise_explanation

    return reply(look_up(id), detail, concise_explanation)


def explain_error(
    text: Annotated[str, Field(description="A message, traceback, log text or path")],
    detail: Detail = "concise",
) -> Annotated[CallToolResult, ErrorExplanation]:
    """Explain an error message, traceback or crash: what does it mean, how do I fix it, which rank failed first?

    Use it when a job crashed, with a stack trace, exception or any other error: RuntimeError, ValueError, KeyError,
    CUDA error (device-side assert, illegal access, CUBLAS_STATUS), CUDA out of memory; NCCL watchdog timeout, torchrun
    exit code, shapes that cannot be multiplied, a tokenizer without a padding token, Hub or checkpoint errors.
    """
    from mldebug_mcp.judge.explain_error import explain_error as explain_message
    from mldebug_mcp.report.concise import concise_error

    return reply(explain_message(text), detail, concise_error)


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


MAX_WAITING_REPORTS = 100
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
            await asyncio.sleep(MESSAGE_INTERVAL_SECONDS)
        work.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


@asynccontextmanager
async def _reporting(context: Context[Any, Any]) -> AsyncIterator[Callable[[Progress], None]]:
    """Give what is to be called with the progress of the work inside: the client receives it."""
    updates: asyncio.Queue[Progress] = asyncio.Queue(MAX_WAITING_REPORTS)

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
            doing = str(await asyncio.wait_for(updates.get(), MESSAGE_INTERVAL_SECONDS))
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


TOOLS = (
    diagnose_run,
    read_metric,
    diagnose_runs,
    compare_runs,
    update_diagnosis,
    inspect_batch,
    inspect_script,
    rows_at,
    probe_overfit,
    check_memory,
    estimate_memory,
    search_folklore,
    explain,
    explain_error,
)
"""In the order in which clients list them."""
RUN_CODE = (probe_overfit,)
"""Those that may run code of the user's, so that a client asks before it calls them; the others only read."""
