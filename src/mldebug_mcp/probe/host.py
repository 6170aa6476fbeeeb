"""A probe from outside.

Check the job, start the worker, follow it, and end it with all its children, whatever happens to either side.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mldebug_mcp.core.access import OutsideError, current, is_folder, require
from mldebug_mcp.core.config_files import read_config_json
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import OFFLINE
from mldebug_mcp.core.paths import expanded, temporary_folder
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.probe.measured import Failure, Measured
from mldebug_mcp.probe.worker.job import BUILD, START_LIMIT

GIB = 1024**3
PASS_VARIABLE = "MLDEBUG_MCP_PASS_ENV"  # noqa: S105 - the name of a variable
"""Names of variables that user code gets besides those of `_PASSED`, separated by commas: "MY_DATA,MY_CONFIG"."""
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|PYTHON\w*|LD_LIBRARY_PATH|DYLD_\w*|DISPLAY"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|PROGRAMDATA|USERPROFILE|NUMBER_OF_PROCESSORS"
    r"|HF_(?:HOME|HUB_CACHE|DATASETS_CACHE|MODULES_CACHE|ASSETS_CACHE)|XDG_CACHE_HOME|TRITON_CACHE_DIR"
    r"|(?:LC|CONDA|CUDA|NVIDIA|HIP|ROCR|ROCM|HSA|XPU|OMP|MKL|KMP|OPENBLAS|NUMEXPR|NCCL|CUBLAS|CUDNN|TORCH|TORCHINDUCTOR"
    r"|PYTORCH|XLA|SLURM)_\w+"
)
"""What a training program needs of the environment, by the documentation of Python, conda, CUDA, ROCm, OpenMP, PyTorch
and the Hub's client. A list of what is secret is never complete, so whatever is not listed stays here."""
_SECRET = re.compile(r"TOKEN|SECRET|PASS|PWD|CREDENTIAL|KEY|AUTH|JWT|COOKIE|_PAT\b", re.IGNORECASE)
"""What even a name on the list must not hold: CONDA_TOKEN, SLURM_JWT."""
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?", re.IGNORECASE)
_QUIET = OFFLINE | {
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Threads that spin while they wait make tiny models ten times slower on a shared machine.
    "OMP_WAIT_POLICY": "PASSIVE",
    "KMP_BLOCKTIME": "0",
}


class Job(BaseModel):
    """A probe's settings; the worker reads them as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    batch: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    entry: str | None = None
    device: Annotated[str, Field(max_length=40)] = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    steps: Annotated[int, Field(ge=1, le=100_000)] = 300
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    clip: Annotated[float, Field(gt=0)] | None = 1.0
    time_limit: Annotated[float, Field(ge=1, le=86_400)] = 60.0
    memory_bytes: int | None = None
    seed: int = 0
    threads: Annotated[int, Field(ge=1)] | None = None


def clean_environment() -> dict[str, str]:
    """Return what user code gets of this process's environment, with downloads and trackers switched off."""
    named = {name.strip() for name in os.environ.get(PASS_VARIABLE, "").split(",")}
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in named or (_PASSED.fullmatch(name.upper()) and not _SECRET.search(name))
    }
    return passed | _QUIET


def find_python(python: str | Path | None) -> str:
    """Return the interpreter to use, a program or the folder of an environment.

    It is the one named, else the first that the server was started with, else this one.

    Raises:
        InputError: no interpreter is there, or it may not be run.
    """
    chosen = python or next(iter(current().pythons), None)
    if chosen is None:
        return sys.executable
    path = expanded(chosen)
    check_interpreter(path)
    if path.is_dir():
        inside = next((path / name for name in ("bin/python", "Scripts/python.exe") if (path / name).is_file()), None)
        if inside is None:
            raise InputError(f"{shorten(str(path), 200)}: a folder without bin/python; name the interpreter itself")
        return str(inside)
    found = shutil.which(str(path))
    if found is None:
        raise InputError(f"{shorten(str(path), 200)}: not a program that can be run; name a Python interpreter")
    return found


