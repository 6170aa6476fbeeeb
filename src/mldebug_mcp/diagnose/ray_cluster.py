"""A Ray cluster for the time of a job. Every machine must see the files at the same path and have this package."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from mldebug_mcp.errors import InputError, MissingExtraError
from mldebug_mcp.text import shorten

CONNECT_SECONDS = 10.0
TOGETHER = 8
"""Pieces of work that a task does: each of them takes some hundredths of a second, a task some thousandths more."""
Piece = TypeVar("Piece")
Done = TypeVar("Done")


@contextmanager
def connected(address: str) -> Iterator[Any]:  # the package, which has no types
    """Connect to a Ray cluster, and yield the package.

    Args:
        address: The cluster's address such as "auto" or "ray://head:10001"; "local" starts Ray on this machine.

    Raises:
        InputError: there is no cluster at the address, or its job failed.
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
        return [work(one) for one in few]

    with connected(address) as ray:
        task = ray.remote(some)
        running = [task.remote(list(pieces[at : at + TOGETHER])) for at in range(0, len(pieces), TOGETHER)]
        for one in running:
            yield from ray.get(one)


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
