"""A probe without a process of its own, to save time."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from mldebug_mcp.judge.probe import interpret
from mldebug_mcp.models import ProbeResult
from mldebug_mcp.probe import Job, Measured
from mldebug_mcp.probe.host import RawProbe
from mldebug_mcp.probe.measured import Failure
from mldebug_mcp.probe.worker.job import run_job
from mldebug_mcp.probe.worker.report import KnownFailure, Report


def probe_here(folder: Path, device: str = "cpu", **settings: Any) -> ProbeResult:
    """Run a probe as the worker does, without the process around it."""
    job = Job(device=device, threads=1, **settings).model_dump()
    channel = os.open(os.devnull, os.O_WRONLY)
    report, failure = Report(folder / "result.json", channel), None
    try:
        run_job(job, report, time.monotonic())
    except KnownFailure as known:
        failure = Failure(kind=known.kind, message=str(known))
        if known.kind == "vocabulary":
            report.measured["vocabulary"] = str(known)
    finally:
        os.close(channel)
    measured = Measured.model_validate(json.loads(json.dumps(report.measured)))
    return interpret(RawProbe(measured=measured, failure=failure, notes=report.notes))
