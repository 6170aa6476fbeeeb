"""The worker's main function.

It sets limits, builds the subject, probes it, and writes what was found, whatever happens.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .report import KnownFailure, Report, claim_stdout

if TYPE_CHECKING:
    from .subject import Subject

# What keeps a probe from harming its machine: it ends with its host, in bounded time and memory, without a network.


ORPHAN_GRACE_SECONDS = 4.0
"""Seconds beyond the time limit after which the whole group is ended, if the host is gone."""
START_LIMIT = 120.0
"""Seconds that the import of torch may take: it is not work on the batch, and a busy machine takes long."""
FOLDER_PREFIX = "mldebug-probe-"
"""The host's name for the folder: no other folder is ever removed."""
_LOOPBACK = ("127.", "::1", "localhost")


def guard(time_limit: float, memory_bytes: int | None, folder: Path) -> None:
    """Set all limits of this process; the folder of job and result is removed here if the host is gone.

    The time is for work once torch is imported. Too large an allocation becomes an error at the user's own line.
    """
    _end_with_host(START_LIMIT + time_limit, folder)
    faulthandler.enable()
    limit_time(START_LIMIT)
    if memory_bytes is not None:
        _limit_memory(memory_bytes)
    sys.addaudithook(_no_network)


def limit_time(seconds: float) -> None:
    """Print the stacks and end the process after so many seconds from now, whatever it is doing.

    It runs in a C thread, so it also ends a process whose Python is stuck in an extension.
    """
    faulthandler.dump_traceback_later(seconds, exit=True)


def _end_with_host(time_limit: float, folder: Path) -> None:
    """End this process and its children when the host's end of standard input closes, or the time is up.

    The watch is a process of its own in the same group: a thread could not act while an extension holds Python's lock.
    """
    watched = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    if not hasattr(os, "fork"):
        threading.Thread(target=_watch, args=(watched,), name="probe-watch", daemon=True).start()
        return
    worker = os.getpid()
    if os.fork() == 0:
        # The host must not take the watch's copies of the output for the worker's.
        os.dup2(watched, 0)
        watched = 0
        os.closerange(1, 256)
        select.select([watched], [], [], time_limit + ORPHAN_GRACE_SECONDS)
        # If the worker has ended, the host still has to read the result, and removes the folder itself.
        if os.getppid() == worker and folder.name.startswith(FOLDER_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)
    os.close(watched)


def _watch(watched: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(watched, 1024):
            pass
    os._exit(1)


def _limit_memory(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:
        return  # Windows; the host watches the process there
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, hard))
        # A core dump of a training process is as large as its memory.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _no_network(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        return
    address = arguments[-1]
    if isinstance(address, tuple) and not str(address[0]).startswith(_LOOPBACK):
        raise PermissionError(f"the probe has no network, but {address[0]!r} was called; use files on this machine")


BUILD = "build"
"""The first phase that the time limit counts."""
FOR_THE_REST = 0.8
"""Share of the time limit after which training stops, so that the outcome can still be measured."""
SHOWN_LINES = 6
MAX_SINGLE_THREAD_PARAMETERS = 3_000_000
"""Parameters below which one thread is faster than several that wait for each other."""


def main(job_path: str, result_path: str) -> None:
    """Run the job in a file and write its result. Ends the process, so that no user thread keeps it alive."""
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    report = Report(result_path, claim_stdout())
    memory = job.get("memory_bytes") if job["device"] in ("auto", "cpu") else None
    guard(job["time_limit"], memory, Path(job_path).resolve().parent)
    failure = None
    try:
        _import_torch(report)
        limit_time(job["time_limit"])
        run_job(job, report, time.monotonic())
    except KnownFailure as known:
        failure = {"kind": known.kind, "message": str(known)}
        if known.kind == "vocabulary":
            report.measured["vocabulary"] = str(known)
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises is the answer
        failure = _failure(error)
    report.save(failure, done=failure is None)
    sys.stderr.flush()
    os._exit(0)


def _import_torch(report: Report) -> None:
    report.enter("import torch")
    try:
        import torch
    except ImportError as error:
        message = f"{sys.executable} cannot import torch ({error}); name the interpreter of your training environment"
        raise KnownFailure("no_torch", message) from None
    report.measured["environment"] = {
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


def run_job(job: dict[str, Any], report: Report, begun: float) -> None:
    """Build what the job names and probe it; `begun` is when the time limit began to count (monotonic)."""
    import torch

    from .probe import Probe, choose_device, probe_what_fits

    report.enter(BUILD)
    device = choose_device(job["device"])
    report.measured["device"] = str(device)

    def build(seed: int) -> Subject:
        torch.manual_seed(seed)
        return _build(job, report, device)

    subject = build(job["seed"])
    small = sum(parameter.numel() for parameter in subject.model.parameters()) < MAX_SINGLE_THREAD_PARAMETERS
    if job.get("threads") or small:
        torch.set_num_threads(job.get("threads") or 1)
    deadline = begun + FOR_THE_REST * job["time_limit"]
    probe_what_fits(lambda: Probe(subject, report, job, deadline, build), report)


def _build(job: dict[str, Any], report: Report, device: Any) -> Subject:
    from .parameters import hidden_parameters
    from .probe import DTYPES

    begun = time.monotonic()
    subject = _subject_of_job(job, report, device)
    subject.build_seconds = time.monotonic() - begun
    subject.dtype = DTYPES[job["dtype"]]
    subject.hidden = hidden_parameters(subject.model)
    for _, parameter in subject.hidden:
        # `model.to` does not find them; the fault to tell is that no optimizer does, not where they lie.
        parameter.data = parameter.data.to(subject.device)
    return subject


def _subject_of_job(job: dict[str, Any], report: Report, device: Any) -> Subject:
    from .models import tiny_subject, to_batch
    from .subject import load_entry, to_device

    if job.get("entry"):
        return load_entry(job["entry"], device)
    batch = to_batch(job["batch"] or {})
    if job.get("config"):
        from .models import scaled_subject

        subject = scaled_subject(job["config"], batch, report)
    else:
        subject = tiny_subject(batch, report)
    subject.model.to(device)
    subject.batch = to_device(subject.batch, device)
    return subject


def _failure(error: BaseException) -> dict[str, str]:
    """Return what was raised, with the last lines of where."""
    kind = "user_code"
    if "torch" in sys.modules:
        from .probe import is_out_of_memory

        kind = "memory" if is_out_of_memory(error) else kind
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).parent)
    users = [frame for frame in frames if not frame.filename.startswith(here)] or list(frames)
    where = [f"{user.filename}:{user.lineno} in {user.name}: {user.line or ''}" for user in users[-SHOWN_LINES:]]
    summary = traceback.format_exception_only(type(error), error)[-1].strip()
    return {"kind": kind, "message": summary[:1000], "where": "\n".join(where)[:4000]}