def check_interpreter(path: Path) -> None:
    """Raise InputError unless an interpreter may be run: where roots are set, one named at the start or inside them.

    An environment's interpreter is a link to the one it was made with, outside. So it is its folder that has to lie
    inside the roots, and both ends of the link have to be called Python: any program can be the target of a link.
    """
    access = current()
    if access.roots is None or str(path) in access.pythons or str(path.parent.parent) in access.pythons:
        return
    program = path / "bin" / "python" if is_folder(path) else path
    inside = access.allows(str(program.parent.resolve()))
    if inside and all(_PYTHON.fullmatch(file.name) for file in (program, program.resolve())):
        return
    raise OutsideError(
        f"{shorten(str(path), 200)}: not an interpreter that this server may run: name an environment inside the "
        f"allowed roots ({', '.join(access.roots) or 'none'}), or start the server with --python PATH"
    )


def check_entry(entry: str) -> None:
    """Raise InputError unless an entry may be run: where roots are set, a file inside them."""
    if current().roots is None:
        return
    file, _, _ = entry.rpartition(":")
    if not file.endswith(".py"):
        raise InputError(
            f"{shorten(entry, 120)!r}: over MCP an entry is FILE.py:function, in a file inside the allowed roots"
        )
    require(Path(file))


def read_config(path: str | Path) -> dict[str, Any]:
    """Return a model's `config.json`, from its path or the folder that holds it.

    Raises:
        InputError: it cannot be read, or needs code that is not part of transformers.
    """
    config, name = read_config_json(path)
    if "model_type" not in config:
        raise InputError(f"{name}: it has no model_type, as a model's config.json has; name that file or its folder")
    if "auto_map" in config:
        raise InputError(
            f"{name}: this model comes with code of its own (auto_map), which the probe does not run; use an entry, a "
            "function of yours that builds it"
        )
    return config


def memory_limit(gigabytes: float | None) -> int | None:
    """Return the limit in bytes: the one given, else four fifths of the machine's memory; None if that is unknown."""
    if gigabytes is not None:
        return int(gigabytes * GIB)
    try:
        return int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


# Start the worker, follow it, and end it with all its children, whatever happens to either side.
#
# The worker runs in its own process group with its standard input held open by this process: if this process dies, by
# whatever signal, the pipe closes and the worker ends itself and its group. On Linux a supervisor stands between the
# two, which also ends what has left the group. Elsewhere a process that user code moved to another session is left
# running.


