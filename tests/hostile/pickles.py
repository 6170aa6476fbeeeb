"""Pickles that ask for a call: that of a function which does nothing but note that it was called."""

from __future__ import annotations

CALLS: list[str] = []


def note(text: str) -> str:
    """Note a call."""
    CALLS.append(text)
    return text


NOTE = f"{note.__module__}\n{note.__name__}\n".encode()
"""How a pickle names `note`."""


class Calling:
    """Unpickled by a general unpickler, it calls `note`."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return note, ("called",)
