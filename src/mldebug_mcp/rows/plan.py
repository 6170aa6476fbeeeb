"""How a sampler deals out rows, and what a recording holds of it.

The order of a pass is shuffled as PyTorch does it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from mldebug_mcp.core.access import entries, is_file, is_folder, open_input, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.limits import checkpoint, unhurried
from mldebug_mcp.core.text import shorten

# PyTorch's shuffling on the processor, in numpy: the same numbers from the same seed, so that torch is not needed.
#
# `torch.Generator` is MT19937 seeded with 32 bits, and `torch.randperm` a Fisher-Yates shuffle from the front
# (https://github.com/pytorch/pytorch, aten/src/ATen/native/TensorFactories.cpp, `randperm_cpu`).

Ints = npt.NDArray[np.int64]

SHUFFLE_MOST_ROWS = 10_000_000
"""Rows that are shuffled: some ten seconds' work, and far below the number from which torch draws 64 bits each."""


class Generator:
    """The numbers of a `torch.Generator` on the processor.

    Of the seed 32 bits count, as in torch.
    """

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.RandomState(seed & 0xFFFFFFFF)

    def drawn(self, count: int) -> Ints:
        """Return the next numbers of 32 bits."""
        return self._numbers.randint(0, 2**32, count, dtype=np.uint32).astype(np.int64)

    def shuffled(self, rows: int, first: int | None = None) -> Ints:
        """Return the first of `torch.randperm(rows)`, by default all of it; the last call, where it is not all."""
        wanted = rows if first is None else min(first, rows)
        swaps = min(wanted, rows - 1)
        with unhurried():  # bounded by MOST_ROWS, whatever a file says
            partners = np.arange(swaps) + self.drawn(swaps) % np.arange(rows, rows - swaps, -1)
            order = list(range(rows))
            for place, partner in enumerate(partners.tolist()):
                order[place], order[partner] = order[partner], order[place]
            return np.array(order[:wanted], np.int64)


# How a sampler deals rows out: which places of a pass's order make a micro-batch, and which micro-batches a step.
#
# The arithmetic is that of `torch.utils.data` (`BatchSampler`, `DistributedSampler`) and of Accelerate's
# `BatchSamplerShard` and `DataLoaderDispatcher`; the tests hold it to theirs, row by row.

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
        resumed = max((step for step in self.resumed_at if step < number), default=0)
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


# The order of the rows in a pass over the data.

NUMBERS_OF_A_SEED = 2
"""Numbers of 32 bits that a `DataLoader` takes from its generator before each pass, for the seeds of its workers."""
MIN_ORDER_ROWS = 1 << 18
"""Rows of an order that are made at least."""
MOST_DRAWN = 500_000_000
"""Numbers that are drawn to get to a pass: some seconds' work."""