WORKER = Path(__file__).parent / "worker" / "__main__.py"
SUPERVISOR = Path(__file__).parent / "supervisor.py"
REPORT_GRACE_SECONDS = 2.0
"""Seconds beyond the time limit in which the worker may report where it hangs before it is killed."""
SUPERVISOR_KILL_SECONDS = 6.0
"""Seconds that the supervisor gets to end all descendants: one more than it takes at most."""
WATCH_EVERY = 0.05
"""Seconds between two checks of the worker."""
_RUNNING: list[int] = []
"""The processes of the probes that run, the oldest first: together they may take what one may take alone."""
KEPT_OUTPUT = 16_384
"""Characters kept of what the worker wrote last."""
LONGEST_LINE = 65_536
_TIMEOUT = re.compile(rb"(?m)^Timeout \(\d+:\d\d:\d\d(\.\d+)?\)!$")
"""What faulthandler writes before the stacks when the worker's time is up."""
MAX_RESULT = 64 * 1024 * 1024
"""Bytes of the largest result that is read, because user code in the worker could write there, too."""
MAX_NOTES = 50


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a probe has come."""

    stage: str
    step: int
    steps: int
    loss: float | None

    def __str__(self) -> str:
        step = f", step {self.step} of {self.steps}" if self.steps else ""
        loss = "" if self.loss is None else f", loss {figure(self.loss)}"
        return f"{self.stage}{step}{loss}"


@dataclass(slots=True)
class RawProbe:
    """What came back from the worker: what was measured up to the last stage, and why it did not finish, if so.

    `seconds` are wall time; `output` are the last lines that it wrote: prints, warnings, tracebacks.
    """

    measured: Measured = field(default_factory=Measured)
    failure: Failure | None = None
    stage: str = ""
    seconds: float = 0.0
    output: str = ""
    notes: list[str] = field(default_factory=list)


async def run_probe(job: Job, python: str, on_progress: Callable[[Progress], None] | None = None) -> RawProbe:
    """Run a job under an interpreter and return what it measured.

    Cancelling ends the worker, with everything it started, before the cancellation is passed on.
    """
    begun = time.monotonic()
    with temporary_folder("mldebug-probe-") as folder:
        job_file, result_file = Path(folder) / "job.json", Path(folder) / "result.json"
        job_file.write_text(job.model_dump_json(), encoding="utf-8")
        end = _End()
        try:
            async with _worker(python, job_file, result_file) as process:
                await _follow(process, job, on_progress, end)
        except OSError as error:
            message = f"{python} cannot be started ({error.strerror or error}); name a Python interpreter"
            end.failure = Failure(kind="interpreter", message=message)
        raw = read_result(result_file, python, end)
    raw.seconds = time.monotonic() - begun
    raw.output = end.output
    return raw


@dataclass(slots=True)
class _End:
    """How the worker ended."""

    failure: Failure | None = None
    code: int | None = None
    output: str = ""
    timed_out: bool = False
    """It announced that its time is up."""
    deadline: float = 0.0
    """When its time is up (monotonic); it is set anew when the worker has imported torch and begins to work."""


@asynccontextmanager
async def _worker(python: str, job_file: Path, result_file: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    # It ends all descendants of the worker with it, where the system can do that.
    supervisor = [sys.executable, "-I", "-S", str(SUPERVISOR), str(job_file.parent)] if sys.platform == "linux" else []
    process = await asyncio.create_subprocess_exec(
        *supervisor, python, str(WORKER), str(job_file), str(result_file),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True, env=clean_environment(), limit=LONGEST_LINE,
    )  # fmt: skip
    _RUNNING.append(process.pid)
    try:
        yield process
    finally:
        await asyncio.shield(_end(process))
        _RUNNING.remove(process.pid)
        # asyncio closes these when the loop runs on; a loop that ends at once would leave them open.
        process._transport.close()  # type: ignore[attr-defined]


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the worker with all that it started: by asking the supervisor, and by force where there is none."""
    if sys.platform == "linux" and process.returncode is None:
        with contextlib.suppress(OSError, TimeoutError):
            cast("asyncio.StreamWriter", process.stdin).write(b"e")
            async with asyncio.timeout(SUPERVISOR_KILL_SECONDS):
                while process.returncode is None:
                    await asyncio.sleep(WATCH_EVERY / 10)
    _kill_group(process)
    # Without the wait, the worker would be left as a zombie; a process outside the group may hold its output.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), REPORT_GRACE_SECONDS)


