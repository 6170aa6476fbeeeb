"""What recording may cost: a share of the time of the steps, of which dear measurements are paid."""

from __future__ import annotations

SHARE = 0.005
"""Of the time of steps that dear measurements may take: half of what a recording may cost in all."""
FREE = 0.25
"""Seconds that may be spent at once. Chosen: a short run is looked into as well, and a long one does not notice."""


class Budget:
    """Keeps account of one measurement.

    Args:
        every: Steps between two of them where they cost nothing.
        share: Of the time of the steps that they may take together.
    """

    def __init__(self, every: int, share: float = SHARE) -> None:
        self.every = every
        self._share = share
        self._last_step = 0
        self._left = FREE
        self._cost = 0.0

    def step(self, seconds: float) -> None:
        """Take the time of a step: a share of it may be spent."""
        most = max(4 * self._cost, FREE)  # what was saved up long ago is not spent in a row
        self._left = min(self._left + self._share * seconds, most)

    def allows(self, step: int) -> bool:
        """Say whether the measurement is due at a step, and can be afforded by what the last one cost."""
        return (self._last_step == 0 or step - self._last_step >= self.every) and self._left >= min(self._cost, 60.0)

    def spent(self, step: int, seconds: float) -> None:
        """Take what a measurement cost."""
        self._last_step = max(step, 1)
        self._left -= seconds
        self._cost = seconds if not self._cost else max(seconds, 0.7 * self._cost)
