"""What is known of the step that is being made."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mldebug_mcp.recorder.clock import Moment
from mldebug_mcp.recorder.late import Draft, Value
from mldebug_mcp.recorder.rows import RowKeys


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
        labels: Those of its last batch, where the loop shows them.
        recomputed: By name, the losses of its batches as they are worked out anew.
    """

    number: int
    began: float
    draft: Draft
    now: Callable[[], Moment] = time.perf_counter
    deep: bool = False
    rows: list[list[int] | RowKeys] = field(default_factory=list)
    labels: Value = None
    recomputed: dict[str, list[Value]] = field(default_factory=dict)
    losses: list[Value] = field(default_factory=list)
    model_losses: list[Value] = field(default_factory=list)
    summed: bool = False
    tokens: int = 0
    cost: float = 0.0
    has_gradients: bool = False
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
        """Return the loss of the step: what the loop told, else what the model returned; None if neither did."""
        told = self.losses or self.model_losses
        if not told:
            return None
        if len(told) == 1:
            return told[0]
        whole = sum(told[1:], told[0])
        return whole if self.summed and not self.losses else whole / len(told)

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
