"""Which rows are in a batch, and whether rows of the evaluation are trained on."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from mldebug_mcp.recorder.late import Value

# Which rows are in a batch: their indices in the data where the loader tells them, else keys of their tokens.


MAX_RECORDED_ROWS = 4096
"""Rows of a batch that are recorded. Chosen: 30 kB of numbers; of more the first ones are."""
MAX_NUMBERS = 512
"""Numbers that identify a row without text, drawn evenly. Chosen: far fewer distinguish images."""
MAX_JOINED = 1 << 17
"""Numbers of batches that are worked on together. Chosen: what is made of them takes some megabytes."""
TOKENS = ("input_ids", "tokens", "inputs", "x", "pixel_values")
"""Columns whose rows are distinguished, the first that a batch has."""


MAX_CLONED = 1 << 14
"""Numbers of a batch that are copied whole. Chosen: of so few a copy is what costs least; it takes 128 kB at most."""


Copied: TypeAlias = tuple[Value, Value]
"""What nobody else changes: the rows of a batch, as tensors or arrays; which of their numbers count, None for all."""


def keys_of(copies: Sequence[Copied]) -> list[list[str]]:
    """Return the keys of the rows of batches that are arranged.

    Tokens that the attention mask leaves out do not count, so that a row has one key however long its batch is. Rows
    that are no whole numbers, such as images, are known by some of their values. Batches of one shape go together.
    """
    found = [list[str]() for _ in copies]
    for places in alike([rows if mask is None else None for rows, mask in copies]):
        rows = sys.modules["numpy"].concatenate([copies[at][0] for at in places])
        ends = range(rows[0].size, rows.size + 1, rows[0].size)
        keys = iter(_keys_of_numbers(rows) if rows.dtype.kind == "f" else _digests(rows, ends))
        for at in places:
            found[at] = list(islice(keys, len(copies[at][0])))
    for at, (rows, mask) in enumerate(copies):
        if mask is not None:
            counted = mask.reshape(len(mask), -1).sum(axis=1)  # rows of one token have no second axis
            found[at] = _digests(rows[mask], counted.cumsum().tolist())
    return found


def alike(arrays: Sequence[Value]) -> Iterable[list[int]]:
    """Return the places of the arrays of each kind that can be joined, not too many at once; None has no kind."""
    kinds: dict[object, list[int]] = {}
    numbers = 0
    for at, array in enumerate(arrays):
        if array is not None:
            kinds.setdefault((array.shape[1:], array.dtype, numbers // MAX_JOINED), []).append(at)
            numbers += array.size
    return kinds.values()


def _digests(rows: Value, ends: Sequence[int]) -> list[str]:
    """Return the keys of rows of whole numbers, from end to end: BLAKE2b of them as 64-bit little-endian numbers."""
    whole, blake2b = rows.astype("<i8", copy=False).tobytes(), hashlib.blake2b
    pairs = zip([0, *ends], ends, strict=False)
    return [blake2b(whole[8 * start : 8 * end], digest_size=8).hexdigest() for start, end in pairs]


def _keys_of_numbers(rows: Value) -> list[str]:
    """Return a sum of the mixed bits of each row, times an odd number for each place: no call for each row."""
    mixed = _mixed(rows.astype("<f8").view("<u8"))
    mixed *= _factors(rows.shape[1])
    sums = mixed.sum(axis=1)
    found: list[str] = sums.astype(">u8").tobytes().hex(" ", 8).split(" ")
    return found


@lru_cache(maxsize=16)
def _factors(places: int) -> Value:
    """Return an odd number for each of so many places."""
    return _mixed(sys.modules["numpy"].arange(1, places + 1, dtype="<u8")) | 1


def _mixed(bits: Value) -> Value:
    """Mix the bits of each number of 64 bits in place (the finaliser of SplitMix64, Steele et al. 2014)."""
    bits ^= bits >> 30
    bits *= 0xBF58476D1CE4E5B9
    bits ^= bits >> 27
    bits *= 0x94D049BB133111EB
    bits ^= bits >> 31
    return bits


def copied(rows: Value, mask: Value = None) -> Copied | None:
    """Return what the keys of the rows of a batch are made of; None where it lies on a device or holds no numbers.

    A small one is cloned: that costs the loop least, and `arranged` makes arrays of it when the record is written.

    Args:
        rows: The column of the batch that distinguishes rows.
        mask: Which of its numbers count.
    """
    if getattr(rows, "is_cpu", False) and rows.numel() <= MAX_CLONED:
        return rows.detach().clone(), None if mask is None else mask.clone()
    found = arranged((rows, mask))
    return None if found is None else (found[0].copy(), found[1])


def arranged(copy: Copied) -> Copied | None:
    """Return rows as an array, as far as they are known by their values, with the numbers that count of each.

    None where they are sparse, or hold no rows of numbers.
    """
    values = array_of(copy[0])
    kind = "" if values is None or not values.size or not values.ndim else values.dtype.kind
    if not kind or kind not in "iubf":
        return None
    if len(values) > MAX_RECORDED_ROWS:
        values = values[:MAX_RECORDED_ROWS]
    if kind == "f" or values.ndim > 2:
        if values.ndim != 2:
            values = values.reshape(len(values), -1)
        if values.shape[1] >= 2 * MAX_NUMBERS:
            values = values[:, :: values.shape[1] // MAX_NUMBERS]
        return values, None
    mask = array_of(copy[1])
    mask = None if mask is None else mask[:MAX_RECORDED_ROWS]
    return values, None if mask is None or mask.shape != values.shape else mask.astype(bool)


def array_of(tensor: Value) -> Value:
    """Return a tensor on the CPU as an array of numpy in the same memory; None where that cannot be had."""
    if not getattr(tensor, "is_cpu", False):
        return tensor if hasattr(tensor, "strides") else None
    try:
        return tensor.numpy(force=tensor.requires_grad)
    except TypeError:  # a kind of numbers that numpy lacks, or a sparse tensor
        return tensor.detach().float().numpy() if tensor.layout is sys.modules["torch"].strided else None
    except RuntimeError:  # numpy is not installed
        return None


def column_of(batch: Value) -> Value:
    """Return the column of a batch whose rows are distinguished, None where it has none."""
    if isinstance(batch, tuple | list):
        return batch[0] if batch else None
    if hasattr(batch, "dtype"):
        return batch
    if not hasattr(batch, "items"):
        return None
    named = batch if type(batch) is dict else dict(batch.items())
    for name in TOKENS:
        if name in named:
            return named[name]
    return next(iter(named.values()), None)


class NotedBatches:
    """A batch sampler that notes the indices which it hands out.

    Args:
        sampler: The batch sampler of a loader.
    """

    def __init__(self, sampler: Value) -> None:
        self._sampler = sampler
        self._handed: deque[list[int]] = deque(maxlen=4096)
        self._skipped = 0

    def __iter__(self) -> Iterator[Value]:
        self._handed.clear()
        skipped, self._skipped = self._skipped, 0
        for number, indices in enumerate(self._sampler):
            if number >= skipped:
                self._handed.append(list(indices))
            yield indices

    def skip(self, steps: int, accumulation: int) -> None:
        """Pass over the batches that were made in the epoch in which a run is resumed, after so many steps in all.

        The last step of an epoch may have fewer batches than the others.
        """
        self._skipped = steps % -(-len(self._sampler) // accumulation) * accumulation

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Value:
        return getattr(self._sampler, name)

    def next_rows(self) -> list[int]:
        """Return the indices of the next batch that the loader gives, in the order in which they were handed out."""
        rows = self._handed.popleft() if self._handed else []
        return rows if len(rows) <= MAX_RECORDED_ROWS else rows[:MAX_RECORDED_ROWS]


def noted(loader: Value) -> NotedBatches | None:
    """Make a loader of torch note the indices of its batches; None where it has no batch sampler."""
    loader = getattr(loader, "base_dataloader", loader)  # Accelerate's, which asks this one for batches
    sampler = getattr(loader, "batch_sampler", None)
    if isinstance(sampler, NotedBatches):
        return sampler
    if sampler is None or not hasattr(loader, "dataset"):
        return None
    noting = NotedBatches(sampler)
    # A loader refuses the attribute once it is made, for reasons that do not hold here: the batches stay the same.
    object.__setattr__(loader, "batch_sampler", noting)
    return noting


def facts_of(loader: Value) -> dict[str, Value]:
    """Return what the head of a recording says about a loader: how long the data are, and the sampler."""
    facts: dict[str, Value] = {}
    with contextlib.suppress(AttributeError, TypeError):
        facts["data_length"] = len(loader.dataset)
    batches = getattr(loader, "batch_sampler", None)
    sampler = getattr(batches, "sampler", None) or getattr(loader, "sampler", None)
    generator = getattr(sampler, "generator", None) or getattr(loader, "generator", None)
    drawn_by = {
        "kind": f"{type(sampler).__module__.partition('.')[0]}.{type(sampler).__name__}",
        "batch_size": getattr(loader, "batch_size", None) or getattr(batches, "batch_size", None),
        "drop_last": getattr(loader, "drop_last", None),
        "seed": getattr(sampler, "seed", None) if generator is None else generator.initial_seed(),
    }
    facts["sampler"] = {name: value for name, value in drawn_by.items() if value is not None}
    return facts


# Are rows of the evaluation trained on? Told by the keys of both, of some batches each.


ROWS_EVALUATED = "rows_evaluated"
"""The share of the rows of a batch of the training that were in an evaluation before."""
MOST_BATCHES = 64
"""Batches of evaluations whose rows are kept. Chosen: their keys take 20 MB at most."""


class Evaluated:
    """Keeps the keys of the rows that a model was evaluated on, where they are on the CPU."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._batches = 0

    def take(self, args: Value, kwargs: Mapping[str, Value]) -> None:
        """Keep the rows of a batch of an evaluation, of the first ones alone."""
        if self._batches < MOST_BATCHES:
            self._batches += 1
            self._keys |= set(_keys(args, kwargs))

    def share(self, args: Value, kwargs: Mapping[str, Value]) -> float | None:
        """Return the share of the rows of a batch that were in an evaluation; None where that is not known."""
        rows = _keys(args, kwargs) if self._keys else []
        return sum(row in self._keys for row in rows) / len(rows) if rows else None


def _keys(args: Value, kwargs: Mapping[str, Value]) -> list[str]:
    found = arranged((column_of(kwargs or args), kwargs.get("attention_mask")))
    return keys_of([found])[0] if found is not None else []
