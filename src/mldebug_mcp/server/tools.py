"""The tools, one function for each verb, with the words that the model reads, and the list of all tools."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import BeforeValidator, Field

from mldebug_mcp.models import (
    BatchInspection,
    Diagnosis,
    ErrorExplanation,
    Explanation,
    MetricReading,
    SearchResult,
    Update,
)
from mldebug_mcp.models.data import RowsAt
from mldebug_mcp.models.runs import Contest, Runs
from mldebug_mcp.models.script import ScriptReport
from mldebug_mcp.server.data_tools import check_memory, estimate_memory, probe_overfit
from mldebug_mcp.server.messages import Detail, reply

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
