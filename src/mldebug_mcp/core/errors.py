"""The errors that users see: answers, not crashes, each in one line that says what to do next.

MLDebugError
├── InputError          the input cannot be used: missing, unreadable, empty, binary, not a log
├── UnknownIdError      an id that is not in the catalogue
├── MissingExtraError   an optional dependency is needed; says how to install it
└── CatalogueError      a knowledge file (playbook, evidence record or table) breaks its grammar
"""

from __future__ import annotations


class MLDebugError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(MLDebugError):
    """The input cannot be used."""


class UnknownIdError(MLDebugError):
    """An id that is not in the catalogue."""


class MissingExtraError(MLDebugError):
    """An optional dependency is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs {package}: pip install 'mldebug-mcp[{extra}]', or in a clone pip install '.[{extra}]'"
        )


def is_failure(error: BaseException) -> bool:
    """Return whether an error is a library's failure.

    A panic in a library written in Rust is not an `Exception`: uncaught, it would end the server.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


class CatalogueError(MLDebugError):
    """A knowledge file breaks its grammar."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
