"""What else runs on the device: pipelines for the probe that take memory of it, and another process that holds numbers.

`python -m benchmarks.gpu.entries DEVICE` is that process: it says, whenever it is asked, whether its numbers are whole.
"""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

GIB = 1 << 30
ROWS, FITTING = 32, 16
LIMIT = 3 * GIB
"""Bytes that the process may take of a GPU: enough for half of the rows."""
_HELD: list[Tensor] = []


def too_large() -> SimpleNamespace:
    """Return a healthy pipeline, half of whose rows fit into the process's share of the device."""
    if torch.cuda.is_available():
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, LIMIT / whole))

    def loss(model: nn.Module, batch: Any) -> Tensor:  # noqa: ANN401 - the batch below
        inputs, labels = batch
        if not inputs.is_cuda and len(inputs) > FITTING:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 GiB")
        held = torch.empty(len(inputs) * GIB // 8, dtype=torch.uint8, device=inputs.device)
        value = functional.cross_entropy(model(inputs), labels)
        del held
        return value

    return _classifier(loss)


def slow() -> SimpleNamespace:
    """Return a healthy pipeline that holds a GiB of the device and takes its time."""

    def loss(model: nn.Module, batch: Any) -> Tensor:  # noqa: ANN401 - the batch below
        inputs, labels = batch
        if not _HELD:
            _HELD.append(torch.empty(GIB, dtype=torch.uint8, device=inputs.device))
        time.sleep(0.02)
        return functional.cross_entropy(model(inputs), labels)

    return _classifier(loss)


def _classifier(loss: Any) -> SimpleNamespace:  # noqa: ANN401 - a function of model and batch
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(ROWS, 20, generator=generator)
    return SimpleNamespace(model=model, batch=(inputs, torch.arange(ROWS) % 10), loss=loss)


COUNT = 32 << 20


def main(device: str) -> None:
    """Hold numbers, and answer each line of standard input."""
    torch.set_num_threads(1)
    numbers = torch.arange(COUNT, device=device)
    whole = int(numbers.sum())
    print("ready", flush=True)
    for _ in sys.stdin:
        told = int((numbers + 0).sum()) == whole == COUNT * (COUNT - 1) // 2
        print("whole" if told else "spoilt", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
