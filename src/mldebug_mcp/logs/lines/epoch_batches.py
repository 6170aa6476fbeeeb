"""The batch of an epoch → a step: "epoch 9 step 440/440" counts within the epoch, or over all of them.

Both are printed alike. Within an epoch the counter begins anew where the epoch rises; over all of them it goes on there
by its usual interval, and is the step as it stands.
"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats

USUAL = 2.0
"""Times the interval within an epoch that a counter over all of them may move by where the epoch rises; chosen."""


class EpochBatches:
    """Turns epochs and batches into steps, in the order in which they come."""

    def __init__(self) -> None:
        self._base: float | None = None
        self._epoch = np.nan
        self._count = np.nan
        self._interval = np.nan
        self._over_all: bool | None = None
        self._early: dict[float, float] = {}

    def begin(self, epoch: float, first_epoch: float | None) -> None:
        """Say which epoch is the first one that is seen, and the number of the first one where the framework tells."""
        if self._base is None:
            guessed = 0.0 if epoch == 0 else 1.0
            self._base = guessed if first_epoch is None else first_epoch

    def step(self, epoch: float, count: float, total: float) -> float:
        """Return the step of a batch."""
        if self._over_all is None:
            self._see(epoch, count)
        within = (epoch - (self._base or 0.0)) * total + count
        if self._over_all is None and within != count:
            self._early[within] = count
        return count if self._over_all else within

    def steps(self, epoch: Floats, count: Floats, total: Floats) -> Floats:
        """Return the steps of many batches, each array of shape (n,)."""
        at = 0
        while self._over_all is None and at < len(count):
            self._see(float(epoch[at]), float(count[at]))
            at += 1
        within: Floats = (epoch - (self._base or 0.0)) * total + count
        if self._over_all is None:
            other = within != count
            self._early.update(zip(within[other].tolist(), count[other].tolist(), strict=True))
        return count if self._over_all else within

    def correct(self, builder: RunBuilder, counters: dict[str, float]) -> None:
        """Correct the steps that were given before it was known that batches are counted over all epochs.

        Args:
            builder: Holds the records.
            counters: Those of the record that is still open.
        """
        if self._over_all is None or not self._early:
            return
        meant, self._early = self._early if self._over_all else {}, {}
        wrong = {row: meant[step] for row, step in builder.column("step") if step in meant} if meant else {}
        if wrong:
            builder.overwrite("step", np.array([*wrong]), np.array([*wrong.values()]))
        if counters.get("step") in meant:
            counters["step"] = meant[counters["step"]]

    def _see(self, epoch: float, count: float) -> None:
        moved = count - self._count
        if epoch == self._epoch:
            self._interval = moved if moved > 0 else self._interval
        elif epoch > self._epoch and not np.isnan(self._interval):
            self._over_all = bool(0 < moved <= USUAL * self._interval)
        elif epoch > self._epoch and moved <= 0:
            self._over_all = False
        self._epoch, self._count = epoch, count
