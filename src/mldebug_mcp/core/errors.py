"""The errors that users see: answers, not crashes, each in one line that says what to do next.

MLDebugError
├── InputError          the input cannot be used: missing, unreadable, empty, binary, not a log
├── UnknownIdError      an id that is not in the catalogue
├── MissingExtraError   an optional dependency is needed; says how to install it
└── CatalogueError      a knowledge file (playbook, evidence record or table) breaks its grammar
"""

from __future__ import annotations

from collections.abc import Sequence


class MLDebugError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(MLDebugError):
    """The input cannot be used.

    Args:
        message: What is wrong, and what to do. It names an argument as `name=VALUE`.
        arguments: The arguments that it names so. The command line shows their options instead.
    """

    def __init__(self, message: str, *, arguments: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.arguments = tuple(arguments)

    def with_options(self) -> str:
        """Return the message with `--name VALUE` in the place of `name=VALUE`; an empty list is `none` there."""
        message = str(self)
        for name in self.arguments:
            option = f"--{name.replace('_', '-')}"
            message = message.replace(f"{name}=[]", f"{option} none").replace(f"{name}=", f"{option} ")
        return message


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
