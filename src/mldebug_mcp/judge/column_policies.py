"""What the columns of a policy say together: how old its samples are, and whether its task is solved."""

from __future__ import annotations

from collections.abc import Iterator

from mldebug_mcp.checks.policies import kept_rise
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure
from mldebug_mcp.judge.column_pairs import LEAST_PAIRS, MIN_RECORDS_FOR_LEVEL, POLICIES, columns_of, named
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.models.diagnosis import DerivedFact

# What a policy earns, and what other scores say of the same answers.


SOLVED = 0.9
"""Share of right answers from which on a task is solved. Chosen."""
UNSOLVED = 0.5
"""Share of right answers at first, below which it was not. Chosen."""


def solved_with_reward(run: Run) -> Iterator[DerivedFact]:
    """Yield that a share of right answers rises to nearly all together with the reward that is trained."""
    rise = kept_rise(run) if run.kind in POLICIES else None
    if rise is None:
        return
    for score in columns_of(run, Quantity.ACCURACY, Quantity.SUCCESS_RATE, least=MIN_RECORDS_FOR_LEVEL):
        first, last = median(score.value[:LEAST_PAIRS]), median(score.value[-MIN_RECORDS_FOR_LEVEL:])
        if first >= UNSOLVED or not SOLVED <= last <= 1:
            continue
        yield DerivedFact.model_construct(
            fact="solved_with_reward",
            text=(
                f"{named(score)} rises from {figure(first)} to {figure(last)} while the reward rises from "
                f"{figure(rise[0])} to {figure(rise[1])} and stays: the answers are right, too. Where nearly all are "
                "right, little entropy, small gradients and groups of equal rewards are to be expected."
            ),
            values={"first": first, "last": last},
        )
        return


STALE = 16.0
"""Updates by which the policy that samples lags behind, from which on it is old. Chosen: a few are usual."""
FEW_EFFECTIVE = 0.5
"""Share of the samples that is effective, below which weights of a few rule. Chosen: fresh samples have nearly 1."""


def stale_policy(run: Run) -> Iterator[DerivedFact]:
    """Yield how old the policy that samples becomes, and which share of its samples is effective."""
    ages = columns_of(run, Quantity.POLICY_AGE, least=MIN_RECORDS_FOR_LEVEL)
    effective = columns_of(run, Quantity.EFFECTIVE_SAMPLES, least=MIN_RECORDS_FOR_LEVEL)
    oldest = float(ages[0].value.max()) if ages else 0.0
    share = median(effective[0].value) if effective else 1.0
    parts = [f"{named(ages[0])} goes up to {figure(oldest)}"] if oldest >= STALE else []
    if share < FEW_EFFECTIVE and float(effective[0].value.max()) <= 1:
        lowest = figure(float(effective[0].value.min()))
        parts.append(f"{named(effective[0])} is about {figure(share)} (median), and {lowest} at the least")
    if parts:
        yield DerivedFact.model_construct(
            fact="stale_policy",
            text=f"{'; '.join(parts)}. Samples of a policy that is a few updates old nearly all count.",
            values={"oldest": oldest, "effective": share},
        )
