"""How a sampler deals rows out: which places of a pass's order make a micro-batch, and which micro-batches a step.

The arithmetic is that of `torch.utils.data` (`BatchSampler`, `DistributedSampler`) and of Accelerate's
`BatchSamplerShard` and `DataLoaderDispatcher`; the tests hold it to theirs, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mldebug_mcp.rows.shuffle import Ints

Order = Literal["seedable", "generator", "loader_generator", "sequential"]
"""What orders a pass: a shuffle with a seed that the number of the pass is added to (Accelerate's
`SeedableRandomSampler`, `DistributedSampler`); one by a seeded generator of the sampler's own, which goes on from pass
to pass; the same by the generator of the `DataLoader`, which draws a seed from it before each pass; none."""
Sharing = Literal["alone", "distributed", "shards", "dispatch"]
"""How ranks divide a pass: there is one; each takes every n-th row (`DistributedSampler`); each takes every n-th batch
(`BatchSamplerShard`); the first reads for all (`DataLoaderDispatcher`)."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch of a step.

    Args:
        epoch: The pass over the data, from 0.
        index: Its number in the pass, from 0.
        rank: The rank that it is fed to.
        places: Where its rows stand in the order of the pass.
    """

    epoch: int
    index: int
    rank: int
    places: Ints


@dataclass(frozen=True, slots=True)
class Plan:
    """How rows are dealt out.

    Args:
        rows: Rows of the data, as the sampler counts them.
        batch_size: Rows of a batch as its sampler makes it: of one rank, or of all where `split` divides it.
        order: What orders a pass.
        seed: What it is seeded with.
        sharing: How ranks divide a pass.
        world: How many ranks there are.
        accumulation: Micro-batches of a step.
        drop_last: Whether the last, smaller batch is left out.
        drop_rows: Whether `DistributedSampler` leaves out what does not divide evenly, instead of repeating rows.
        even: Whether Accelerate repeats the first rows until each rank has as many.
        split: Whether Accelerate splits each batch among the ranks, instead of giving each its own.
        carries: Whether a step goes on over the end of a pass; else the last step of a pass may be smaller.
        resumed_at: Steps at which training went on at the beginning of the pass it was in, without leaving out the
            batches it had seen.
    """

    rows: int
    batch_size: int
    order: Order = "sequential"
    seed: int = 0
    sharing: Sharing = "alone"
    world: int = 1
    accumulation: int = 1
    drop_last: bool = False
    drop_rows: bool = False
    even: bool = True
    split: bool = False
    carries: bool = False
    resumed_at: tuple[int, ...] = ()

    @property
    def batches(self) -> int:
        """Micro-batches that a rank gets in a pass."""
        if self.sharing == "distributed":
            return self._in_batches(self._rows_of_rank)
        if self.sharing == "alone" or self.split:
            return self._in_batches(self.rows)
        whole = self._in_batches(self.rows)
        return whole // self.world if self.drop_last else -(-whole // self.world)

    @property
    def steps(self) -> int:
        """Steps of a pass, the smaller last one included."""
        return -(-self.batches // self.accumulation)

    @property
    def is_even(self) -> bool:
        """Whether every rank gets the same number of batches."""
        if self.sharing != "shards" or self.even or self.drop_last:
            return True
        last = self._in_group(self.batches - 1)
        return last.size > (self.world - 1) * self._share

    def passed_at(self, step: int) -> float:
        """Return the passes that are over after a step, as a Trainer logs them in `epoch`."""
        epoch, index = list(self._indices(step))[-1]
        return epoch + (index + 1) / self.batches

    def step(self, number: int) -> list[MicroBatch]:
        """Return the micro-batches of a step, counted from 1, in the order in which they are fed, rank by rank."""
        return [
            MicroBatch(epoch, index, rank, places)
            for epoch, index in self._indices(number)
            for rank, places in enumerate(self._dealt(index))
        ]

    def step_with(self, epoch: int, place: int) -> int | None:
        """Return the step in which a place of a pass's order is fed first; None where it is left out.

        Passes follow each other in full: nothing is resumed from the beginning of a pass.
        """
        turn = place // self.world if self.sharing == "distributed" else place
        index = turn // (self.batch_size if self.sharing == "distributed" else self._share * self.world)
        if index >= self.batches:
            return None
        if self.carries:
            return (epoch * self.batches + index) // self.accumulation + 1
        return epoch * self.steps + index // self.accumulation + 1

    def _indices(self, number: int) -> Iterator[tuple[int, int]]:
        """Yield the pass and the number in it of the micro-batches of a step."""
        if self.carries:
            for micro in range((number - 1) * self.accumulation, number * self.accumulation):
                yield divmod(micro, self.batches)
            return
        resumed = max((one for one in self.resumed_at if one < number), default=0)
        epoch, update = divmod(number - resumed - 1, self.steps)
        epoch += resumed // self.steps
        for index in range(update * self.accumulation, min((update + 1) * self.accumulation, self.batches)):
            yield epoch, index

    def _dealt(self, index: int) -> Iterator[Ints]:
        """Yield the places of a micro-batch, rank by rank."""
        if self.sharing == "distributed":
            for rank in range(self.world):
                last = min((index + 1) * self.batch_size, self._rows_of_rank)
                turns = np.arange(index * self.batch_size, last)
                yield (turns * self.world + rank) % self.rows
            return
        group = self._in_group(index)
        for rank in range(self.world):
            share = self._share_of(group)
            yield self._evened(group)[rank * share : (rank + 1) * share]

    def _in_group(self, index: int) -> Ints:
        """Return the places that the ranks divide among them at a time."""
        size = self._share * self.world
        return np.arange(index * size, min((index + 1) * size, self.rows))

    @property
    def _share(self) -> int:
        """Rows of a full micro-batch of a rank."""
        return self.batch_size // self.world if self.split else self.batch_size

    def _share_of(self, group: Ints) -> int:
        """Return how many rows of a group a rank gets."""
        return -(-group.size // self.world) if self.sharing == "dispatch" else self._share

    def _evened(self, group: Ints) -> Ints:
        """Return a group with the first rows of the pass repeated at its end, where it is not full."""
        full = self._share * self.world
        if self.sharing == "alone" or group.size == full:
            return group
        if self.sharing == "dispatch":
            more = np.arange(min(self.world, self.rows)) if group.size % self.world else np.arange(0)
            return np.concatenate([group, more])
        return np.concatenate([group, np.arange(full - group.size) % min(full, self.rows)]) if self.even else group

    def _in_batches(self, rows: int) -> int:
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    @property
    def _rows_of_rank(self) -> int:
        """Rows that `DistributedSampler` gives a rank in a pass."""
        return self.rows // self.world if self.drop_rows else -(-self.rows // self.world)
