"""What is promised of each input: what it may cost, and what an answer has to hold to.

Errors are ours, in one clean line; text is clean and bounded; numbers are finite or tagged. Linux resets the peak of a
process (`/proc/self/clear_refs`), so that each input has a peak of its own. Elsewhere only an input that sets a new
peak of the whole process is seen.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mldebug_mcp.core.text import clean
from mldebug_mcp.models.base import Model

LONGEST_ERROR = 2000
LONGEST_TEXT = 20_000


class BrokenPromiseError(Exception):
    """An answer or an error breaks what is promised of all of them."""


def check_answer(answer: Model) -> None:
    """Raise BrokenPromiseError unless an answer could go to any client as it is."""
    try:
        value = json.loads(answer.to_json(), parse_constant=_no_constant)
    except ValueError as error:
        raise BrokenPromiseError(f"its JSON is not valid: {error}") from None
    for text in texts(value):
        check_text(text)


def check_error(error: Exception) -> None:
    """Raise BrokenPromiseError unless the message of an error, as doors show it, is one bounded line."""
    message = clean(str(error))
    if "\n" in message or not message.strip() or len(message) > LONGEST_ERROR:
        raise BrokenPromiseError(f"an error of {len(message)} characters or several lines: {message[:200]!r}")


def check_text(text: str) -> None:
    """Raise BrokenPromiseError unless a text is clean, bounded, and can be encoded."""
    if clean(text) != text or len(text) > LONGEST_TEXT:
        raise BrokenPromiseError(f"text of {len(text)} characters that is not clean or too long: {text[:200]!r}")
    text.encode()


def texts(value: object) -> Iterator[str]:
    """Yield every string in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from texts(one)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}")


SECONDS = 5.0
"""Processor time of one input."""
BYTES = 1 << 30
"""Resident memory that one input may add; what a process claims is bounded at twice that beyond its start."""
_RESET_PEAK = b"5"


class TooSlowError(BaseException):
    """An input took too long. Not an Exception, for those may be caught on the way."""


class TooLargeError(Exception):
    """An input took too much memory."""


@dataclass(slots=True)
class Cost:
    """What an input took: seconds of processor time, and bytes of resident memory at its peak."""

    seconds: float = 0.0
    growth: int = 0


def bound_memory() -> None:
    """Let the process claim no more than twice `BYTES` beyond what it holds: past that claiming fails."""
    with suppress(OSError, ValueError):
        held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (held + 2 * BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))


@contextmanager
def metered(cost: Cost) -> Iterator[None]:
    """Measure what is done inside, and stop it by TooSlowError after `SECONDS`."""
    before = _reset()
    started = time.process_time()
    try:
        with stopped_after(SECONDS):
            yield
    finally:
        cost.seconds = time.process_time() - started
        cost.growth = max(0, _peak() - before)
    if cost.growth > BYTES:
        raise TooLargeError(f"took {cost.growth >> 20} MiB")


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Stop what is done inside by TooSlowError once it has taken that much processor time."""

    def too_slow(*_: object) -> None:
        raise TooSlowError(f"took more than {seconds:g} s")

    signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _reset() -> int:
    """Forget the peak, and return what is resident, in bytes."""
    try:
        file = os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return _peak()
    try:
        os.write(file, _RESET_PEAK)
    finally:
        os.close(file)
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.split("VmHWM:", 1)[1].split(maxsplit=1)[0]) * 1024
