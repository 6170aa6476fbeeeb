"""A helper process: does one call after the other, each within limits.

    python -P -m mldebug_mcp.core.sandbox.helper MODULE

MODULE has a mapping CALLS of functions by name, which take and return JSON, and a function `prepare`. A line of JSON on
the standard input says where the helper may read and write, each further one is a call; the answers are lines of JSON
on the standard output.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, BinaryIO, cast

from mldebug_mcp.core import limits
from mldebug_mcp.core.access import Access, confined
from mldebug_mcp.core.errors import MLDebugError, is_failure
from mldebug_mcp.core.limits import listening
from mldebug_mcp.core.sandbox.confine import confine
from mldebug_mcp.core.text import shorten

EVERY = 0.5
"""Seconds between two words on what is being done."""
MOST_HELD = 512 * 1024 * 1024
"""Bytes that a helper may hold after a call beyond what it began with: libraries that it imports for batches take about
200 MB, and names and texts of files that it has read stay in caches. Chosen by hand."""
Call = Callable[..., object]


def main(module: str) -> None:
    """Serve until the input ends."""
    requests, answers = _apart()
    start = json.loads(requests.readline())
    roots = start["roots"]
    confine(roots, start["scratch"], start["parent"])
    limits.leave_out_imports()
    work = import_module(module)
    work.prepare()
    calls = cast("Mapping[str, Call]", work.CALLS)
    access = Access(None if roots is None else tuple(roots))
    most = limits.resident() + MOST_HELD
    _say(answers, {"ready": True})
    while line := requests.readline():
        _say(answers, {"begun": True})  # from here on an end without an answer is due to this call
        request = json.loads(line)
        answer = _answer(calls[request["call"]], request["arguments"], access, answers, len(line))
        # Out of memory, what is left may be torn into pieces.
        last = "memory" in answer or limits.resident() > most
        _say(answers, {**answer, "last": last})
        if last:
            return


def _apart() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes to the server, and leave libraries an empty input and an output that goes nowhere."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return requests, answers


def _say(answers: BinaryIO, message: object) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
    answers.flush()


def _answer(call: Call, arguments: dict[str, Any], access: Access, answers: BinaryIO, size: int) -> dict[str, object]:
    """Return what a call returns, or why it does not."""
    limits.begin(size)
    try:
        with confined(access), listening(_Teller(answers)):
            return {"answer": call(**arguments)}
    except MLDebugError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"memory": True}
    except BaseException as error:
        if not is_failure(error):
            raise
        if not isinstance(error, Exception):
            return {"panic": shorten(str(error), 200)}
        return {"failed": traceback.format_exc()}
    finally:
        limits.end()


class _Teller:
    """Passes on what is being done, now and then."""

    def __init__(self, answers: BinaryIO) -> None:
        self.answers = answers
        self.last = time.monotonic()

    def __call__(self, doing: str) -> None:
        now = time.monotonic()
        if now - self.last > EVERY:
            self.last = now
            _say(self.answers, {"doing": shorten(doing, 200)})


if __name__ == "__main__":
    main(sys.argv[1])
