"""How does the warm-up stand to the plan, and does the rate follow it?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.beginning import is_late
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.rate import Shape, rate_of, shape_of
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen
from mldebug_mcp.text import figure

NEAR_PEAK = 0.95
"""Share of the peak at which a rate is at it. Chosen: a schedule decays by less in its first records."""
EARLY, FIRST_STEPS, FIRST_SHARE = 0.01, 2.0, 0.05
"""Share of the run, and steps, in which the log must begin, and records that hold the peak. Chosen: short warm-ups."""
LEAST = 5
"""Rates that must be logged to tell where the peak is. Chosen: fewer show no course."""
HALF = 0.5
"""Of the warm-up. Chosen: a rate that is at its peak sooner did not warm up as configured."""


def warmup_exceeds_plan(run: Run) -> Evidence | None:
    """The configured warm-up takes as many steps as are planned, or more: the peak rate is never reached.

    Not this when: the plan leaves steps behind the warm-up; unknown where the configuration does not give both.
    """
    steps, plan = run.facts.schedule.warmup_steps, run.facts.plan
    if steps is None or plan is None:
        raise CannotTell("the configuration does not tell both the warm-up and the planned number of steps")
    if steps < plan:
        return None
    return Evidence(
        f"a warm-up of {figure(steps)} steps in a run planned for {figure(plan)}: at most {figure(100 * plan / steps)} "
        "% of the peak rate is reached",
        values={"warmup": steps, "planned": plan, "share": plan / steps},
    )


def _configured(run: Run) -> float | None:
    """Return the configured warm-up in steps, None if there is none; 0 where only its share is known."""
    steps = run.facts.schedule.warmup_steps
    return steps or 0.0 if steps or (run.setting("warmup_ratio") or 0.0) > 0 else None


def _rate(run: Run) -> Series:
    rate = rate_of(run)
    if rate is None or len(rate) < LEAST or float(rate.value.max()) <= 0:
        raise CannotTell(f"fewer than {LEAST} learning rates are logged, or none above zero")
    return rate


def lr_skips_warmup(run: Run) -> Evidence | None:
    """A warm-up is configured, and the logged learning rate is at its peak before half of it is over.

    Not this when: the configured schedule is a constant one, which in Transformers ignores the warm-up; the log
    begins late, or holds a resume; the warm-up is less than two records long.
    """
    rate, configured = _rate(run), _configured(run)
    if configured is None:
        raise CannotTell("no warm-up is configured")
    ignored = shape_of(run) is Shape.CONSTANT and "warm" not in (run.facts.schedule.kind or "")
    if run.step_name != "step" or ignored or family_of(run) is Family.SELF_SET or run.resumes:
        raise CannotTell("the schedule, or where the log begins, does not tell")
    early = rate.where(rate.step <= HALF * configured)
    if len(early) < 2 or run.last_step < configured:
        raise CannotTell("fewer than two rates of the first half of the warm-up are logged")
    peak, at, value = float(rate.value.max()), float(early.step[1]), float(early.value[1])
    if float(early.value[:2].min()) < NEAR_PEAK * peak:
        return None
    return Evidence(
        f"learning_rate is {figure(value)} at {run.place(at)}, its peak {figure(peak)}; a warm-up of "
        f"{figure(configured)} steps is configured",
        steps=(float(early.step[0]),),
        values={"rate": value, "peak": peak, "warmup": configured},
    )


def lr_no_warmup(run: Run) -> Evidence | None:
    """The learning rate is at its peak from the first steps on.

    Many healthy fine-tunes have no warm-up: by itself this says little. Not this when: a warm-up is configured; the
    log begins after it, or is too coarse to show it.
    """
    rate = _rate(run)
    if run.kind == "rl":
        raise CannotTell("agents are trained without a warm-up as a rule")
    if _configured(run) is not None:
        return None
    at, first, peak = float(rate.step[0]), float(rate.value[0]), float(rate.value.max())
    if is_late(run, at, EARLY, FIRST_STEPS) and run.setting("warmup_steps") is None:
        raise CannotTell(f"the first learning rate is logged at {run.place(at)}: a warmup before it would not show")
    if first < NEAR_PEAK * peak or int(np.argmax(rate.value)) > FIRST_SHARE * len(rate) + 1:
        return None
    said = f"learning_rate is {figure(first)} at {run.place(at)}; its peak is {figure(peak)}"
    return Evidence(said, steps=(at,), values={"first": first, "peak": peak})


@question(
    outcome_of(warmup_exceeds_plan, 0.001, "tuning_playbook", as_chosen=True),
    outcome_of(lr_skips_warmup, 0.01, needs=("learning_rate",)),
    outcome_of(lr_no_warmup, 0.3, "goyal_2017", "tuning_playbook", needs=("learning_rate",), as_chosen=True),
    whole_run=True,
)
def warmup(run: Run) -> Answers:
    """Compare the warm-up with the plan, then the logged rate with the warm-up."""
    return first_seen(by_outcome((warmup_exceeds_plan, lr_skips_warmup, lr_no_warmup), run))
