"""Whether the outcome depends on the seed: the same training again, from other initial weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from .report import Report
from .subject import State, Subject
from .training import Curve, Plan, find_rate, train, train_as_user

OTHER_SEEDS = 2
SHARE = 0.25
"""Share of the time left that other seeds may take: a separate question, asked only if it is cheap."""
LARGEST = 3_000_000
"""Parameters above which a second model is not made."""

Again = Callable[[int], Subject]
"""Builds the subject again with a seed."""


def other_seeds(
    subject: Subject, first: Curve, plan: Plan, *, rate: float | None, seed: int, again: Again, report: Report
) -> dict[str, Any] | None:
    """Train with other seeds as in the first run, and return how each run ended, the first among them.

    Args:
        subject: What was trained, with its initial weights.
        first: How that went.
        plan: How to train.
        rate: Learning rate of the probe's own loop; None to search for one, as the first run did.
        seed: The first run's seed.
        again: Builds the subject again.
        report: Where it is noted if that fails.

    Returns:
        `fixed`: the user's code sets its seed itself, so ours changes nothing. None where it takes too long.
    """
    if first.ended not in ("goal", "steps") or sum(one.numel() for one in subject.model.parameters()) > LARGEST:
        return None
    if OTHER_SEEDS * (first.seconds + subject.build_seconds) > SHARE * (plan.deadline - time.monotonic()):
        return None
    runs = [_ending(seed, first)]
    try:
        for number in range(seed + 1, seed + 1 + OTHER_SEEDS):
            other = again(number)
            if _alike(subject, other):
                return {"fixed": True, "runs": runs}
            if other.train_step is None:
                other.batch = subject.batch
            runs.append(_ending(number, _trained(other, plan, rate)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code, which may not bear a second call
        report.note(f"other seeds were not tried: {type(error).__name__} was raised when everything was built again")
        return None
    return {"fixed": False, "runs": runs}


def _trained(other: Subject, plan: Plan, rate: float | None) -> Curve:
    other.model.train()
    if other.train_step is None and other.optimizer is None:
        return train(other, plan, rate or find_rate(other, plan, State(other))[0])
    return train_as_user(other, plan)


def _ending(seed: int, curve: Curve) -> dict[str, Any]:
    last = curve.losses[-1] if curve.losses else None
    return {"seed": seed, "steps": len(curve.losses), "ended": curve.ended, "final_loss": last}


def _alike(one: Subject, other: Subject) -> bool:
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)
