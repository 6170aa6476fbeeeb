"""The server's side of helper processes: started when they are needed, kept for later calls, and ended whole."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mldebug_mcp.core.errors import InputError, MLDebugError
from mldebug_mcp.core.limits import OFFLINE
from mldebug_mcp.core.paths import make_folder

MAX_CALLS_AT_ONCE = 4
"""Calls at the same time: each may take a processor and a good part of the memory. Chosen by hand."""
MAX_IDLE_HELPERS = 2
"""Helpers that are kept while there is nothing to do ..."""
IDLE_SECONDS = 600.0
"""... and for how long: one that has read a batch holds some hundred megabytes, and one is started in a second."""
LONGEST_ANSWER = 256 * 1024 * 1024
"""Bytes: the batch of a probe, of four million numbers in each column, is the longest. Answers are a thousandth."""
START_PAUSE = 0.02
"""Seconds before a helper is started, in which a call that is cancelled, as many at once are, starts none: starting
one holds up the server for some milliseconds."""
MAX_REMOVAL_TRIES = 100
"""Times that a folder is removed, `REMOVAL_PAUSE` apart: a helper that was killed just now may still write into it."""
REMOVAL_PAUSE = 0.02
_EXIT_WAIT_SECONDS = 2.0
"""Seconds that the end of a helper is waited for."""
_OUT_OF_TIME = tuple(-getattr(signal, name, 0) for name in ("SIGPROF", "SIGALRM", "SIGXCPU"))
_KEPT_VARIABLES = frozenset({
    "CONDA_PREFIX", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME",
    "PYTHONPATH", "PYTHONUTF8", "SYSTEMROOT", "TZ", "USERPROFILE", "VIRTUAL_ENV",
})  # fmt: skip
"""All that a helper gets of the environment. What else it needs is set for it, see `_environment`."""
_THREADS = "4"


class UnexpectedError(Exception):
    """A call failed with an error that is not one of ours; its message is the traceback."""


class _GoneError(Exception):
    """A helper ended before it began with a call."""


@dataclass(slots=True)
class _Helper:
    """A running helper and its folder for temporary files."""

    process: asyncio.subprocess.Process
    scratch: str
    retirement: asyncio.Task[None] | None = None
    """Ends it if no call comes for long."""

    async def call(
        self, name: str, arguments: Mapping[str, object], on_progress: Callable[[str], None]
    ) -> dict[str, Any]:
        """Return the answer to a call; raises as the end of the helper demands, `_GoneError` if it was gone before."""
        await self._send({"call": name, "arguments": arguments})
        if not await self._line():
            raise _GoneError
        while "doing" in (message := await self._receive()):
            on_progress(str(message["doing"]))
        return message

    async def begin(self, roots: Sequence[str] | None) -> None:
        """Tell a new helper what it may do, and wait until it is ready."""
        await self._send({"roots": roots, "scratch": self.scratch, "parent": os.getpid()})
        await self._receive()

    async def _send(self, message: object) -> None:
        assert self.process.stdin is not None  # noqa: S101 - it was asked for
        with contextlib.suppress(ConnectionError):  # told by the end of its output
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            await self.process.stdin.drain()

    async def _receive(self) -> dict[str, Any]:
        line = await self._line()
        if not line:
            raise InputError(_why(await self.process.wait()))
        message: dict[str, Any] = json.loads(line)
        return message

    async def _line(self) -> bytes:
        assert self.process.stdout is not None  # noqa: S101
        try:
            return await self.process.stdout.readline()
        except ValueError:
            raise InputError("the whole answer would be too long to send; ask for the short one") from None

    def stay(self) -> None:
        """Do not end it for want of calls."""
        if self.retirement is not None:
            self.retirement.cancel()

    def end(self) -> None:
        """End the helper with all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait for the end, so that none is left behind as a zombie."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _EXIT_WAIT_SECONDS)
        # asyncio closes these when the loop runs on; a loop that ends at once would leave them open.
        self.process._transport.close()  # type: ignore[attr-defined]


