"""What every supervised task offers to the training loop."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.language import text
from benchmarks.loops.language.settings import Settings

Batch = tuple[Tensor, ...]
Record = dict[str, float]


class Task:
    """Samples by index, a model, a loss and an evaluation."""

    name = "task"
    model: nn.Module
    tokens_per_sample = 1

    def __init__(self, s: Settings, *, shuffle: bool = True) -> None:
        self.s, self.shuffle = s, shuffle

    @property
    def epoch_batches(self) -> int:
        """Micro-batches in an epoch; 0 where the data is a stream."""
        return self.s.train_samples // self.s.batch_size

    def rows(self, index: int) -> np.ndarray:
        """The samples of the micro-batch with this index."""
        size = self.s.batch_size
        if not self.epoch_batches:
            return text.rng(self.s.seed, index).integers(0, 2**31, size)
        epoch, place = divmod(index, self.epoch_batches)
        visit = text.order(self.s.train_samples, epoch, self.s.seed, shuffle=self.shuffle)
        return visit[place * size : (place + 1) * size]

    def batch(self, index: int) -> Batch:
        """The micro-batch with this index."""
        raise NotImplementedError

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """The loss of a batch and what else is logged of it."""
        raise NotImplementedError

    def evaluate(self) -> Record:
        """Metrics of the held-out data; their names begin without a prefix."""
        raise NotImplementedError

    def spoil(self, batch: Batch) -> Batch:
        """The batch after its ids were replaced by random ones."""
        ids = batch[0]
        noise = torch.randint(0, int(ids.max()) + 1, ids.shape, generator=torch.Generator().manual_seed(5))
        return (noise, *batch[1:])


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy in nats over the labels that are not -100."""
    return functional.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), ignore_index=-100)
