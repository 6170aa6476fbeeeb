"""A failure that the user can act on: an answer of the worker, not a crash."""

from __future__ import annotations


class KnownFailure(Exception):  # noqa: N818 - an answer
    """A failure with a name that the host understands.

    Args:
        kind: One of `no_torch`, `entry`, `config`, `batch`, `memory`, `device`, `user_code`.
        message: One line: what failed, where, what to do next.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
