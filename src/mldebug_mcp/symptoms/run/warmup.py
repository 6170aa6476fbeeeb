"""How does the warm-up stand to the plan, and does the rate follow it?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.beginning import is_late
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.rate import Shape, rate_of, shape_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

NEAR_PEAK = 0.95
"""Share of the peak at which a rate is at it. Chosen: a schedule decays by less in its first records."""
EARLY, FIRST_STEPS, FIRST_SHARE = 0.01, 2.0, 0.05
"""Share of the run, and steps, in which the log must begin, and records that hold the peak. Chosen: short warm-ups."""
LEAST = 5
"""Rates that must be logged to tell where the peak is. Chosen: fewer show no course."""
MOST = 0.55
"""Share of the plan. Chosen: warm-ups are 1 to 10 % of it as a rule, and one cycle has its peak at 30 to 50 %."""
HALF = 0.5
"""Of the warm-up. Chosen: a rate that is at its peak sooner did not warm up as configured."""


@question(
    Outcome(
        "warmup_exceeds_plan",
        """The configured warm-up takes as many steps as are planned, or more: the peak rate is never reached.

        Not this when: the plan leaves steps behind the warm-up; unknown where the configuration does not give both.
        """,
        background=0.01,
        sources=("tuning_playbook",),
        as_chosen=True,
    ),
    Outcome(
        "warmup_takes_most",
        """The configured warm-up takes more than half of the planned steps, but not all.

        Not this when: the schedule is a cycle that goes up and down; unknown where the configuration does not give
        both.
        """,
        background=0.015,
        as_chosen=True,
    ),
    Outcome(
        "lr_skips_warmup",
        """A warm-up is configured, and the logged learning rate is at its peak before half of it is over.

        Not this when: the configured schedule is a constant one, which in Transformers ignores the warm-up; the log
        begins late, or holds a resume; the warm-up is less than two records long.
        """,
        background=0.01,
        needs=("learning_rate",),
    ),
    Outcome(
        "lr_no_warmup",
        """The learning rate is at its peak from the first steps on.

        Many healthy fine-tunes have no warm-up: by itself this says little. Not this when: a warm-up is configured; the
        log begins after it, or is too coarse to show it.
        """,
        background=0.3,
        sources=("goyal_2017", "tuning_playbook"),
        needs=("learning_rate",),
        as_chosen=True,
    ),
    whole_run=True,
)
def warmup(run: Run) -> Answers:
    """Compare the warm-up with the plan, then the logged rate with the warm-up."""
    by_plan, by_log = _beside_plan(run), _beside_log(run)
    seen = any(isinstance(one, Evidence) for one in by_plan.values())
    return by_plan if seen else {**by_plan, **by_log}


def _beside_plan(run: Run) -> Answers:
    steps, plan = run.facts.schedule.warmup_steps, run.facts.plan
    if steps is None or plan is None:
        why = CannotTell("the configuration does not tell both the warm-up and the planned number of steps")
        return {"warmup_exceeds_plan": why, "warmup_takes_most": why}
    values = {"warmup": steps, "planned": plan}
    said = f"a warm-up of {figure(steps)} steps in a run planned for {figure(plan)}"
    if steps >= plan:
        reached = f"at most {figure(100 * plan / steps)} % of the peak rate is reached"
        return {"warmup_exceeds_plan": Evidence(f"{said}: {reached}", values={**values, "share": plan / steps})}
    if steps < MOST * plan or "cyc" in (run.facts.schedule.kind or "").lower():
        return {}
    left = f"{figure(plan - steps)} steps are left behind it"
    return {"warmup_takes_most": Evidence(f"{said}: {left}", values={**values, "share": steps / plan})}


def _beside_log(run: Run) -> Answers:
    rate = rate_of(run)
    names = ("lr_skips_warmup", "lr_no_warmup")
    if rate is None or float(rate.value.max()) <= 0:
        return {}
    if len(rate) < LEAST:
        return dict.fromkeys(names, CannotTell(f"{len(rate)} learning rates are logged; {LEAST} are needed"))
    configured = run.facts.schedule.warmup_steps
    if configured or (run.setting("warmup_ratio") or 0.0) > 0:
        return _skipped(run, rate, configured or 0.0)
    return {"lr_skips_warmup": CannotTell("no warm-up is configured"), **_unwarmed(run, rate)}


def _unwarmed(run: Run, rate: Series) -> Answers:
    first, peak = float(rate.step[0]), float(rate.value.max())
    if run.kind == "rl":
        return {"lr_no_warmup": CannotTell("agents are trained without a warm-up as a rule")}
    if is_late(run, first, EARLY, FIRST_STEPS) and run.setting("warmup_steps") is None:
        why = f"the first learning rate is logged at {run.step_name} {figure(first)}: a warmup before it would not show"
        return {"lr_no_warmup": CannotTell(why)}
    if float(rate.value[0]) < NEAR_PEAK * peak or int(np.argmax(rate.value)) > FIRST_SHARE * len(rate) + 1:
        return {}
    said = f"learning_rate is {figure(float(rate.value[0]))} at {run.step_name} {figure(first)}; its peak is"
    values = {"first": float(rate.value[0]), "peak": peak}
    return {"lr_no_warmup": Evidence(f"{said} {figure(peak)}", steps=(first,), values=values)}


def _skipped(run: Run, rate: Series, configured: float) -> Answers:
    """Say whether the rate is at its peak at two records before half of the configured warm-up is over."""
    ignored = shape_of(run) is Shape.CONSTANT and "warm" not in (run.facts.schedule.kind or "")
    if run.step_name != "step" or ignored or family_of(run) is Family.SELF_SET or run.resumes:
        return {"lr_skips_warmup": CannotTell("the schedule, or where the log begins, does not tell")}
    early = rate.where(rate.step <= HALF * configured)
    if len(early) < 2 or run.last_step < configured:
        return {"lr_skips_warmup": CannotTell("fewer than two rates of the first half of the warm-up are logged")}
    peak, at, value = float(rate.value.max()), float(early.step[1]), float(early.value[1])
    if float(early.value[:2].min()) < NEAR_PEAK * peak:
        return {}
    skipped = Evidence(
        f"learning_rate is {figure(value)} at {run.step_name} {figure(at)}, its peak {figure(peak)}; a warm-up of "
        f"{figure(configured)} steps is configured",
        steps=(float(early.step[0]),),
        values={"rate": value, "peak": peak, "warmup": configured},
    )
    return {"lr_skips_warmup": skipped}
