"""What a metric is called in a log makes no difference to the symptoms that look for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.checks import examine
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import Finding, State

RECORDS = 60


def finding(tmp_path: Path, symptom: str, header: str, *columns: Floats) -> Finding:
    path = tmp_path / "log.csv"
    rows = (",".join(f"{value:.6g}" for value in row) for row in zip(*columns, strict=True))
    lines = [f"{10 * at},{3 * 0.98**at:.4f},{row}" for at, row in enumerate(rows, 1)]
    path.write_text("\n".join([f"step,loss,{header}", *lines]) + "\n", "utf-8")
    return next(one for one in examine(read_run(path))[0] if one.symptom == symptom)


@pytest.mark.parametrize("name", ["perf/rss_mb", "host mem (MB)", "cpu_mem", "system/proc.memory.rssMB", "ram_gb"])
def test_memory_of_the_host_that_climbs_is_seen(name: str, tmp_path: Path) -> None:
    found = finding(tmp_path, "memory_grows", name, np.linspace(562.0, 2183.0, RECORDS))
    assert found.state is State.PRESENT


@pytest.mark.parametrize("name", ["replay_memory", "memory_length", "memory_limit_mb", "free_memory_mb"])
def test_what_only_sounds_like_memory_is_not(name: str, tmp_path: Path) -> None:
    found = finding(tmp_path, "memory_grows", name, np.linspace(562.0, 2183.0, RECORDS))
    assert found.state is State.UNKNOWN


@pytest.mark.parametrize(
    ("wait", "waited", "step", "taken"),
    [
        ("perf/data_time_s", 0.9, "perf/step_time_s", 1.0),
        ("fetch_ms", 900.0, "step_ms", 1000.0),
        ("t_data", 0.9, "iter_time", 1.0),
        ("Data Time (ms)", 900.0, "Batch Time (s)", 1.0),
        ("timing.data.mean", 0.9, "timing.step.mean", 1.0),
    ],
)
def test_a_loader_that_takes_nine_tenths_of_each_step_is_seen(
    wait: str, waited: float, step: str, taken: float, tmp_path: Path
) -> None:
    found = finding(tmp_path, "data_wait_high", f"{wait},{step}", np.full(RECORDS, waited), np.full(RECORDS, taken))
    assert found.state is State.PRESENT
    assert found.values["share"] == pytest.approx(0.9)
