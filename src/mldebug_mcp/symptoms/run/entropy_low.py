"""Policy entropy near zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import (
    ENTROPIES,
    NOT_POLICY,
    TEXT_POLICIES,
    averaged,
    entropy,
    reward,
    seems_to_learn,
)
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, departure, end_level, start_level
from mldebug_mcp.text import counted, figure

COLLAPSED = 0.01
"""Axolotl, for GRPO: 0.05 to 0.5 is healthy, below 0.01 the policy has collapsed."""
SHARE_OF_START = 0.1
"""For discrete actions in classic RL: what is left of the entropy at the start, which is ln(actions). By hand."""
LEAST_RECORDS = 5
FLOOR = 1e-4
NEAR_BEST = 0.05
"""Of the way that the return has come: so near to its best it has come there. Chosen by hand."""


@symptom(any_of=ENTROPIES, sources=("axolotl_stability", "rahtz_reproducing"), not_for=NOT_POLICY, background=0.006)
def entropy_low(run: Run) -> Evidence | None:
    """The policy is nearly deterministic at the end of the log.

    Not this when: entropy falls slowly and keeps clear of zero, which is learning; single records touch zero; the agent
    of a game has come to its best return meanwhile, and needs no chance any more; actions are continuous, whose
    entropy goes below zero without meaning anything (then it is unknown).
    """
    series = entropy(run)
    value = series.value
    if len(value) < LEAST_RECORDS:
        raise CannotTell(f"entropy has {counted(len(value), 'finite value')} here; {LEAST_RECORDS} are needed")
    if float(value.min()) < -1e-3:
        raise CannotTell("entropy goes below zero, as that of continuous actions does: it has no floor to be near to")
    start, end = start_level(value), end_level(value)
    limit = COLLAPSED if run.kind in TEXT_POLICIES else max(COLLAPSED, SHARE_OF_START * start)
    if end >= limit:
        return None
    above = np.flatnonzero(value >= limit)
    below = float(series.step[int(above[-1]) + 1 if len(above) and above[-1] + 1 < len(value) else 0])
    # Entropy decays exponentially: where it begins to collapse is seen in the logarithm.
    fall = departure(np.log(np.maximum(value, FLOOR)), float(np.log(max(end, FLOOR)))) if start >= limit else 0
    onset, solved = min(float(series.step[fall]), below), _is_solved(run)
    return Evidence(
        f"entropy is below {figure(limit)} from {run.step_name} {figure(below)} on and ends at {figure(end)}; "
        f"it began at {figure(start)} and turns down at {run.step_name} {figure(onset)}"
        f"{'; the reward has risen meanwhile and is at its best' if solved else ''}",
        steps=(onset, below),
        values={"start": start, "end": end, "limit": limit},
        present=not solved,
    )


def _is_solved(run: Run) -> bool:
    """Say whether the agent of a game has come to its best return, and stays there."""
    if run.kind in TEXT_POLICIES or not seems_to_learn(run):
        return False
    level = blocks(averaged(run, reward(run)).value, 10).level
    return float(level[-1]) >= float(level.max()) - NEAR_BEST * float(np.ptp(level))
