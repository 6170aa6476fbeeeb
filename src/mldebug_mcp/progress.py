"""Long work says how far it is, and can be stopped: it calls `checkpoint` now and then.

Who wants to know listens: the server tells its client, and raises in the work's own thread once the call is cancelled.
Without a listener a checkpoint costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]
"""Called with what is being done; what it raises ends the work."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def checkpoint(doing: str) -> None:
    """Say what is being done, a few times a second, where the work can be left without harm."""
    listener = _listener.get()
    if listener is not None:
        listener(doing)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Hear the checkpoints of the work inside, in this thread and in those that copy its context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
