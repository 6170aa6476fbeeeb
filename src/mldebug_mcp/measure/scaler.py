"""The loss scaler of half precision: which steps it skips, and how far its scale comes down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median

HALVED = 0.75
"""A scale below this share of the one before was halved. Chosen: between a half and the same."""
LEAST_HEALTHY = 1.0
"""The least scale from which training can go on. Source: opt_175b_logbook."""
OCTAVES = 6
"""Halvings, net, that are a fall. Chosen: a healthy scaler goes up and down by one or two."""
DESCENT, DESCENT_SHARE = 20, 0.05
"""Records, or share of the log, in which a scaler comes down from its start. Chosen: torch's 2 ** 16 takes sixteen."""
AGAIN = 3
"""Overflows at the smallest scale that are more than probing. Chosen: one or two may come by chance."""


@dataclass(frozen=True, slots=True)
class Skips:
    """Steps that were skipped for overflow.

    Args:
        count: Skipped steps since the record before, by record.
        steps: Steps since the record before, (records,).
        probing: Records at the start in which the scaler looks for its scale.
    """

    count: Series
    steps: Floats
    probing: int

    @property
    def late(self) -> Floats:
        """Skipped steps behind the start, (records,)."""
        return np.where(np.arange(len(self.count)) >= self.probing, self.count.value, 0.0)

    @property
    def share(self) -> float:
        """Share of all steps that were skipped behind the start."""
        return float(self.late.sum() / max(self.steps.sum(), 1.0))

    @property
    def longest(self) -> int:
        """The most steps that were skipped on end behind the start."""
        whole = self.late >= self.steps
        ends = np.cumsum(np.where(whole, self.late, 0.0))
        return int((ends - np.maximum.accumulate(np.where(whole, 0.0, ends))).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Descent:
    """A fall of the loss scale.

    Args:
        top, low: Indices of the last record before it, and of its end.
        halvings: How far it goes.
    """

    top: int
    low: int
    halvings: float


def skips_of(run: Run) -> Skips | None:
    """Return the steps that were skipped, by the counter of the log, its messages or halvings; None if it has none."""
    count = _counted(run)
    if count is None or not len(count):
        return None
    apart = np.diff(count.step)
    steps = np.ones(len(count))
    if run.step_name == "step" and len(apart):
        steps[1:] = np.maximum(apart, 1.0)
        steps[0] = max(1.0, min(float(count.step[0]), float(np.median(apart))))
    skipped = Series(count.name, count.step, np.clip(count.value, 0.0, steps))
    return Skips(skipped, steps, _probing(run, skipped))


def are_skipped(run: Run, steps: Floats) -> bool:
    """Say whether a loss scaler skipped the steps: its count or its scale tells so in the record or the next."""
    skips = skips_of(run)
    if skips is None:
        return False
    at = skips.count.step[skips.count.value > 0]
    apart = median(np.diff(run["grad_norm"].step))
    return len(at) > 0 and all(float(np.abs(at - step).min()) <= apart for step in steps)


def _counted(run: Run) -> Series | None:
    if "skipped_iterations" in run and len(count := run["skipped_iterations"].finite):
        rising = len(count) > 2 and bool(np.all(np.diff(count.value) >= 0)) and count.value[-1] > 0
        return Series(count.name, count.step, np.diff(count.value, prepend=0.0) if rising else count.value)
    if "overflow" in run and "loss" in run:  # messages of skipped steps, between the records of those that were not
        skipped = run["overflow"].where(run["overflow"].value > 0)
        step = np.union1d(skipped.step, run["loss"].step)
        return Series(skipped.name, step, np.isin(step, skipped.step).astype(np.float64))
    if "loss_scale" in run and len(scale := run["loss_scale"].finite) > 1:
        halved = scale.value[1:] < HALVED * scale.value[:-1]
        return Series(scale.name, scale.step, np.concatenate([[0.0], halved.astype(np.float64)]))
    return None


def _probing(run: Run, count: Series) -> int:
    """Return how many records belong to the descent from where the scaler began."""
    few = min(DESCENT, len(count) // 2)
    if count.step[0] > DESCENT:
        return few
    skipped = count.value > 0  # before the first halving there is none
    descent = len(skipped) if skipped[1:].all() else 1 + int(np.argmin(skipped[1:]))
    scale = run.series.get("loss_scale")
    below = np.empty(0) if scale is None else scale.step[scale.value < LEAST_HEALTHY]
    healthy = int(np.searchsorted(count.step, below[0])) if len(below) else len(skipped)
    return max(few, min(descent, healthy))


def descent_of(scale: Series, *, skips_at_end: bool) -> Descent | None:
    """Return the fall of a scale that ends below 1, at a 64th, or where steps are skipped even there, or is far.

    Args:
        scale: The loss scale, above zero.
        skips_at_end: Whether a step is skipped at its last record.
    """
    value, log = scale.value, np.log2(scale.value)
    sinks = log[-1] <= -OCTAVES and float(np.ptp(log)) >= OCTAVES and log[-1] < log[0]
    least = bool(value[-1] < LEAST_HEALTHY or (skips_at_end and value[-1] == LEAST_HEALTHY))
    if (least and value[0] > LEAST_HEALTHY) or sinks:
        low = len(log) - 1
        top = int(np.flatnonzero(log == log.max())[-1])
        return Descent(top, low, float(log[top] - log[low]))
    start = min(len(log) - 1, max(DESCENT, int(DESCENT_SHARE * len(log))))
    fall = np.maximum.accumulate(log[start:]) - log[start:]
    if float(fall.max()) < OCTAVES:
        return None
    low = start + int(np.argmax(fall))
    top = start + int(np.flatnonzero(log[start : low + 1] == log[start : low + 1].max())[-1])
    return Descent(top, low, float(log[top] - log[low]))
