"""The cases of `python -m benchmarks.gpu`, one test each: `pytest -m gpu -n 0` on a machine with a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from benchmarks.gpu import estimates, probes, recording, snapshots
from benchmarks.gpu.running import Clock, Outcome
from benchmarks.gpu.workloads import WORKLOADS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore"),
]
LONG = 600.0


def wrong(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.state in ("failed", "error")]


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_is_in_a_snapshot_that_torch_recorded_is_told_and_counted(name: str, tmp_path: Path) -> None:
    assert wrong(snapshots.run(Clock(LONG), tmp_path, [name], dry=False)) == []


@pytest.mark.parametrize("name", [one.name for one in estimates.CONFIGURATIONS])
def test_an_estimate_is_within_a_tenth_of_the_measured_peak(name: str, tmp_path: Path) -> None:
    assert wrong(estimates.run(Clock(LONG), tmp_path, [name], dry=False)) == []


def test_the_probe_judges_on_a_gpu_as_on_a_cpu_and_leaves_the_device_as_it_was() -> None:
    assert wrong(probes.run(Clock(LONG), dry=False)) == []


def test_a_recording_adds_little_time_and_never_waits_for_the_device(tmp_path: Path) -> None:
    assert wrong(recording.run(Clock(LONG), tmp_path, dry=False)) == []