def _kill_group(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            # The group outlives its leader where user code started processes of its own.
            os.killpg(process.pid, signal.SIGKILL)


async def _follow(
    process: asyncio.subprocess.Process, job: Job, on_progress: Callable[[Progress], None] | None, end: _End
) -> None:
    """Wait for the worker's end, its time limit or its memory limit, whichever comes first."""
    end.deadline = time.monotonic() + START_LIMIT + job.time_limit

    def note(progress: Progress) -> None:
        if progress.stage == BUILD:
            end.deadline = min(end.deadline, time.monotonic() + job.time_limit)
        if on_progress is not None:
            on_progress(progress)

    readers = [
        asyncio.create_task(_read_progress(cast("asyncio.StreamReader", process.stdout), note)),
        asyncio.create_task(_keep_tail(cast("asyncio.StreamReader", process.stderr), end)),
    ]
    try:
        end.failure = await _until_it_ends(process, job, end)
        end.code = process.returncode
        await _end(process)
        await asyncio.wait(readers, timeout=REPORT_GRACE_SECONDS)
    finally:
        for task in readers:
            task.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _until_it_ends(process: asyncio.subprocess.Process, job: Job, end: _End) -> Failure | None:
    """Return when the worker has ended, or why it has to be ended.

    The return code is polled: `process.wait` would wait for everyone who holds the worker's output open.
    """
    while process.returncode is None:
        if time.monotonic() > end.deadline + REPORT_GRACE_SECONDS:
            return _out_of_time(job)
        if too_much := _too_much_memory(process.pid, job.memory_bytes):
            return Failure(kind="memory", message=too_much)
        await asyncio.sleep(WATCH_EVERY)
    return None


def _too_much_memory(pid: int, limit: int | None) -> str:
    """Return why a probe takes too much memory, or "": of several at once the one that began last gives way."""
    if limit is None:
        return ""
    if _group_bytes(pid) > limit:
        message = f"the probe needed more than its memory limit of {limit / GIB:.1f} GiB"
        return f"{message}; give a smaller batch or a higher memory limit"
    shared = memory_limit(None) or limit
    if len(_RUNNING) > 1 and pid == _RUNNING[-1] and sum(map(_group_bytes, _RUNNING)) > shared:
        message = f"this probe and another that began before it needed more than {shared / GIB:.1f} GiB together"
        return f"{message}; call it again when the other has ended"
    return ""


def _out_of_time(job: Job) -> Failure:
    message = f"the probe was not done after {job.time_limit:.0f} s; the output shows where it was"
    return Failure(kind="time", message=message)


async def _read_progress(stream: asyncio.StreamReader, on_progress: Callable[[Progress], None]) -> None:
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue  # longer than any line of the worker's own
        if not line:
            return
        with contextlib.suppress(ValueError, TypeError, KeyError):
            line_read = json.loads(line)
            on_progress(
                Progress(
                    shorten(str(line_read["stage"]), 60),
                    int(line_read["step"]),
                    int(line_read["steps"]),
                    line_read["loss"],
                )
            )


async def _keep_tail(stream: asyncio.StreamReader, end: _End) -> None:
    tail = b""
    while chunk := await stream.read(65_536):
        tail += chunk
        # Its stacks follow, which may push this line out of what is kept, or end the process by a signal.
        end.timed_out = end.timed_out or _TIMEOUT.search(tail) is not None
        tail = tail[-KEPT_OUTPUT:]
        end.output = tail.decode("utf-8", errors="replace")


def _group_bytes(leader: int) -> int:
    """Return the resident memory of the worker and all that it started, in bytes (Linux)."""
    pages, pending = 0, [leader]
    while pending:
        number = pending.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{number}/statm").read_text().split()[1])
            for children in Path(f"/proc/{number}/task").glob("*/children"):
                pending += map(int, children.read_text().split())
    return pages * os.sysconf("SC_PAGE_SIZE")


def read_result(path: Path, python: str, end: _End | None = None) -> RawProbe:
    """Return what the worker wrote; whatever is broken in it is a failure of the probe."""
    end = _End() if end is None else end
    raw = RawProbe()
    done = False
    try:
        result = json.loads(_own_file(path))
        raw.measured = Measured.model_validate(result["measured"])
        raw.stage, raw.notes = shorten(str(result.get("stage", "")), 60), _notes(result.get("notes", ()))
        done = bool(result.get("done"))
        raw.failure = _failure(result["failure"]) if result.get("failure") else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError):
        done = False
    if not done and raw.failure is None:
        raw.failure = end.failure or _silent_end(python, end, raw.stage)
    return raw


def _own_file(path: Path) -> bytes:
    """Return what the worker wrote; raises OSError if user code put a pipe, a link or anything endless in its place."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        data = file.read(MAX_RESULT + 1)
    if len(data) > MAX_RESULT:
        raise OSError("too large")
    return data


def _notes(notes: Iterable[object]) -> list[str]:
    """Return the worker's notes, a bounded number of short lines, because user code may have written them."""
    return [shorten(str(note), 400) for note in islice(notes, MAX_NOTES)]


def _failure(reported: object) -> Failure:
    found = Failure.model_validate(reported)
    return found.model_copy(update={"message": shorten(found.message, 2000), "where": shorten(found.where, 400)})


def _silent_end(python: str, end: _End, stage: str) -> Failure:
    """Return how a worker ended that wrote no result."""
    if end.timed_out or (stage and time.monotonic() > end.deadline):
        return Failure(kind="time", message="the time limit was reached; the output shows where it was")
    if end.code is not None and end.code < 0:
        name = signal.Signals(-end.code).name if -end.code in list(signal.Signals) else f"signal {-end.code}"
        return Failure(kind="crash", message=f"the process was ended by {name}; its last lines are shown below")
    if not stage:
        message = f"{python} did not run the probe (exit code {end.code}); name a Python 3.10 or later that has torch"
        return Failure(kind="interpreter", message=message)
    return Failure(kind="crash", message=f"the process ended with exit code {end.code} and no result")