@dataclass(slots=True)
class Pool:
    """Helpers that do the calls of a module.

    Args:
        module: Its full name; it has a mapping CALLS of functions that take and return JSON.
        roots: The folders that helpers may read; None for all.
    """

    module: str
    roots: Sequence[str] | None = None
    idle: list[_Helper] = field(default_factory=list)
    running: list[_Helper] = field(default_factory=list)
    folder: str = ""
    """Holds the folders of all helpers, from the start of the first one on."""
    is_closed: bool = False
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CALLS_AT_ONCE))

    async def call(self, name: str, arguments: Mapping[str, object], on_progress: Callable[[str], None]) -> Any:  # noqa: ANN401 - JSON
        """Do a call in a helper. Cancelling it ends the helper.

        Args:
            name: The name in CALLS.
            arguments: What it takes.
            on_progress: Called with a description of the current work.

        Raises:
            MLDebugError: the call was refused, took too much, or crashed; the message says which.
            UnexpectedError: it failed otherwise.
        """
        async with self.places:
            try:
                message = await self._result_of_call(
                    self._idle_helper() or await self._start(), name, arguments, on_progress
                )
            except _GoneError:  # while it was idle: the system ends processes where memory is short
                message = await self._result_of_call(await self._start(), name, arguments, on_progress)
        return _result(message)

    async def _result_of_call(
        self, helper: _Helper, name: str, arguments: Mapping[str, object], on_progress: Callable[[str], None]
    ) -> dict[str, Any]:
        """Have a call done by a helper, which is kept afterwards or ended."""
        self.running.append(helper)
        kept = False
        try:
            message = await helper.call(name, arguments, on_progress)
            kept = not message["last"] and len(self.idle) < MAX_IDLE_HELPERS and not self.is_closed
        finally:
            self.running.remove(helper)
            if kept:
                self._keep(helper)
            else:
                await self._end(helper)
        return message

    async def warm(self) -> None:
        """Start a helper, so that the first call need not wait for it."""
        if not self.idle and not self.running:
            async with self.places:
                self._keep(await self._start())

    def _keep(self, helper: _Helper) -> None:
        """Keep a helper for the next call, and end it if none comes for long."""
        self.idle.append(helper)
        helper.retirement = asyncio.create_task(self._retire(helper))

    def _idle_helper(self) -> _Helper | None:
        """Return a helper that was kept, if there is one."""
        if not self.idle:
            return None
        helper = self.idle.pop()
        helper.stay()
        return helper

    async def _retire(self, helper: _Helper) -> None:
        await asyncio.sleep(IDLE_SECONDS)
        self.idle.remove(helper)
        await self._end(helper)

    def close(self) -> None:
        """End all helpers, also one that is being started, and remove what they wrote."""
        self.is_closed = True
        for helper in (*self.idle, *self.running):
            helper.stay()
            helper.end()
        self.idle.clear()
        if self.folder:
            _remove(self.folder)

    async def _start(self) -> _Helper:
        await asyncio.sleep(START_PAUSE)
        if self.is_closed:
            raise InputError("the server is ending")
        # Written down before anything is awaited, so that whoever closes the pool removes it.
        self.folder = self.folder or make_folder("mldebug-helpers-")
        scratch = make_folder("", self.folder)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "mldebug_mcp.core.sandbox.helper", self.module,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True, env=_environment(scratch), limit=LONGEST_ANSWER,
            )  # fmt: skip
        except OSError as error:
            await _removed(scratch)
            raise InputError(
                f"no process can be started to read files in ({error.strerror}); end some others"
            ) from None
        except BaseException:  # cancelled: asyncio has ended the process
            await asyncio.shield(_removed(scratch))
            raise
        helper = _Helper(process, scratch)
        self.running.append(helper)  # so that closing the pool ends it
        try:
            await helper.begin(self.roots)
        except BaseException:
            await self._end(helper)
            raise
        finally:
            self.running.remove(helper)
        return helper

    @staticmethod
    async def _end(helper: _Helper) -> None:
        helper.end()
        await asyncio.shield(asyncio.gather(helper.ended(), _removed(helper.scratch)))


async def _removed(folder: str) -> None:
    """Remove a folder, which may hold thousands of files of an archive, while the server answers others."""
    await asyncio.get_running_loop().run_in_executor(None, _remove, folder)


def _remove(folder: str) -> None:
    """Remove a folder into which a process that is ending may still write."""
    for _ in range(MAX_REMOVAL_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(REMOVAL_PAUSE)


def _environment(scratch: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.upper() in _KEPT_VARIABLES}
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP", "HF_HOME", "XDG_CACHE_HOME"), scratch)
    # As many threads as a call is worth; and an allocator that does not claim a gigabyte before it is needed.
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"), _THREADS
    )
    return kept | temporary | threads | OFFLINE | {"ARROW_DEFAULT_MEMORY_POOL": "system", "USE_TORCH": "0"}


def _result(message: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    if "refused" in message:
        raise MLDebugError(message["refused"])
    if "memory" in message:
        raise InputError(
            "this needs more memory than its size explains, and was ended; is the file damaged, or made to exhaust its "
            "reader? name another, or use the command line, which has no such limit"
        )
    if "panic" in message:
        raise InputError(_CRASHED)
    if "failed" in message:
        raise UnexpectedError(message["failed"])
    return message["answer"]


_CRASHED = "a library crashed on this input, or ran out of memory; is the file damaged? write it again, or name another"


def _why(code: int) -> str:
    """Return why a helper ended."""
    if code in _OUT_OF_TIME:
        return (
            "this took more time than its size explains, and was ended; is the file damaged, or made to exhaust its "
            "reader? name another, or use the command line, which has no such limit"
        )
    return _CRASHED
