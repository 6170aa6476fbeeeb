"""What a recording holds of the batches of a step. These are their tokens, the loader, and the wait for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from mldebug_mcp.recorder.late import Draft, Moment, Value, failed_at, guarded, seconds
from mldebug_mcp.recorder.layers import SPREAD, labels_of, spreads_of
from mldebug_mcp.recorder.rows import (
    Copied,
    NotedBatches,
    arranged,
    array_of,
    column_of,
    copied,
    facts_of,
    keys_of,
    noted,
)

# What is known of the step that is being made.


FORWARD, FORWARD_OVER, BACKWARD_OVER, OPTIMIZER, OPTIMIZER_OVER = "f", "F", "B", "o", "O"
"""What begins or ends within a step. A backward pass lasts from the end of a forward pass to what comes next."""


class Step(Draft):
    """The record of one step of the optimizer, of one batch or of several that are accumulated.

    In the middle of a step nothing is in the caches of the processor: a call takes ten times as long as elsewhere.
    So a step takes notes, and what can wait is worked out when it is written.

    Args:
        number: Which one it is, counted from 1.
        began: When, in seconds of `time.perf_counter`.
        now: Tells this moment, in the work of the GPU where the model is there.
        deep: Whether the model is looked into.
    """

    ended = waited = 0.0
    """When it was over, and the seconds for which the loop waited for its batches."""
    recomputed: Mapping[str, list[Value]] = {}
    """By name, the losses of its batches as they are worked out anew."""
    model_losses: tuple[Value, ...] = ()
    """What the model returned."""
    summed = False
    cost = 0.0
    has_gradients = False
    is_nonfinite = False
    """Whether a loss or a norm that no scaler answers for is known not to be finite."""
    losses: tuple[Value, ...] = ()
    """What the loop reported."""
    rows: tuple[list[int] | Copied, ...] = ()
    """The rows of each of its batches, as far as they are known."""
    fed: Value = None
    """Numbers that the model was fed, which nobody else changes."""

    def __init__(self, number: int, began: float, now: Callable[[], Moment], deep: bool) -> None:
        self.values = {"step": number}
        self.number, self.began, self.now, self.deep = number, began, now, deep
        self.marks: list[Moment] = []

    def loss(self) -> Value:
        """Return the loss of the step: what the loop reported, else what the model returned; None if neither did."""
        losses = self.losses or self.model_losses
        if len(losses) < 2:
            return losses[0] if losses else None
        whole = sum(losses[1:], losses[0])
        return whole if self.summed and not self.losses else whole / len(losses)

    def complete(self, since: float) -> None:
        """Work out the times of its parts, and how far its gradients were clipped.

        Args:
            since: The time of day at which `time.perf_counter` began.
        """
        values, began, backward = self.values, None, None
        values["time/step_s"] = self.ended - self.began + self.waited
        values["timestamp"] = since + self.ended
        if self.waited:
            values["time/data_s"] = self.waited
        for what, moment in zip(self.marks[::2], self.marks[1::2], strict=True):
            if backward is not None:
                values["time/backward_s"] = values.get("time/backward_s", 0.0) + seconds(backward, moment)
                backward = None
            if what in (FORWARD, OPTIMIZER):
                began = moment
            elif what != BACKWARD_OVER and began is not None:
                name = "time/forward_s" if what == FORWARD_OVER else "time/optimizer_s"
                values[name] = values.get(name, 0.0) + seconds(began, moment)
                began, backward = None, moment if what == FORWARD_OVER else None
        if 0.0 < self.max_norm < math.inf and (norm := values.get("grad_norm")) is not None:
            values["clip_factor"] = min(1.0, self.max_norm / (norm + 1e-6))  # as torch works it out


def complete(steps: Sequence[Step], since: float) -> None:
    """Work out what was left for the time when records are written.

    The keys of rows and the spreads of inputs are made of all records together. Each call that lets go of the
    interpreter lets the loop in, and begins anew behind it.

    Args:
        steps: The records.
        since: The time of day at which `time.perf_counter` began.
    """
    for step in steps:
        step.complete(since)
    arrays = {id(step.fed): array_of(step.fed) for step in steps}
    fed = [step for step in steps if arrays[id(step.fed)] is not None]
    for step, spread in zip(fed, spreads_of([arrays[id(step.fed)] for step in fed]) if fed else (), strict=True):
        if math.isfinite(spread):
            step.values[SPREAD] = spread
    rows = [
        (step, found)
        for step in steps
        for copy in step.rows
        if (found := copy if isinstance(copy, list) else _rows_of(step, copy, arrays))
    ]
    keys = iter(keys_of([found for _, found in rows if isinstance(found, tuple)]))
    for step, found in rows:
        step.values["rows"] = step.values.get("rows", []) + (next(keys) if isinstance(found, tuple) else found)


def _rows_of(step: Step, copy: Copied, arrays: Mapping[int, Value]) -> Copied | None:
    """Return the rows of a batch as they are known, and count its tokens."""
    step.tokens += _tokens_of(*copy)
    return arranged((arrays.get(id(copy[0]), copy[0]), copy[1]))


# What a recording tells of batches: their rows and tokens, the loader, and how long the loop waits for each.


class Batches:
    """Takes the batches of a loop.

    Args:
        describe: Gets what the head of the recording says about the loader, and settings.
        place: The rank of this process, and how many there are.
    """

    def __init__(self, describe: Callable[[Mapping[str, object]], None], place: tuple[int, int]) -> None:
        self._describe, self._place = describe, place
        self.noting: NotedBatches | None = None
        """The sampler that notes the rows of the loader."""
        self.column: Value = None
        """The column by which the rows of the last batch are distinguished ..."""
        self.labels: Value = None
        """... and the labels of one that is looked into."""
        self._has_loader = self._has_batch = self._has_tokens = False

    @guarded
    def watch(self, loader: Value, accumulation: int, skipped: int = 0) -> None:
        """Make a loader note its rows, and tell of it once; so many steps as are skipped were made before a resume."""
        self.noting = noted(loader)
        if self.noting is not None and skipped:
            self.noting.skip(skipped, accumulation)
        if self._has_loader:
            return
        self._has_loader = True
        facts = facts_of(loader)
        rank, world = self._place
        facts["sampler"] |= {"accumulation": accumulation, "world": world, "rank": rank}
        self._describe({"rows_kind": "hash" if self.noting is None else "index", **facts})

    def take(self, step: Step, batch: Value) -> None:
        """Take the rows and the labels of a batch, and count its tokens."""
        try:
            kind, mask = type(batch), None
            if (kind is list or kind is tuple) and batch:
                column = batch[0]
            else:
                column = column_of(batch)
                mask = batch.get("attention_mask") if isinstance(batch, Mapping) else None
            self.column = column
            if step.deep or not self._has_batch:
                self._describe_batch(batch, column)
            if self.noting is not None:
                step.rows += (self.noting.next_rows(),)
                if self._has_tokens:
                    step.tokens += _tokens_of(column, mask)
            elif (copy := copied(column, mask)) is not None:
                step.rows += (copy,)
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "take", error)

    def _describe_batch(self, batch: Value, column: Value) -> None:
        """Take the labels of a batch, and what is alike in all batches of a loader."""
        self.labels, self._has_tokens = labels_of(batch), _tokens_of(column, None) > 0
        if not self._has_batch and hasattr(column, "__len__"):
            self._has_batch = True
            self._describe({"settings": {"batch_size": len(column)}})


def _tokens_of(column: Value, mask: Value) -> int:
    """Return the tokens of a batch, without padding where its mask is known; 0 where it holds none."""
    if not hasattr(column, "numel") or column.is_floating_point() or column.ndim != 2:
        return 0
    counted = array_of(mask)
    return int(column.numel() if counted is None else counted.sum())
