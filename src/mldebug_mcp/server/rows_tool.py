"""The tool on the rows of a step."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from mldebug_mcp.models.rows import RowsAt
from mldebug_mcp.server.reply import Detail, reply

Whole = Annotated[int | None, Field(ge=1)]


def rows_at(
    path: Annotated[str, Field(description="The run's log or folder, or a recording of mldebug_mcp.recorder")],
    step: Annotated[int, Field(description="The step, as the log numbers it", ge=0)],
    *,
    data: Annotated[
        str | None, Field(description="The training data as the sampler saw them, to show the rows")
    ] = None,
    tokenizer: Annotated[str | None, Field(description="The tokenizer's local folder, to decode them")] = None,
    sampler: Annotated[
        Literal["transformers", "accelerate", "lightning", "distributed", "random", "shuffle", "sequential"] | None,
        Field(
            description="Only where neither a recording nor training_args.bin tells; random: RandomSampler with a "
            "seeded generator; shuffle: DataLoader(shuffle=True, generator=seeded)"
        ),
    ] = None,
    seed: Annotated[int | None, Field(description="What the sampler was seeded with")] = None,
    batch_size: Annotated[Whole, Field(description="Rows of a micro-batch of one rank")] = None,
    accumulation: Annotated[Whole, Field(description="Micro-batches per optimizer step")] = None,
    world: Annotated[Whole, Field(description="Ranks that rows are divided among")] = None,
    rows: Annotated[Whole, Field(description="Rows of the data, as the sampler counts them")] = None,
    drop_last: Annotated[bool | None, Field(description="The loader leaves out a last, smaller batch")] = None,
    split_batches: Annotated[bool | None, Field(description="As Accelerate's setting")] = None,
    dispatch_batches: Annotated[bool | None, Field(description="As Accelerate's setting")] = None,
    past_end: Annotated[
        Literal["step", "carry"] | None,
        Field(description="Micro-batches left at the end of an epoch make a smaller step, or go into the next one"),
    ] = None,
    first_step: Annotated[int | None, Field(description="The number of the log's first step", ge=0, le=1)] = None,
    resumed_at: Annotated[
        list[int] | None, Field(description="Steps after which a resumed run began its epoch anew", max_length=1000)
    ] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, RowsAt]:
    """Tell which rows of the training data were in the batch of a step: which samples caused the loss spike at step N?

    Use it after a spike or NaN to see what was in that batch: the data indices or examples fed at a step, decoded, what
    is odd in them beside neighbouring batches, and whether the same rows were seen before. Reads a recording of the
    rows, else draws them again from seed and sampler (Transformers Trainer, Accelerate, PyTorch samplers, Lightning;
    epochs, accumulation, ranks, resume). The rows are exact, or it says why they cannot be told and what is missing.
    """
    from mldebug_mcp.diagnose.rows import rows_at as look
    from mldebug_mcp.report.rows_concise import concise_rows

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
