"""Which rows are in a batch, and whether rows of the evaluation are trained on."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from mldebug_mcp.recorder.late import Value as LateValue

# Which rows are in a batch: their indices in the data where the loader tells them, else keys of their tokens.


Value: TypeAlias = Any
"""Whatever loaders, samplers and collators are."""
MAX_RECORDED_ROWS = 4096
"""Rows of a batch that are recorded. Chosen: 30 kB of numbers; of more the first ones are."""
MAX_NUMBERS = 512
"""Numbers that identify a row without text, drawn evenly. Chosen: far fewer distinguish images."""
TOKENS = ("input_ids", "tokens", "inputs", "x", "pixel_values")
"""Columns whose rows are distinguished, the first that a batch has."""


class RowKeys:
    """The keys of the rows of a batch, worked out when they are written, outside the loop.

    Tokens that the attention mask leaves out do not count, so that a row has one key however long its batch is. Rows
    that are no whole numbers, such as images, are known by some of their values.

    Args:
        rows: A tensor on the CPU or an array of numpy, of shape (rows,) or (rows, values), that nobody else changes.
        mask: Which of its values count, of the same shape; None for all.
    """

    def __init__(self, rows: Value, mask: Value = None) -> None:
        self._rows, self._mask = rows, mask

    @property
    def values(self) -> Value:
        """The values by which the rows are known."""
        return self._rows

    def listed(self) -> list[str]:
        """Return the keys; none of a tensor of a kind whose values cannot be had, such as a sparse one."""
        try:
            rows, mask = _array_of(self._rows), None if self._mask is None else _array_of(self._mask)
        except (TypeError, RuntimeError):
            return []
        rows = rows.astype("<i8" if rows.dtype.kind in "iub" else "<f8")
        if mask is None or mask.shape != rows.shape:
            return [_digest(row.tobytes()) for row in rows]
        return [_digest(row[counts].tobytes()) for row, counts in zip(rows, mask.astype(bool), strict=True)]


class Rows:
    """The rows of a step, batch by batch."""

    def __init__(self, batches: Sequence[list[int] | RowKeys]) -> None:
        self._batches = batches

    def written(self) -> list[int | str]:
        """Return all rows."""
        return [row for batch in self._batches for row in (batch if isinstance(batch, list) else batch.listed())]


def keys_of(batch: Value, rows: Value) -> RowKeys | None:
    """Return the keys of the rows of a batch; None where it lies on a device, or holds no rows of numbers.

    Little is asked of a tensor here: in the middle of a step each question takes ten times as long as outside it.

    Args:
        batch: The batch.
        rows: Its column that distinguishes rows.
    """
    if not getattr(rows, "is_cpu", hasattr(rows, "dtype")):
        return None
    shape = rows.shape
    if not shape:
        return None
    mask = batch.get("attention_mask") if isinstance(batch, dict) else None
    if shape[0] > MAX_RECORDED_ROWS:
        rows, mask = rows[:MAX_RECORDED_ROWS], None if mask is None else mask[:MAX_RECORDED_ROWS]
    if len(shape) > 2 or not _is_whole(rows.dtype):
        values, mask = math.prod(shape[1:]), None
        if len(shape) != 2:
            rows = rows.reshape(min(shape[0], MAX_RECORDED_ROWS), -1)
        if values >= 2 * MAX_NUMBERS:
            rows = rows[:, :: values // MAX_NUMBERS]
    return RowKeys(_copied(rows), None if mask is None else _copied(mask))


def _copied(rows: Value) -> Value:
    """Return a copy: what the loop does with its batch changes no key."""
    if not hasattr(rows, "detach"):
        return rows.copy()
    return rows.detach().clone() if rows.requires_grad else rows.clone()


def _array_of(rows: Value) -> Value:
    """Return rows as an array of numpy."""
    if not hasattr(rows, "detach"):
        return rows
    return (rows.float() if rows.dtype is sys.modules["torch"].bfloat16 else rows).numpy()


def _digest(whole: bytes) -> str:
    """Return the key of a row, of its values as 64-bit little-endian numbers, in 16 hexadecimal digits."""
    return hashlib.blake2b(whole, digest_size=8).hexdigest()


def column_of(batch: Value) -> Value:
    """Return the column of a batch whose rows are distinguished, None where it has none."""
    if hasattr(batch, "dtype"):
        return batch
    if hasattr(batch, "items"):
        named = dict(batch.items())
        return next((named[name] for name in TOKENS if name in named), next(iter(named.values()), None))
    return batch[0] if isinstance(batch, tuple | list) and batch else None


def _is_whole(dtype: Value) -> bool:
    """Say whether a kind of numbers, of torch or of numpy, is that of whole ones."""
    return dtype.kind in "iub" if hasattr(dtype, "kind") else not (dtype.is_floating_point or dtype.is_complex)


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
        return self._handed.popleft()[:MAX_RECORDED_ROWS] if self._handed else []


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


NAME = "rows_evaluated"
"""The share of the rows of a batch of the training that were in an evaluation before."""
MOST_BATCHES = 64
"""Batches of evaluations whose rows are kept. Chosen: their keys take 20 MB at most."""


class Evaluated:
    """Keeps the keys of the rows that a model was evaluated on, where they are on the CPU."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._batches = 0

    def take(self, args: LateValue, kwargs: Mapping[str, LateValue]) -> None:
        """Keep the rows of a batch of an evaluation, of the first ones alone."""
        if self._batches < MOST_BATCHES:
            self._batches += 1
            self._keys |= set(_keys(args, kwargs))

    def share(self, args: LateValue, kwargs: Mapping[str, LateValue]) -> float | None:
        """Return the share of the rows of a batch that were in an evaluation; None where that is not known."""
        rows = _keys(args, kwargs) if self._keys else []
        return sum(row in self._keys for row in rows) / len(rows) if rows else None


def _keys(args: LateValue, kwargs: Mapping[str, LateValue]) -> list[str]:
    batch = kwargs or list(args)
    found = keys_of(batch, column_of(batch))
    return found.listed() if found is not None else []
