"""The probe on pipelines with one known fault each, and on healthy ones, all in this process to save time."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from mldebug_mcp.diagnose.probe import interpret
from mldebug_mcp.models import ProbeResult
from mldebug_mcp.probe import Job, Measured
from mldebug_mcp.probe.host import RawProbe
from mldebug_mcp.probe.measured import Failure
from mldebug_mcp.probe.worker.failure import KnownFailure
from mldebug_mcp.probe.worker.job import run_job
from mldebug_mcp.probe.worker.report import Report

from .pipelines import BROKEN, HEALTHY

PIPELINES = Path(__file__).parent / "pipelines.py"


def probe_here(tmp_path: Path, **settings: Any) -> ProbeResult:
    """Run a probe as the worker does, without the process around it."""
    job = Job(device="cpu", threads=1, **settings).model_dump()
    channel = os.open(os.devnull, os.O_WRONLY)
    report, failure = Report(tmp_path / "result.json", channel), None
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


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True:UserWarning")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pipeline_gets_its_verdict_and_its_cause(name: str, tmp_path: Path) -> None:
    verdict, cause = BROKEN[name]

    result = probe_here(tmp_path, entry=f"{PIPELINES}:{name}")

    assert (result.verdict, result.causes[0].cause) == (verdict, cause), result.summary


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True:UserWarning")
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_pipeline_is_memorised_and_called_healthy(name: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{PIPELINES}:{name}")

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary
    assert not [one.summary for one in result.findings if one.state == "present"]
