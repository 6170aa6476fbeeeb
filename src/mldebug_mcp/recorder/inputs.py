"""What a model is fed: how much its numbers vary, and how far the inputs of evaluation are from those of training."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mldebug_mcp.recorder.late import Value
from mldebug_mcp.recorder.rows import column_of

if TYPE_CHECKING:
    from torch import Tensor

SPREAD, APART = "inputs_spread", "inputs_apart"
"""The standard deviation of the numbers of a batch; the largest difference between the shares of numbers up to a bound
in a batch of training and in the evaluation (Kolmogorov and Smirnov). Whole numbers, such as tokens, have neither."""
MOST_NUMBERS = 1024
"""Numbers of a batch of which the spread is told, drawn evenly. Chosen: known to 2 %."""
FEWEST_SPREAD = 16
"""... and the fewest. Chosen: the spread of fewer varies by itself."""
MOST_COMPARED = 1024
"""Numbers of a batch that are compared, drawn evenly. Chosen: shares are known to 2 %."""
FEWEST_COMPARED = 256
"""... and the fewest. Chosen: shares are known to 3 %."""
MOST_BATCHES = 8
"""Batches of evaluations that are kept for it. Chosen: of 8,000 numbers the comparison takes a millisecond."""


class Inputs:
    """Compares the inputs of training with those of evaluations, where both are of one kind."""

    def __init__(self) -> None:
        self._evaluated: list[Tensor] = []

    def take(self, args: Value, kwargs: Mapping[str, Value]) -> None:
        """Keep some numbers of a batch of an evaluation, of the first ones alone."""
        if len(self._evaluated) < MOST_BATCHES and (found := _numbers(args, kwargs)) is not None:
            self._evaluated.append(_some(found, MOST_COMPARED).clone())

    def apart(self, args: Value, kwargs: Mapping[str, Value]) -> Tensor | None:
        """Return how far a batch of training is from the evaluation: 0 where alike, 1 where nothing is shared."""
        inputs = _numbers(args, kwargs) if self._evaluated else None
        if inputs is None or inputs.device != self._evaluated[0].device or inputs.numel() < FEWEST_COMPARED:
            return None
        torch = sys.modules["torch"]
        here, there = _some(inputs, MOST_COMPARED).sort().values, torch.cat(self._evaluated).sort().values
        values = torch.cat([here, there])
        up_to = [torch.searchsorted(one, values, right=True) / len(one) for one in (here, there)]
        found: Tensor = (up_to[0] - up_to[1]).abs().amax()
        return found


def spread(args: Value, kwargs: Mapping[str, Value]) -> Value:
    """Return the standard deviation of the numbers of a batch, None where its inputs are whole numbers."""
    inputs = _numbers(args, kwargs)
    if inputs is None or inputs.numel() < FEWEST_SPREAD:
        return None
    found = _some(inputs, MOST_NUMBERS).std()
    if not found.is_cpu:
        return found
    number = found.item()
    return number if math.isfinite(number) else None  # what is not finite is told with its origin


def _numbers(args: Value, kwargs: Mapping[str, Value]) -> Tensor | None:
    """Return the numbers that a model is given first, None where they are no tensor, or whole numbers."""
    found = column_of(dict(kwargs) if kwargs else list(args))
    is_numbers = isinstance(found, sys.modules["torch"].Tensor) and found.is_floating_point()
    return found.detach() if is_numbers else None


def _some(tensor: Tensor, most: int) -> Tensor:
    """Return about so many numbers, by an odd stride: the lengths of rows are even."""
    flat = tensor.reshape(-1)
    every = max(1, flat.numel() // most)
    return flat[:: every + 1 - every % 2].float()
