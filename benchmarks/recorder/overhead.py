"""What a recorded step costs beside a bare one: two models alike, one step of each in turn, in one process.

Each pair of steps gives the difference of their times by the wall and of their time on the core; what the recorder's
thread takes beside them is added to the latter. Memory is that of two processes, one of them with a recorder.
"""

from __future__ import annotations

import math
import multiprocessing
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.corpus.archive import OWN, RECORDED
from benchmarks.faults.figures import Rows
from benchmarks.faults.report import accuracy
from benchmarks.faults.sets import judged, runs_of
from mldebug_mcp.recorder import Recorder

TOKENS, VOCABULARY = 64, 256
WARM_UP = 10
MEMORY_STEPS = 120
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


SIZES = (Size(10, 64, 2, 8, 800), Size(100, 128, 4, 20, 100))


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


class Times(NamedTuple):
    """Seconds by the wall, and of this thread on its core."""

    wall: float
    core: float


class Loop:
    """A training loop, recorded or bare."""

    def __init__(self, size: Size, path: Path | None, device: str = "cpu") -> None:
        torch.manual_seed(0)
        self.model = Model(size).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4)
        self.recorder = Recorder(path).watch(self.model, self.optimizer) if path is not None else None

    def step(self, batch: Tensor) -> Times:
        """Make a step and return the time that it took, recording included."""
        began = Times(time.perf_counter(), time.thread_time())
        if self.recorder is None:
            self._train(batch)
        else:
            with self.recorder.step(batch):
                self.recorder.log(loss=self._train(batch))
        return Times(time.perf_counter() - began.wall, time.thread_time() - began.core)

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
    # not `getrusage`, which begins with the most that the parent process took
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return 1024 * int(found[1])


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
    pairs: list[dict[str, Times]] = []
    beside = 0.0
    for number in range(WARM_UP + size.steps):
        batch = torch.randint(0, VOCABULARY, (size.batch, TOKENS), generator=generator)
        kinds: list[tuple[str, Callable[[Tensor], Times]]] = [("bare", bare.step), ("recorded", recorded.step)]
        order.shuffle(kinds)
        pairs.append({name: step(batch) for name, step in kinds})
        if number == WARM_UP - 1:
            beside = time.process_time() - time.thread_time()
    beside = (time.process_time() - time.thread_time() - beside) / size.steps
    assert recorded.recorder is not None
    recorded.recorder.close()
    del pairs[:WARM_UP]
    wall, core = (sorted(one["bare"][at] for one in pairs)[size.steps // 2] for at in (0, 1))
    return {
        "step, by the wall": f"{1e3 * wall:.1f} ms",
        "overhead by the wall": _share([one["recorded"].wall - one["bare"].wall for one in pairs], wall),
        "step, on the core": f"{1e3 * core:.1f} ms",
        "overhead on the core": _share([one["recorded"].core - one["bare"].core for one in pairs], core),
        "beside the loop": f"{beside / core:+.2%}",
        "pairs": f"{size.steps}",
        "memory": f"{memory(size, folder) / 1e6:+.1f} MB",
        "bytes of a step": f"{recorded.recorder.path.stat().st_size / size.steps:.0f}",
    }


def _share(differences: list[float], step: float) -> str:
    """Return the median of differences as a share of a step, and between what the median of such a sample lies.

    Of 95 in a hundred samples, by the order of the values: their binomial ranks.
    """
    ones = sorted(differences)
    half = 0.98 * math.sqrt(len(ones))  # 1.96 standard deviations of the binomial rank of the median
    low, high = ones[max(0, int(len(ones) / 2 - half))], ones[min(len(ones) - 1, int(len(ones) / 2 + half))]
    return f"{statistics.median(ones) / step:+.2%} ({low / step:+.2%} to {high / step:+.2%})"


def overhead() -> Rows:
    """Return a row per size."""
    with tempfile.TemporaryDirectory() as folder:
        return [measure(size, Path(folder)) for size in SIZES]


def beside(processes: int = 2) -> Rows:
    """Diagnose both logs of the runs that were recorded, and return a row per measure."""
    sets = judged({name: runs_of(name) for name in (OWN, RECORDED)}, processes)
    recorded = {one.label.of: one for one in sets[RECORDED]}
    pairs = [(one, recorded[one.name]) for one in sets[OWN] if one.name in recorded]
    shown = [(bare, other) for bare, other in pairs if bare.label.cause == "healthy" or bare.label.shows]
    columns = {
        "bare": accuracy([bare for bare, _ in shown], {}),
        "recorded": accuracy([replace(other, label=bare.label) for bare, other in shown], {}),
    }
    parts = [part for part in columns["bare"][0] if part]
    return [
        {
            "": bare[""],
            **{f"{part}, {name}": row[part] for part in parts for name, row in (("bare", bare), ("recorded", other))},
        }
        for bare, other in zip(columns["bare"], columns["recorded"], strict=True)
    ]
