"""The policy does not move at all."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import NOT_POLICY, averaged, trend
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

MOVES = ("approx_kl", "kl", "clip_ratio")
"""What is above zero as soon as a policy has taken one step away from the one that sampled, or from its reference."""
LEAST_RECORDS = 10
STILL = 1e-6
"""A divergence that rounding in float32 leaves of two policies that are one; that of a usual update is a thousand times
as large. Chosen by hand."""
SHOWN_BY = ("entropy", "reward")
"""What changes for good only where the policy does."""


@symptom(any_of=MOVES, not_for=NOT_POLICY, background=0.004, follows=("reward_std_zero",))
def policy_stands_still(run: Run) -> Evidence | None:
    """The divergence of the policy from where it was, and its clipping, are zero to within rounding in every record.

    Not this when: each batch is used for one step and the reference is not part of the loss, where zero is right: then
    only a divergence from the reference would show movement, or the entropy or the reward does. Without variance of
    rewards there is nothing to move it (`reward_std_zero`). The number of records was chosen by hand.
    """
    logged = {name: run[name].finite for name in MOVES if name in run}
    if min(len(series) for series in logged.values()) < LEAST_RECORDS:
        raise CannotTell(f"fewer than {LEAST_RECORDS} records of {', '.join(logged)}")
    if set(logged) == {"clip_ratio"}:
        raise CannotTell("no divergence of the policy is logged: clipping is zero by itself where a batch is used once")
    most = max(float(np.abs(series.value).max()) for series in logged.values())
    if most > STILL:
        return None
    if (shown := _moves(run)) is not None:
        raise CannotTell(f"{shown}: the policy moves, whatever divergence is logged")
    first = min(float(series.step[0]) for series in logged.values())
    return Evidence(
        f"{' and '.join(logged)} are {f'at most {figure(most)}' if most else 'exactly 0'} in every record from "
        f"{run.step_name} {figure(first)} on",
        steps=(first,),
        values={"records": min(len(series) for series in logged.values())},
    )


def _moves(run: Run) -> str | None:
    """Return what shows that the policy moves, or None."""
    for name in SHOWN_BY:
        series = averaged(run, run[name].finite) if name in run else None
        if series is not None and len(series) >= LEAST_RECORDS and (change := trend(series)):
            return f"{name} moves by {change:+.2g}"
    return None
