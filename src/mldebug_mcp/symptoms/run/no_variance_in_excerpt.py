"""No reward variance in the few records there are."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.reward_std_zero import LEAST_RECORDS, without_variance
from mldebug_mcp.text import counted, figure


@symptom(
    any_of=("frac_reward_zero_std", "reward_std"), sources=("axolotl_stability",), not_for=NOT_POLICY, background=0.1
)
def no_variance_in_excerpt(run: Run) -> Evidence | None:
    """In every one of a few records, too few to speak of the run, nearly all groups have the same reward.

    Not this when: one of the records has some variance; there are ten records or more (`reward_std_zero`). A sound run
    has such records now and then.
    """
    series, dead = without_variance(run)
    if not 0 < len(dead) < LEAST_RECORDS:
        raise CannotTell(
            f"{series.name} has {counted(len(dead), 'value')}: of excerpts of fewer than {LEAST_RECORDS} only"
        )
    if not dead.all():
        return None
    return Evidence(
        f"{series.name} is {figure(float(series.value[-1]))} at {run.step_name} {figure(float(series.step[-1]))}: "
        f"groups without variance in all {counted(len(dead), 'record')} there are",
        steps=(float(series.step[0]),),
        values={"records": float(len(dead))},
    )
