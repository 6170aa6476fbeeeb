"""Progress and cancellation of long work: it calls `checkpoint` now and then.

A listener is told what is being done. The server's reports it to the client, and raises in the thread of the work once
the call is cancelled. Without a listener a checkpoint costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]
"""Called with what is being done. An exception that it raises ends the work."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def checkpoint(doing: str) -> None:
    """Report what is being done. Call it a few times a second, where the work can be abandoned safely."""
    listener = _listener.get()
    if listener is not None:
        listener(doing)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Pass the checkpoints of the work inside to a listener, in this thread and in those that copy its context.

    A listener around it hears them as well.
    """
    outer = _listener.get()

    def both(doing: str) -> None:
        for one in (outer, listener):
            if one is not None:
                one(doing)

    token = _listener.set(both if outer is not None else listener)
    try:
        yield
    finally:
        _listener.reset(token)
