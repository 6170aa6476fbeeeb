"""The pass over a data set as a Ray Data job: each part is read and judged where Ray puts it, and merged here.

The answer is the same as on one
machine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from mldebug_mcp.batch.part import Part
from mldebug_mcp.batch.read import DataSet
from mldebug_mcp.diagnose.batch_pass import BatchPass, PassOver, Progress
from mldebug_mcp.diagnose.ray_cluster import connected
from mldebug_mcp.errors import InputError, MissingExtraError, MLDebugError
from mldebug_mcp.progress import checkpoint

Row: TypeAlias = dict[str, Any]
"""A row of a Ray data set."""


@contextmanager
def on_ray(address: str) -> Iterator[PassOver]:
    """Connect to a Ray cluster, and yield the way to pass over data sets there.

    Args:
        address: The cluster's address such as "auto" or "ray://head:10001"; "local" starts Ray on this machine.

    Raises:
        InputError: there is no cluster at the address, or its job failed.
        MissingExtraError: Ray is not installed.
    """
    with connected(address):
        try:
            import ray.data
        except ImportError:
            raise MissingExtraError("Ray Data", "ray") from None
        context = ray.data.DataContext.get_current()
        before = context.execution_options.preserve_order, context.enable_progress_bars
        context.execution_options.preserve_order, context.enable_progress_bars = True, False
        logger = logging.getLogger("ray.data")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            yield _pass_over
        finally:
            context.execution_options.preserve_order, context.enable_progress_bars = before
            logger.setLevel(level)


def _pass_over(data: DataSet, progress: Progress | None = None, *, judging: bool = True) -> BatchPass:
    import ray.data

    whole = BatchPass(judging=judging)
    # All parts take the purpose of the first piece: they cannot ask each other.
    whole.first = next(data.batches())
    data = replace(data, file=data.file.absolute(), context=replace(data.context, purpose=whole.first.purpose))
    parts = data.parts()
    job = ray.data.from_items([{"part": part} for part in parts], override_num_blocks=len(parts))
    for row in job.map(partial(_part_pass, data=data, judging=judging)).iter_rows():
        if row["problem"]:
            raise InputError(row["problem"])
        whole.merge(row["passed"])
        checkpoint(f"{whole.counts.rows:,} rows, {whole.counts.tokens:,} tokens")
        if progress is not None:
            progress(whole.counts.rows, whole.counts.tokens)
    return whole


def _part_pass(row: Row, data: DataSet, *, judging: bool) -> Row:
    """Return the pass over a part. An error of our own is returned as text, so that Ray does not retry."""
    part: Part = row["part"]
    passed = BatchPass(judging=judging)
    try:
        for batch in data.batches_of(part):
            passed.add(batch)
    except MLDebugError as error:
        return {"passed": None, "problem": str(error)}
    passed.first = None
    return {"passed": passed, "problem": ""}
