from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "gpu_idle"


@pytest.mark.parametrize(
    "name", ["gpu_utilization", "gpu_util", "GPU Utilization (%)", "system/gpu.0.gpu", "gpu0_util", "perf/gpu_util_pct"]
)
def test_a_gpu_that_waits_most_of_the_time_is_seen(name: str) -> None:
    finding = seen(NAME, run_of({name: noisy(np.full(60, 22.0), 4.0)}))
    assert finding.state is State.PRESENT
    assert 0.15 < finding.values["share"] < 0.3


def test_a_share_of_one_is_no_per_cent() -> None:
    assert state(NAME, run_of(gpu_util=noisy(np.full(60, 0.22), 0.04))) is State.PRESENT


def test_a_busy_gpu_that_pauses_for_evaluation_is_absent() -> None:
    busy = noisy(np.full(100, 96.0), 1.0)
    busy[::10] = 5.0
    assert state(NAME, run_of(gpu_util=busy)) is State.ABSENT


def test_of_several_gpus_the_busiest_counts() -> None:
    shares = {"system/gpu.0.gpu": np.full(40, 97.0), "system/gpu.1.gpu": np.zeros(40)}
    assert state(NAME, run_of(shares)) is State.ABSENT


def test_memory_is_no_utilisation() -> None:
    assert state(NAME, run_of({"gpu_memory": np.full(60, 22.0)})) is State.UNKNOWN
