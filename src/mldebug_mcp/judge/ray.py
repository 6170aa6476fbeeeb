"""Work on a Ray cluster. A pass over a data set and the diagnosis of many runs are shared out to its machines."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from mldebug_mcp.batch.columns import Part
from mldebug_mcp.batch.read import DataSet
from mldebug_mcp.core.errors import InputError, MissingExtraError, MLDebugError
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import shorten
from mldebug_mcp.judge.batch_pass import BatchPass, PassOver, Progress

# A Ray cluster for the time of a job. Every machine must see the files at the same path and have this package.


CONNECT_SECONDS = 10.0
PIECES_PER_TASK = 8
"""Pieces of work that a task does: each of them takes some hundredths of a second, a task some thousandths more."""
Piece = TypeVar("Piece")
Done = TypeVar("Done")


@contextmanager
def connected(address: str) -> Iterator[Any]:  # the package, which has no types
    """Connect to a Ray cluster, and yield the package.

    Args:
        address: The cluster's address such as "auto" or "ray://head:10001"; "local" starts Ray on this machine.

    Raises:
        InputError: no cluster is at the address, or its job failed.
        MissingExtraError: Ray is not installed.
    """
    # Read when Ray is imported: no usage statistics are sent.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Ray", "ray") from None
    ours = not ray.is_initialized()
    if ours:
        _connect(address)
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise InputError(f"the Ray job failed: {shorten(str(error), 300)}; see the cluster's logs") from None
    finally:
        if ours:
            ray.shutdown()


def each_on_ray(address: str, work: Callable[[Piece], Done], pieces: Sequence[Piece]) -> Iterator[Done]:
    """Yield what `work` makes of each piece, in their order, done where Ray puts it; see `connected` for errors."""

    def some(few: Sequence[Piece]) -> list[Done]:
        return [work(item) for item in few]

    with connected(address) as ray:
        task = ray.remote(some)
        running = [
            task.remote(list(pieces[at : at + PIECES_PER_TASK])) for at in range(0, len(pieces), PIECES_PER_TASK)
        ]
        for pending in running:
            yield from ray.get(pending)


def _connect(address: str) -> None:
    import ray

    _reach(address)
    local = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **local)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise InputError(
            f"no Ray cluster at {shorten(address, 100)!r} ({shorten(str(error), 160)}); "
            "give its address, auto, or local to start Ray on this machine"
        ) from None


def _reach(address: str) -> None:
    """Check that something listens at host and port: Ray itself tries for minutes, and then ends the process."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"nothing answers at {shorten(address, 100)} ({shorten(str(error), 100)}); is the cluster's head up, and "
            "is this its port (6379 from inside, ray://HEAD:10001 from outside)?"
        ) from None


# The pass over a data set as a Ray Data job: each part is read and judged where Ray puts it, and merged here.
#
# The answer is the same as on one machine.


Row: TypeAlias = dict[str, Any]
"""A row of a Ray data set."""


@contextmanager
def on_ray(address: str) -> Iterator[PassOver]:
    """Connect to a Ray cluster as `connected` does, and yield the way to pass over data sets there.

    Raises:
        InputError: no cluster is at the address, or its job failed.
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