@dataclass(slots=True)
class Orders:
    """The orders of the passes of a plan, each made once."""

    plan: Plan
    _made: dict[int, Ints] = field(default_factory=dict)

    def of(self, epoch: int) -> Ints:
        """Return the rows in the order of a pass, shape (rows,); raises InputError if that is too much work."""
        return self._up_to(self.plan.rows, epoch)

    def places_of(self, epoch: int, rows: Ints) -> list[int]:
        """Return the places of some rows in the order of a pass, sorted; raises InputError if that is too much work."""
        places = np.unique(rows) if self.plan.order == "sequential" else np.flatnonzero(np.isin(self.of(epoch), rows))
        return [int(place) for place in places]

    def rows_at(self, epoch: int, places: Ints) -> list[int]:
        """Return the rows at some places of the order of a pass; raises InputError if that is too much work."""
        if self.plan.order == "sequential":  # of a pass of any length nothing is made
            return [int(place) for place in places]
        last = int(places.max(initial=0))
        order: list[int] = self._up_to(min(self.plan.rows, (last // MIN_ORDER_ROWS + 1) * MIN_ORDER_ROWS), epoch)[
            places
        ].tolist()
        return order

    def _up_to(self, count: int, epoch: int) -> Ints:
        """Return the order of a pass up to some place: the beginning of a long one is made far sooner than all."""
        if epoch not in self._made or len(self._made[epoch]) < count:
            self._made[epoch] = self._order(epoch, count)
        return self._made[epoch]

    def _order(self, epoch: int, count: int) -> Ints:
        plan = self.plan
        if plan.order == "sequential":
            return np.arange(count)
        if plan.order == "seedable":
            return Generator(plan.seed + epoch).shuffled(plan.rows, count)
        before = NUMBERS_OF_A_SEED if plan.order == "loader_generator" else 0
        # At the end of a pass RandomSampler shuffles once more, and yields nothing of it.
        left = before + epoch * (before + 2 * (plan.rows - 1))
        if left > MOST_DRAWN:
            raise InputError(f"the shuffle of pass {epoch:,} is too far on to be drawn again; name an earlier step")
        generator = Generator(plan.seed)
        while left > 0:
            left -= len(generator.drawn(min(left, 1 << 22)))
        return generator.shuffled(plan.rows, count)


# What a recording tells of the rows of batches: JSON lines, one file for each rank, with its rotated parts beside it.
#
# Heads `{"recorder": 1, "rows_kind": "index" or "hash", "data_length": N, "sampler": {…}}` tell what is known; one with
# a `time` that is not `continued` is a start of the recorder. A record may carry `"step": n, "rows": [ids…]`. A later
# start replaces what an earlier one told of the same step.

RowId = int | str
MAX_LINE = 4 * 1024 * 1024
MAX_FILES = 512
"""Files of ranks, and rotated parts of them."""
RECORDING_MOST_ROWS = 4096
"""Rows of a step that a recorder keeps, of one rank; a step with as many may have had more."""
_RECORDING_HEAD = b'{"recorder"'
_NAME = regex(r".*\.jsonl(?:\.(?P<part>[1-9]\d{0,2}))?")
_RANK_IN_NAME = regex(r"rank[_-]?(\d{1,6})")
_KEY = regex(r"[0-9a-f]{16}")


@dataclass(slots=True)
class Recording:
    """What a recording holds on some steps.

    Args:
        kind: "index": ids are numbers of rows in the data set; "hash": keys of the rows' tokens.
        head: What the heads say, later ones over earlier ones.
        ranks: The ranks that recorded.
        fed: Rows by step and rank, in the order in which they were fed.
        steps: How many steps have their rows in the recording, and the first and last of them.
        broken: Lines that could not be used.
    """

    kind: str = "index"
    head: dict[str, object] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    fed: dict[int, dict[int, list[RowId]]] = field(default_factory=dict)
    steps: int = 0
    first: int | None = None
    last: int | None = None
    broken: int = 0

    @property
    def sampler(self) -> Mapping[str, object]:
        """What the head says of the sampler."""
        sampler = self.head.get("sampler")
        return sampler if isinstance(sampler, dict) else {}


ARGUMENTS = "training_args.bin"
"""What the Trainer keeps its arguments in, from which rows can be drawn again."""
MAX_CHECKPOINTS = 1000
"""Checkpoints that are looked into, the newest ones. Chosen: more are hardly kept."""


def trainer_folder(place: Path) -> Path | None:
    """Return the folder with the arguments of a Trainer: that of the log, above it, or of its newest checkpoint."""
    folder = place if is_folder(place) else place.parent
    places = [folder, *checkpoint_folders(folder)]
    if folder.name.startswith("checkpoint-"):
        places.append(folder.parent)
    return next((path for path in places if is_file(path / ARGUMENTS)), None)


def checkpoint_folders(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, the newest first."""
    try:
        found = [entry for entry in entries(folder) if entry.name.startswith("checkpoint-")]
    except (OSError, InputError):
        return []
    return sorted(found, key=lambda path: (len(path.name), path.name), reverse=True)[:MAX_CHECKPOINTS]


def recordings_in(path: Path) -> list[list[Path]]:
    """Return the files of a recording, those of one rank together, oldest first; none without a recording.

    Those in the folder itself, else in the one folder below it that has some.

    Raises:
        InputError: several folders below have some, which are of different runs.
    """
    require(path)
    if not is_folder(path):
        return _by_rank(file for file in _listed(path.parent) if file.name.startswith(path.name))
    found = [_by_rank(_listed(path))]
    if not found[0]:
        found = [ranks for place in _listed(path) if is_folder(place) and (ranks := _by_rank(_listed(place)))] or [[]]
    if len(found) > 1:
        names = ", ".join(ranks[0][0].parent.name for ranks in found)
        raise InputError(
            f"{shorten(str(path), 200)}: several folders in it have recordings ({shorten(names, 200)}); name one"
        )
    return found[0]


def _by_rank(files: Iterable[Path]) -> list[list[Path]]:
    """Return those of some files that are recordings, the parts of each rank together, oldest first."""
    ranks: dict[Path, list[Path]] = {}
    named = (path for path in files if _NAME.fullmatch(path.name) and is_file(path))
    for file in islice(named, MAX_FILES):
        if _is_recording(file):
            ranks.setdefault(file.with_name(re.sub(r"\.\d+$", "", file.name)), []).append(file)
    return [sorted(parts, key=_age, reverse=True) for parts in ranks.values()]


def read_recording(files: Sequence[Sequence[Path]], wanted: range) -> Recording:
    """Read what the files of a recording tell of the rows of some steps.

    Raises:
        InputError: two of them are of the same rank, so of different runs; or one cannot be read.
    """
    found = Recording()
    for parts in files:
        _read_rank(parts, wanted, found)
    return found


def fed_before(files: Sequence[Sequence[Path]], step: int, rows: Iterable[RowId]) -> dict[RowId, list[int]]:
    """Return the earlier steps in which rows were fed, in order; those that were fed in none are left out."""
    sought = set(rows)
    found: dict[RowId, set[int]] = {}
    for parts in files:
        for record in _records(parts):
            number = _step_of(record)
            if number is not None and number < step:
                for row in sought.intersection(_ids(record)):
                    found.setdefault(row, set()).add(number)
    return {row: sorted(steps) for row, steps in found.items()}


def _read_rank(parts: Sequence[Path], wanted: range, found: Recording) -> None:
    named = _RANK_IN_NAME.search(parts[0].name)
    rank, start = int(named[1]) if named else 0, 0
    starts: dict[int, int] = {}
    before = None
    for record in _records(parts, found):
        if "recorder" in record:
            found.head |= record
            found.kind = "hash" if found.head.get("rows_kind") == "hash" else "index"
            own_rank = found.sampler.get("rank", record.get("rank"))
            rank = own_rank if isinstance(own_rank, int) and not named else rank
            start += "time" in record and "continued" not in record
            continue
        step, rows = _step_of(record), _ids(record)
        if step is None or not rows:
            continue
        start += before is not None and step < before
        if before is None and rank in found.ranks:
            raise InputError(
                f"{shorten(str(parts[-1]), 200)}: another recording of rank {rank} is next to it; name the one meant"
            )
        found.ranks.add(rank)
        found.first = step if found.first is None else min(found.first, step)
        found.last = step if found.last is None else max(found.last, step)
        found.steps += step != before
        before = step
        if step in wanted:
            if starts.get(step) != start:
                starts[step] = start
                found.fed.setdefault(step, {})[rank] = []
            found.fed[step][rank] += rows


def _records(parts: Sequence[Path], found: Recording | None = None) -> Iterator[dict[str, object]]:
    """Yield the heads and the records with rows."""
    for part in parts:
        with open_input(part) as file:
            while line := file.readline(MAX_LINE):
                if not line.startswith(_RECORDING_HEAD) and b'"rows"' not in line:
                    continue
                record = _parsed(line)
                if record is None:
                    if found is not None:
                        found.broken += 1
                    continue
                yield record
        checkpoint(f"reading {part.name[:60]}")


def _parsed(line: bytes) -> dict[str, object] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _step_of(record: Mapping[str, object]) -> int | None:
    step = record.get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < 2**53 else None


def _ids(record: Mapping[str, object]) -> list[RowId]:
    """Return the ids of a record; micro-batches may be lists of their own. Other values are left out."""
    rows = record.get("rows")
    parts = rows if isinstance(rows, list) else []
    flat = [row_id for part in parts for row_id in (part if isinstance(part, list) else [part])]
    return [text for text in flat if _is_index(text) or (isinstance(text, str) and _KEY.fullmatch(text))]


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _listed(folder: Path) -> list[Path]:
    try:
        return entries(folder)
    except (OSError, InputError):
        return []


def _is_recording(file: Path) -> bool:
    try:
        with open_input(file) as opened:
            return opened.read(len(_RECORDING_HEAD)) == _RECORDING_HEAD
    except (OSError, InputError):
        return False


def _age(file: Path) -> int:
    matched = _NAME.fullmatch(file.name)
    return int(matched["part"] or 0) if matched else 0
