"""The worker's main function: set limits, build the subject, probe it, and write what was found, whatever happens."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .failure import KnownFailure
from .guard import guard
from .report import Report, claim_stdout

if TYPE_CHECKING:
    from .subject import Subject

FOR_THE_REST = 0.8
"""Share of the time limit after which training stops, so that the outcome can still be measured."""
SHOWN_LINES = 6
SMALL = 3_000_000
"""Parameters below which one thread is faster than several that wait for each other."""


def main(job_path: str, result_path: str) -> None:
    """Run the job in a file and write its result. Ends the process, so that no user thread keeps it alive."""
    begun = time.monotonic()
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    report = Report(result_path, claim_stdout())
    memory = job.get("memory_bytes") if job["device"] in ("auto", "cpu") else None
    guard(job["time_limit"], memory, Path(job_path).resolve().parent)
    failure = None
    try:
        _import_torch(report)
        run_job(job, report, begun)
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

    from .device import choose_device
    from .fitting import probe_what_fits
    from .probe import Probe

    device = choose_device(job["device"])
    report.measured["device"] = str(device)
    report.enter("build")

    def build(seed: int) -> Subject:
        torch.manual_seed(seed)
        return _build(job, report, device)

    subject = build(job["seed"])
    small = sum(one.numel() for one in subject.model.parameters()) < SMALL
    if job.get("threads") or small:
        torch.set_num_threads(job.get("threads") or 1)
    deadline = begun + FOR_THE_REST * job["time_limit"]
    probe_what_fits(lambda: Probe(subject, report, job, deadline, build), report)


def _build(job: dict[str, Any], report: Report, device: Any) -> Subject:
    from .device import DTYPES
    from .parameters import hidden_parameters

    begun = time.monotonic()
    subject = _made(job, report, device)
    subject.build_seconds = time.monotonic() - begun
    subject.dtype = DTYPES[job["dtype"]]
    subject.hidden = hidden_parameters(subject.model)
    for _, one in subject.hidden:
        # `model.to` does not find them; the fault to tell is that no optimizer does, not where they lie.
        one.data = one.data.to(subject.device)
    return subject


def _made(job: dict[str, Any], report: Report, device: Any) -> Subject:
    from .batches import to_batch
    from .entry import load_entry
    from .tiny import tiny_subject
    from .tree import to_device

    if job.get("entry"):
        return load_entry(job["entry"], device)
    batch = to_batch(job["batch"] or {})
    if job.get("config"):
        from .scaled import scaled_subject

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
        from .device import is_out_of_memory

        kind = "memory" if is_out_of_memory(error) else kind
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).parent)
    users = [one for one in frames if not one.filename.startswith(here)] or list(frames)
    where = [f"{one.filename}:{one.lineno} in {one.name}: {one.line or ''}" for one in users[-SHOWN_LINES:]]
    summary = traceback.format_exception_only(type(error), error)[-1].strip()
    return {"kind": kind, "message": summary[:1000], "where": "\n".join(where)[:4000]}
