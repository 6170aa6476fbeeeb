"""What the loop asks of a task, and how batches come from it."""

from __future__ import annotations

import queue
import time
from typing import Any, Protocol

from torch import Tensor, nn

from benchmarks.loops.dialogue.core import Knobs


class Task(Protocol):
    """What the loop asks of a task."""

    model: nn.Module
    epoch_len: int

    def batch(self, index: int, size: int) -> Any:  # noqa: ANN401 - each task has batches of its own
        """Batch number `index` of `size` rows."""

    def loss(self, batch: Any) -> tuple[Tensor, dict[str, float]]:  # noqa: ANN401 - what `batch` gave
        """The loss of a batch, and what is logged beside it."""

    def evaluate(self) -> dict[str, float]:
        """What an evaluation on held-out rows gives."""


class Loader:
    """Batches, with the delays, replays and stalls of a real loader."""

    def __init__(self, task: Task, k: Knobs) -> None:
        self.task, self.k, self.offset = task, k, 0
        self.waited = 0.0

    def get(self, micro: int, step: int) -> Any:  # noqa: ANN401 - each task has batches of its own
        """The next micro-batch; a stalled loader raises `KeyboardInterrupt` after a while."""
        start = time.perf_counter()
        if self.k.hang_at and step >= self.k.hang_at:
            try:
                queue.Queue[None]().get(timeout=0.6)
            except queue.Empty:
                raise KeyboardInterrupt from None
        if self.k.loader_ms and step % self.k.loader_every == 0:
            time.sleep(self.k.loader_ms / 1000)
        batch = self.task.batch(micro - self.offset, self.k.batch)
        self.waited += time.perf_counter() - start
        return batch
