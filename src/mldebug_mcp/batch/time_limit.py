"""A limit on how long a chat template may run: it is a program that comes with the tokenizer, and may loop forever."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

SECONDS = 5.0
"""Chosen by hand: a conversation takes milliseconds."""
_TEMPLATE = "<template>"
"""The file name under which Jinja compiles a template."""

Traced: TypeAlias = object
"""What Python hands to a trace function beside the frame and the event."""


class TemplateTimeoutError(Exception):
    """A chat template ran for too long."""


@contextmanager
def template_limit() -> Iterator[None]:
    """Raise TemplateTimeoutError out of a template that runs for longer than `SECONDS`.

    The clock is read before each line of the compiled template. Unlike signals that works in any thread, and it needs
    no extra process for each rendering. It does not limit memory.
    """
    end = time.monotonic() + SECONDS

    def line(frame: FrameType, event: str, value: Traced) -> object:
        del frame, event, value
        if time.monotonic() > end:
            raise TemplateTimeoutError(f"it ran for more than {SECONDS:g} seconds")
        return line

    def call(frame: FrameType, event: str, value: Traced) -> object:
        del event, value
        return line if frame.f_code.co_filename == _TEMPLATE else None

    before = sys.gettrace()
    sys.settrace(call)  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.settrace(before)
