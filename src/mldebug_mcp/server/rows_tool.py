"""The tool on the rows of a step."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from mldebug_mcp.models.rows import RowsAt
from mldebug_mcp.server.reply import Detail, reply

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
        list[int] | None, Field(description="Steps after which an epoch began anew", max_length=1000)
    ] = None,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, RowsAt]:
    """Tell which rows of the training data were in the batch of a step: which samples caused the loss spike at step N?

    Use it to see the data indices or examples fed at a step, decoded, what is odd in them, and whether the same rows
    were seen before. Without a recording, it draws the rows again from seed and sampler.
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
