"""What a recorded step costs beside a bare one: two models alike, one step of each in turn, in one process.

Memory is that of two processes of their own, one of them with a recorder.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.faults.figures import Rows
from mldebug_mcp.recorder import Recorder

TOKENS, VOCABULARY = 64, 256
WARM_UP = 10
MEMORY_STEPS = 300
"""Steps after which the memory of a process is read: the looks into the model and some flushes are behind it."""


@dataclass(frozen=True, slots=True)
class Size:
    """A transformer whose step takes about so long on one core.

    Args:
        milliseconds: About how long a step takes.
        width: Of the model.
        layers: Of the model.
        batch: Rows of a batch.
        steps: Steps of each kind that are timed.
    """

    milliseconds: int
    width: int
    layers: int
    batch: int
    steps: int


SIZES = (Size(10, 64, 2, 8, 1000), Size(100, 128, 4, 20, 150))


class Model(nn.Module):
    """A small language model."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, size.width)
        layer = nn.TransformerEncoderLayer(size.width, 4, 4 * size.width, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, size.layers)
        self.head = nn.Linear(size.width, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of (rows, tokens)."""
        logits: Tensor = self.head(self.layers(self.embedding(tokens)))
        return logits


class Loop:
    """A training loop, recorded or bare."""

    def __init__(self, size: Size, path: Path | None, device: str = "cpu") -> None:
        torch.manual_seed(0)
        self.model = Model(size).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4)
        self.recorder = Recorder(path).watch(self.model, self.optimizer) if path is not None else None

    def step(self, batch: Tensor) -> float:
        """Make a step and return the seconds of this thread that it took, recording included."""
        began = time.thread_time()
        if self.recorder is None:
            self._train(batch)
        else:
            with self.recorder.step(batch):
                self.recorder.log(loss=self._train(batch))
        return time.thread_time() - began

    def _train(self, batch: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(self.model(batch).flatten(0, 1), batch.flatten())
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def peak(size: Size, path: Path | None) -> int:
    """Return the most memory in bytes that this process took so far, after some steps."""
    torch.set_num_threads(1)
    loop = Loop(size, path)
    for _ in range(MEMORY_STEPS):
        loop.step(torch.randint(0, VOCABULARY, (size.batch, TOKENS)))
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(size: Size, folder: Path) -> float:
    """Return the bytes that a recorder adds to the peak of a process."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        bare, recorded = (pool.apply(peak, (size, path)) for path in (None, folder / "memory"))
    return recorded - bare


def measure(size: Size, folder: Path) -> dict[str, str]:
    """Return the time of a step of each kind, in turn and in an order that chance decides."""
    torch.set_num_threads(1)
    bare, recorded = Loop(size, None), Loop(size, folder / str(size.milliseconds))
    generator = torch.Generator().manual_seed(0)
    order = random.Random(0)  # noqa: S311 - no secret
    times: dict[str, list[float]] = {"bare": [], "recorded": []}
    for number in range(WARM_UP + size.steps):
        batch = torch.randint(0, VOCABULARY, (size.batch, TOKENS), generator=generator)
        pair: list[tuple[str, Callable[[Tensor], float]]] = [("bare", bare.step), ("recorded", recorded.step)]
        order.shuffle(pair)
        for name, step in pair:
            took = step(batch)
            if number >= WARM_UP:
                times[name].append(took)
    assert recorded.recorder is not None
    recorded.recorder.close()
    mean = {name: statistics.fmean(_without_slowest(ones)) for name, ones in times.items()}
    middle = {name: statistics.median(ones) for name, ones in times.items()}
    return {
        "step": f"{1e3 * middle['bare']:.1f} ms",
        "recorded": f"{1e3 * middle['recorded']:.1f} ms",
        "overhead of a median step": f"{middle['recorded'] / middle['bare'] - 1:+.2%}",
        "overhead of all steps": f"{mean['recorded'] / mean['bare'] - 1:+.2%}",
        "steps": f"{size.steps}",
        "memory": f"{memory(size, folder) / 1e6:+.1f} MB",
        "bytes of a step": f"{recorded.recorder.path.stat().st_size / size.steps:.0f}",
    }


def _without_slowest(times: list[float]) -> list[float]:
    """Return times without the slowest hundredth, in which something else had the core."""
    return sorted(times)[: max(1, round(0.99 * len(times)))]


def overhead() -> Rows:
    """Return a row per size."""
    with tempfile.TemporaryDirectory() as folder:
        return [measure(size, Path(folder)) for size in SIZES]
