"""Warm-up as long as the whole run."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(needs=(), sources=("tuning_playbook",), whole_run=True, background=0.01, as_chosen=True)
def warmup_exceeds_plan(run: Run) -> Evidence | None:
    """The configured warm-up takes as many steps as are planned, or more: the peak rate is never reached.

    Not this when: the plan leaves steps behind the warm-up; unknown where the configuration does not give both. Shares
    and passes are turned into steps first. The bound is arithmetic.
    """
    warmup, plan = run.facts.schedule.warmup_steps, run.facts.plan
    if warmup is None or plan is None:
        raise CannotTell("the configuration does not tell both the warm-up and the planned number of steps")
    if warmup < plan:
        return None
    reached = f"at most {figure(100 * plan / warmup)} % of the peak rate is reached"
    return Evidence(
        f"a warm-up of {figure(warmup)} steps in a run planned for {figure(plan)}: {reached}",
        values={"warmup": warmup, "planned": plan, "share": plan / warmup},
    )
