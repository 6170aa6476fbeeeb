"""What `estimate` says of eight trainings beside the peak that torch counts."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu.configurations import CONFIGURATIONS, Configuration, train
from benchmarks.gpu.running import Clock, Outcome, Told, run_case
from mldebug_mcp.memory.estimate import estimate_memory
from mldebug_mcp.memory.formulas import WORKSPACE

PART = "estimates"
ALLOWED = 0.10
"""Of the measured peak, by which an estimate may be off."""


def run(clock: Clock, folder: Path, names: list[str] | None = None, *, dry: bool) -> Iterator[Outcome]:
    """Train each configuration for a few steps and compare; without a GPU the allocations are counted."""
    measure = _simulated_peak if dry else measured_peak
    for one in CONFIGURATIONS:
        if names is None or one.name in names:
            yield run_case(PART, one.name, clock, partial(_compared, one, folder, measure))


def _compared(configuration: Configuration, folder: Path, measure: Callable[[Configuration], int]) -> Told:
    file = folder / f"{configuration.name}.config.json"
    file.write_text(json.dumps(dict(configuration.model)), encoding="utf-8")
    estimate = estimate_memory(file, **configuration.settings)
    peak = measure(configuration)
    error = estimate.total_bytes / peak - 1
    figures: dict[str, str | int] = {
        "estimate_mib": round(estimate.total_bytes / 2**20),
        "measured_mib": round(peak / 2**20),
        "error": f"{error:+.1%}",
    }
    return Told(abs(error) <= ALLOWED, figures, "" if abs(error) <= ALLOWED else f"off by more than {ALLOWED:.0%}")


def measured_peak(configuration: Configuration) -> int:
    """Return the most bytes that tensors held on the GPU in a training, over what they held before."""
    device = torch.device("cuda", 0)
    # The statistics exist only once CUDA is initialised, which the first tensor does.
    torch.zeros(1, device=device)
    gc.collect()
    # The estimate counts what cuBLAS takes, so that each training begins without it.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    train(configuration, device)
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _simulated_peak(configuration: Configuration) -> int:
    from benchmarks.gpu.simulated import peak_of

    # No cuBLAS is at work, so that what it takes is added.
    return peak_of(lambda device: train(configuration, device)) + WORKSPACE
