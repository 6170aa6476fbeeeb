"""What a recording holds of the batches of a step. These are their tokens, the loader, and the wait for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from mldebug_mcp.recorder.late import Draft, Moment, Value, guarded
from mldebug_mcp.recorder.layers import labels_of
from mldebug_mcp.recorder.rows import NotedBatches, RowKeys, Rows, column_of, facts_of, keys_of, noted

# What is known of the step that is being made.


@dataclass(slots=True)
class Step:
    """One step of the optimizer, of one batch or of several that are accumulated.

    Args:
        number: Which one it is, counted from 1.
        began: When, in seconds of `time.perf_counter`.
        draft: Its record.
        now: Tells this moment, in the work of the GPU where the model is there.
        deep: Whether the model is looked into.
        rows: The rows of each of its batches, as far as they are known.
        column: The column of its last batch by which rows are distinguished.
        labels: Those of its last batch, where the loop shows them.
        recomputed: By name, the losses of its batches as they are worked out anew.
    """

    number: int
    began: float
    draft: Draft
    now: Callable[[], Moment] = time.perf_counter
    deep: bool = False
    rows: list[list[int] | RowKeys] = field(default_factory=list)
    column: Value = None
    labels: Value = None
    recomputed: dict[str, list[Value]] = field(default_factory=dict)
    losses: list[Value] = field(default_factory=list)
    model_losses: list[Value] = field(default_factory=list)
    summed: bool = False
    tokens: int = 0
    cost: float = 0.0
    has_gradients: bool = False
    is_updated: bool = False
    _backward_from: Moment = None

    def took(self, name: str, first: Moment, last: Moment) -> None:
        """Add to the time of a part of the step."""
        self.draft.spans.append((name, first, last))

    def forward(self, first: Moment, last: Moment) -> None:
        """Take the time of a forward pass; what follows up to the next or to the optimizer is the backward pass."""
        self.backward_until(first)
        self.took("time/forward_s", first, last)
        self._backward_from = last

    def backward_until(self, moment: Moment) -> None:
        """Say that a backward pass was over at a moment, if one was on."""
        if self._backward_from is not None:
            self.took("time/backward_s", self._backward_from, moment)
            self._backward_from = None

    def loss(self) -> Value:
        """Return the loss of the step: what the loop reported, else what the model returned; None if neither did."""
        losses = self.losses or self.model_losses
        if not losses:
            return None
        if len(losses) == 1:
            return losses[0]
        whole = sum(losses[1:], losses[0])
        return whole if self.summed and not self.losses else whole / len(losses)

    def has(self, name: str) -> bool:
        """Say whether a value was taken."""
        return name in self.draft.values


def numbered(names: list[float]) -> dict[str, float]:
    """Return learning rates by name: the first group's, and those of others that differ."""
    rates = {"learning_rate": names[0]} if names else {}
    for at in range(1, len(names)):
        if names[at] != names[0]:
            rates[f"learning_rate/{at}"] = names[at]
    return rates


# What a recording tells of batches: their rows and tokens, the loader, and how long the loop waits for each.


Batch = TypeVar("Batch")


class Batches:
    """Takes the batches of a loop.

    Args:
        describe: Gets what the head of the recording says about the loader, and settings.
        place: The rank of this process, and how many there are.
    """

    def __init__(self, describe: Callable[[Mapping[str, object]], None], place: tuple[int, int]) -> None:
        self._describe, self._place = describe, place
        self._noting: NotedBatches | None = None
        self._written: set[str] = set()
        self._tokens = 0
        self.waited = 0.0
        """Seconds that the loop waited for the batches of the next step."""

    def of(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches of a loader, and time the wait for each."""
        batches = iter(loader)
        while True:
            asked = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self.waited += time.perf_counter() - asked
            yield batch

    @guarded
    def watch(self, loader: Value, accumulation: int, skipped: int = 0) -> None:
        """Make a loader note its rows, and tell of it once; so many steps as are skipped were made before a resume."""
        self._noting = noted(loader)
        if self._noting is not None and skipped:
            self._noting.skip(skipped, accumulation)
        if "loader" in self._written:
            return
        self._written.add("loader")
        facts = facts_of(loader)
        rank, world = self._place
        facts["sampler"] |= {"accumulation": accumulation, "world": world, "rank": rank}
        self._describe({"rows_kind": "hash" if self._noting is None else "index", **facts})

    @guarded
    def take_noted(self, step: Step, batches: int) -> None:
        """Take the rows of the next batches of the loader that is watched."""
        if self._noting is not None:
            step.rows += [self._noting.next_rows() for _ in range(batches)]

    @guarded
    def take(self, step: Step, batch: Value) -> None:
        """Take the rows and the labels of a batch, and count its tokens."""
        step.labels = labels_of(batch) if step.deep or "batch" not in self._written else None
        column = step.column = column_of(batch)
        rows = keys_of(batch, column) if self._noting is None else self._noting.next_rows()
        if rows is not None:
            step.rows.append(rows)
        if hasattr(column, "numel") and column.ndim == 2 and not column.dtype.is_floating_point:
            step.tokens += _tokens_of(batch, column)
        if "batch" not in self._written and hasattr(column, "__len__"):
            self._written.add("batch")
            self._describe({"settings": {"batch_size": len(column)}})

    def count(self, step: Step) -> None:
        """Put into the record of a step what is known of its batches, and begin with the next."""
        values = step.draft.values
        if self.waited:
            values["time/data_s"] = self.waited
            self.waited = 0.0
        if step.tokens:
            self._tokens += step.tokens
            values["num_tokens"] = self._tokens
        if any(step.rows):
            values["rows"] = Rows(step.rows)


def _tokens_of(batch: Value, column: Value) -> int:
    """Return the tokens of a batch, without padding where its mask is known."""
    mask = batch.get("attention_mask") if isinstance(batch, Mapping) else None
    if mask is None or mask.device.type != "cpu":
        return int(column.numel())
    return int(mask.sum())
