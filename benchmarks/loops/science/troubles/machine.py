"""Faults of the machine: time, memory, ranks."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.loops.science.task import Rows
from benchmarks.loops.science.trainer import Trainer, Trouble

PAGE_MIB = 4096 / 2**20


def resident_mib() -> float:
    """Return the memory that this process holds, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_MIB


@dataclass
class SlowLoader(Trouble):
    """Reading a batch takes longer than training on it."""

    seconds: float = 0.02

    def batch(self, _trainer: Trainer, rows: Rows) -> Rows:
        """Wait for the disk."""
        time.sleep(self.seconds)
        return rows


@dataclass
class MemoryMeter(Trouble):
    """No fault: the process's memory is logged."""

    def stepped(self, trainer: Trainer) -> None:
        """Measure it."""
        trainer.extra["rss_mb"] = round(resident_mib(), 1)


@dataclass
class Leak(MemoryMeter):
    """Each step keeps its activations alive."""

    mib: float = 1.0
    kept: list[torch.Tensor] = field(default_factory=list)

    def stepped(self, trainer: Trainer) -> None:
        """Keep some and measure."""
        self.kept.append(torch.ones(int(self.mib * 2**18)))
        super().stepped(trainer)


@dataclass
class HugeBatch(Trouble):
    """One batch needs a matrix of all pairs that no machine has the memory for."""

    at: int
    side: int = 6_000_000

    def batch(self, trainer: Trainer, rows: Rows) -> Rows:
        """Allocate it at that step."""
        if trainer.step == self.at:
            torch.empty(self.side, self.side)
        return rows


@dataclass
class LostWorker(Trouble):
    """The thread that fills the queue of batches has died: the loop waits, complains, and gives up."""

    at: int
    seconds: float = 0.7
    tries: int = 3

    def batch(self, trainer: Trainer, rows: Rows) -> Rows:
        """Wait for a queue that stays empty."""
        if trainer.step < self.at:
            return rows
        empty: queue.Queue[Rows] = queue.Queue()
        for trial in range(1, self.tries + 1):
            try:
                return empty.get(timeout=self.seconds)
            except queue.Empty:
                waited = f"waited {trial * self.seconds:.1f} s for worker 0 (no progress since step {self.at})"
                trainer.journal.note(trainer.step, trainer.epoch, f"WARNING prefetch queue empty, {waited}")
        raise TimeoutError(f"prefetch worker 0 did not deliver a batch within {self.tries * self.seconds:.1f} s")


@dataclass
class BrokenRank(Trouble):
    """From a step on one rank's buffer holds flipped bits."""

    rank: int
    since: int
    key: str = "x"

    def shard(self, trainer: Trainer, index: int, rows: Rows) -> Rows:
        """Set the exponent's highest bit of one value in each row of that rank's batch."""
        if index != self.rank or trainer.step < self.since:
            return rows
        values = rows[self.key].clone()
        flat = values.view(len(values), -1)
        flat[:, 0] = (flat[:, 0].contiguous().view(torch.int32) | 0x7F800000).view(torch.float32)
        return rows | {self.key: values}


@dataclass
class Straggler(Trouble):
    """One rank computes ever slower from a step on, and all wait for it."""

    rank: int
    since: int
    seconds: float = 0.02
    began: float = 0.0

    def shard(self, trainer: Trainer, index: int, rows: Rows) -> Rows:
        """Slow that rank down, and tell how long each rank took since the one before."""
        now = time.perf_counter()
        if index:
            trainer.extra[f"rank{index - 1}_time"] = now - self.began
        if index == self.rank and trainer.step >= self.since:
            time.sleep(self.seconds)
        self.began = now
        return rows

    def gradients(self, trainer: Trainer) -> None:
        """Tell how long the last rank took."""
        last = trainer.recipe.world_size - 1
        trainer.extra[f"rank{last}_time"] = time.perf_counter() - self.began


@dataclass
class GrowingHistory(Trouble):
    """Each step computes statistics over all that was seen since the start."""

    work: int = 4
    seen: list[torch.Tensor] = field(default_factory=list)

    def stepped(self, trainer: Trainer) -> None:
        """Sort the whole history anew."""
        self.seen.append(torch.rand(self.work * 100))
        trainer.extra["loss_p95"] = (
            float(torch.cat(self.seen).quantile(0.95)) if len(self.seen) < 40 else self._sorted()
        )

    def _sorted(self) -> float:
        history = torch.cat(self.seen)
        return float(history.sort().values[int(0.95 * len(history))])
