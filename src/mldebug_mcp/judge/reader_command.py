"""A reader that is a command of the user's, such as `claude -p`, `llm` or `ollama run MODEL`.

The command gets the prompt on its standard input and prints the reply. It is run without a shell, for two minutes at
most, and ended with all that it started. Replies are kept by the command and the prompt, so that the same question is
paid for once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.preferences import READER_VARIABLE
from mldebug_mcp.core.text import shorten
from mldebug_mcp.judge.reader import MAX_REPLY_CHARACTERS, Reader, RefusedReplyError, parse_reply

TIME_LIMIT = 120.0
"""Seconds that a reply may take."""
MAX_OUTPUT_BYTES = 4 * MAX_REPLY_CHARACTERS
MAX_ERROR_BYTES = 65_536
MAX_KEPT = 2_000
"""Replies that are kept: the oldest go. Chosen: some ten megabytes."""
_WAIT = 2.0
"""Seconds for the pipes to close once the command has ended."""


def reader_of(
    command: str | None,
    cache: Path | None = None,
    time_limit: float = TIME_LIMIT,
    accepts: Callable[[str], object] = parse_reply,
) -> Reader | None:
    """Return the reader that a command line or the environment names; None where neither does.

    Args:
        command: A command with its arguments, as a shell would take it; "" or None asks the environment.
        cache: The folder where replies are kept; None keeps none.
        time_limit: Seconds that a reply may take.
        accepts: Takes a reply; it raises `RefusedReplyError` for one that is not to be kept.

    Raises:
        InputError: the command cannot be run.
    """
    named = command or os.environ.get(READER_VARIABLE, "")
    if not named.strip():
        return None
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise InputError(f"--reader {shorten(named, 100)!r}: {error}; quote it as for a shell") from None
    if not words or shutil.which(words[0]) is None:
        program = words[0] if words else named
        raise InputError(
            f"--reader: no program {shorten(program, 100)!r} is found; name a command that reads a prompt on its "
            "input and prints the reply, such as 'claude -p'"
        )

    def read(prompt: str) -> str:
        return run(words, prompt, time_limit)

    return read if cache is None else kept(read, named, cache, accepts)


def run(words: list[str], prompt: str, time_limit: float = TIME_LIMIT) -> str:
    """Run a command on a prompt and return what it prints.

    Raises:
        InputError: it takes too long, prints too much, or fails.
    """
    with _started(words) as process:
        out, err = _Drain(process.stdout, MAX_OUTPUT_BYTES), _Drain(process.stderr, MAX_ERROR_BYTES)
        writer = threading.Thread(target=_write, args=(process.stdin, prompt.encode()), daemon=True)
        writer.start()
        deadline = time.monotonic() + time_limit
        while process.poll() is None and not out.is_full and time.monotonic() < deadline:
            out.join(0.05)
        late = process.poll() is None and not out.is_full
    for thread in (out, err, writer):
        thread.join(_WAIT)
    if late:
        raise InputError(f"the reader {words[0]!r} gave no reply in {time_limit:.0f} s")
    if out.is_full:
        raise InputError(f"the reader {words[0]!r} printed more than {MAX_OUTPUT_BYTES:,} bytes")
    if process.returncode:
        error_lines = err.text.strip().splitlines()
        last = f": {shorten(error_lines[-1], 200)}" if error_lines else ""
        raise InputError(f"the reader {words[0]!r} ended with code {process.returncode}{last}")
    return out.text


@contextmanager
def _started(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a group of its own; end the group however the block is left."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the user named it, and no shell reads it
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise InputError(f"the reader {words[0]!r} cannot be run ({error.strerror or error})") from None
    try:
        with _ended_by_signals():
            yield process
    finally:
        _end(process)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a signal that ends this program leave the block as an exception does, so that what it started ends, too."""
    if threading.current_thread() is not threading.main_thread():  # Python sets handlers in the main thread alone
        yield
        return
    ending = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.signal(number, _leave) for number in ending}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write(pipe: IO[bytes] | None, content: bytes) -> None:
    # A command that does not read its input, such as one that prints a recorded reply, closes the pipe early.
    with contextlib.suppress(OSError, ValueError), pipe or contextlib.nullcontext() as opened:
        if opened is not None:
            opened.write(content)


class _Drain(threading.Thread):
    """Reads a pipe to its end, and keeps a bounded part of it."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._limit = pipe, limit
        self._read = bytearray()
        self.is_full = False
        self.start()

    def run(self) -> None:
        if self._pipe is None:
            return
        with contextlib.suppress(OSError, ValueError), self._pipe as pipe:
            while chunk := os.read(pipe.fileno(), 65_536):
                self._read += chunk[: self._limit - len(self._read)]
                self.is_full = len(self._read) == self._limit

    @property
    def text(self) -> str:
        """What was read, as text."""
        return bytes(self._read).decode("utf-8", errors="replace")


def kept(reader: Reader, name: str, folder: Path, accepts: Callable[[str], object]) -> Reader:
    """Return a reader that keeps its replies in a folder, and gives one again to the same prompt.

    A reply that cannot be used is not kept, and a folder that cannot be used keeps nothing.
    """

    def read(prompt: str) -> str:
        digest = hashlib.blake2b(f"{name}\0{prompt}".encode(), digest_size=16).hexdigest()
        file = folder / f"reply-{digest}.txt"
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return file.read_text(encoding="utf-8")
        reply = reader(prompt)
        with contextlib.suppress(OSError, RefusedReplyError):
            accepts(reply)
            folder.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            unfinished.write_text(reply, encoding="utf-8")
            unfinished.replace(file)
            _forget(folder)
        return reply

    return read


def _forget(folder: Path) -> None:
    """Remove the oldest replies beyond those that are kept."""
    replies = list(folder.glob("reply-*.txt"))
    if len(replies) > MAX_KEPT:
        for file in sorted(replies, key=lambda reply: reply.stat().st_mtime)[:-MAX_KEPT]:
            file.unlink(missing_ok=True)
