"""Does the loss leave its course? Told step by step, from the last values alone."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from statistics import median

WINDOW = 64
"""Losses that the course is made of. Chosen: long enough for a median, short enough to follow a falling loss."""
LEAST = 20
"""Losses before a spike is told. Chosen: the first ones of a run fall far."""
SIGMAS = 8.0
"""Standard deviations above the median. Chosen: a healthy run of a million steps reaches six."""
RISE = 1.1
"""... and times the median itself. Chosen: where the loss hardly varies, eight of its deviations are nothing."""
EVERY = 4
"""Losses between two looks at the course. Chosen: two medians take longer than all else of a step."""
REST = 25
"""Steps after a spike in which none is told. Chosen: one spike takes some steps to come back."""
_SIGMA = 1.4826
"""Standard deviations in a median absolute deviation of a normal distribution."""


class Course:
    """Takes losses one by one."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=WINDOW)
        self._bound = math.inf
        self._taken = self._resting = 0
        self._lost = False

    def take(self, loss: float) -> str:
        """Return "nonfinite" at the first value that is not finite, "spike" at a jump, else ""."""
        if not math.isfinite(loss):
            first, self._lost = not self._lost, True
            return "nonfinite" if first else ""
        self._lost = False
        self._resting = max(0, self._resting - 1)
        spike = not self._resting and loss > self._bound
        if spike:
            self._resting = REST
        self._last.append(loss)
        self._taken += 1
        if len(self._last) >= LEAST and self._taken % EVERY == 0:
            self._bound = _bound(self._last)
        return "spike" if spike else ""


def _bound(losses: Collection[float]) -> float:
    """Return the loss above which one is off the course of these."""
    level = median(losses)
    spread = _SIGMA * median(abs(one - level) for one in losses)
    return level + max(SIGMAS * spread, (RISE - 1) * abs(level))
