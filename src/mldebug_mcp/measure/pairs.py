"""Pairs of answers in preference training: how far both move, and whether anything sets them apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import edge_width, median, noise

DEFAULT_BETA = 0.1
"""Strength of the pull to the reference where the settings do not say. Source: TRL's default (trl_docs)."""
LEAST_RECORDS, EARLY = 8, 0.05
"""Records without which no change is told, and share of the run that may be missing before a first reward. Chosen: by
hand."""
REFERENCE_FREE = 0.7
"""The implicit rewards of a policy that is its own reference begin at zero. Where the first one is this share of the
largest, and far beyond the noise, they are no log-ratios (SimPO, ORPO). Chosen: by hand."""
NO_REWARD = 1e-6
"""Implicit rewards up to this size never left zero. Chosen: what rounding leaves."""
REWARDS = ("rewards/chosen", "rewards/rejected")
LOGPS = ("logps/chosen", "logps/rejected")


@dataclass(frozen=True, slots=True)
class Change:
    """How far one curve moved over the run, in nats, and the error of that."""

    by: float
    error: float


@dataclass(frozen=True, slots=True)
class Changes:
    """How far the log-probabilities of both answers moved.

    Args:
        unit: Where the figures are from.
        chosen: Of the chosen answers.
        rejected: Of the rejected answers.
        began: Log-probability of the chosen answers at the start, 0 where it is not logged.
    """

    unit: str
    chosen: Change
    rejected: Change
    began: float


def has_changes(run: Run) -> bool:
    """Say whether the log-probabilities of both answers, or rewards that stand for them, are logged."""
    return _source(run) is not None


def changes(run: Run) -> Changes | None:
    """Return how far both answers moved, None where that is not logged or in fewer than `LEAST_RECORDS` records.

    The implicit rewards are preferred: they are log-ratios to the reference, free of the length of the answers.
    """
    names = _source(run)
    if names is None:
        return None
    beta = (run.setting("beta") or DEFAULT_BETA) if names is REWARDS else 1.0
    unit = f"from the rewards over beta = {beta:.4g}" if names is REWARDS else "from logps"
    chosen, rejected = (_change(run, name, beta, origin_is_zero=names is REWARDS) for name in names)
    return None if chosen is None or rejected is None else Changes(unit, chosen, rejected, _began(run))


def _source(run: Run) -> tuple[str, str] | None:
    has_logps = all(name in run for name in LOGPS)
    if all(name in run for name in REWARDS) and not _are_free_of_reference(run):
        return LOGPS if has_logps and _are_zero(run) else REWARDS
    return LOGPS if has_logps else None


def _are_zero(run: Run) -> bool:
    """Say whether the rewards never leave zero, as where the reference is trained too: then they tell of no fall."""
    return not any(np.abs(run[name].finite.value).max(initial=0.0) > NO_REWARD for name in REWARDS)


def _are_free_of_reference(run: Run) -> bool:
    """Say whether the rewards begin far from zero: then they are no log-ratios to what training begins with."""
    values = run["rewards/chosen"].finite.value
    if len(values) < LEAST_RECORDS or run.first_step > EARLY * run.last_step:
        return False
    begun = abs(float(values[0]))
    return begun > max(REFERENCE_FREE * float(np.abs(values).max()), 3 * noise(values))


def _began(run: Run) -> float:
    values = run["logps/chosen"].finite.value if "logps/chosen" in run else np.empty(0)
    return median(values[: edge_width(len(values))]) if len(values) else 0.0


def _change(run: Run, name: str, unit: float, *, origin_is_zero: bool) -> Change | None:
    values = run[name].finite.value / unit
    if len(values) < LEAST_RECORDS:
        return None
    edge = max(edge_width(len(values)), len(values) // 8)
    start = 0.0 if origin_is_zero else median(values[:edge])
    return Change(median(values[-edge:]) - start, 1.25 * noise(values) * float(np.sqrt(2 / edge)))


@dataclass(frozen=True, slots=True)
class Apart:
    """How far apart chosen and rejected answers are, against how large both are.

    Args:
        metric: What it is taken from.
        steps: Steps at which both were logged, shape (n,).
        apart: Size of their difference there, shape (n,).
        size: Size of the larger one there, shape (n,).
    """

    metric: str
    steps: Floats
    apart: Floats
    size: Floats


def apart(run: Run, names: tuple[str, str]) -> Apart | None:
    """Return the difference of a pair of metrics in the records that hold both, None where there are none."""
    found = _both(run, names)
    if found is None:
        return None
    steps, chosen, rejected = found
    size = np.maximum(np.abs(chosen), np.abs(rejected))
    return Apart(" and ".join(names), steps, np.abs(chosen - rejected), size)


def margin_of(run: Run) -> Series | None:
    """Return by how much the reward of the chosen answer is higher, where both are logged; None without them."""
    found = _both(run, REWARDS)
    if found is None:
        return None
    steps, chosen, rejected = found
    return Series(" - ".join(REWARDS), steps, chosen - rejected)


def _both(run: Run, names: tuple[str, str]) -> tuple[Floats, Floats, Floats] | None:
    """Return the steps at which both metrics were logged, and their values there; None where there are none."""
    if not all(name in run for name in names):
        return None
    chosen, rejected = (run[name].finite for name in names)
    steps, one, other = np.intersect1d(chosen.step, rejected.step, return_indices=True)
    return (steps, chosen.value[one], rejected.value[other]) if len(steps) else None
