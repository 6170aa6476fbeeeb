"""Where the log ends, against its plan and its clock."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.plan import Plan, plan_of
from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beginning import has_finished
from mldebug_mcp.measure.pace import RATES, step_times
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told
from mldebug_mcp.text import figure

_SAID = {"error": "it ends in an error", "interrupted": "it was interrupted", "cut": "its last line is cut off"}
_FAILURES = ("error_message", "out_of_memory_error", "collective_timeout", "device_error")


LAST = 6
"""Records that are the end of a log. Chosen: what hangs does so at once, or within a few steps."""
BEFORE = 8
"""Records before these. Chosen: among fewer there may be no evaluation and no checkpoint."""
SLOWER, BEYOND = 10.0, 5.0
"""Times the usual step, and the slowest before. Chosen: evaluations and checkpoints came before as well."""


def last_steps_slow(run: Run) -> Evidence | None:
    """Among the last steps before the log ends early are some that take far longer than any before.

    What hangs often stutters first. Not this when: steps as slow came before, as for an evaluation.
    """
    if not any(run.with_role(Quantity.STEP_TIME, *RATES, phase="train", parts=True)):
        raise CannotTell("not logged: how long a step takes")
    times = step_times(run, BEFORE + LAST)
    before, last = times.value[:-LAST], times.value[-LAST:]
    slowest, usual = float(last.max()), median(before)
    if slowest < max(SLOWER * usual, BEYOND * float(before.max())):
        return None
    step = float(times.step[-LAST:][int(np.argmax(last > BEYOND * float(before.max())))])
    return Evidence(
        f"from {run.place(step)} on, just before the log ends, steps take up to "
        f"{figure(slowest / usual)} times as long as before",
        steps=(step,),
        values={"factor": slowest / usual},
    )


def log_falls_silent(run: Run) -> Evidence:
    """Lines of the log, or a recorder's watchdog, go on with the time, but no record comes for far longer than before.

    Not this when: the plan was reached, or the run says that it finished; a fatal error stands at the end; the
    silence is less than five minutes or ten times the usual distance of records.
    """
    plan = plan_of(run)
    planned = f", at {plan.unit} {figure(plan.reached)} of {figure(plan.planned)}" if plan is not None else ""
    said = f"the log falls silent after {run.place(run.last_step)}{planned}: {run.ending.text}"
    return Evidence(said, steps=(run.last_step,), values=_values(plan) if plan is not None else {})


def log_stops(run: Run) -> Evidence | None:
    """The log ends before the number of steps or epochs that was planned.

    A run that is still going looks the same. Not this when: the next record would lie beyond the plan; the run says
    that it finished, or was set to stop early (remarks); the log is the state saved with a checkpoint.
    """
    plan = plan_of(run)
    if plan is None:
        raise CannotTell("the planned number of steps or epochs is not known, or is counted in another unit")
    if plan.is_done:
        return None
    if "hf_trainer_state" in run.formats and not has_finished(run):
        raise CannotTell(
            f"the state ends at {plan.unit} {figure(plan.reached)} of {figure(plan.planned)}, but it is written with "
            "each checkpoint: where the run ended is not seen"
        )
    harmless = _harmless(run)
    last = (
        f"; {_SAID[run.ending.how]}{f': {run.ending.text}' * bool(run.ending.text)}" if run.ending.how in _SAID else ""
    )
    return Evidence(
        f"the log stops at {plan.reached / plan.planned:.0%} of the plan, {plan.unit} {figure(plan.reached)} of "
        f"{figure(plan.planned)}{harmless or last}",
        steps=(run.last_step,),
        values=_values(plan),
        present=not harmless,
    )


def _values(plan: Plan) -> dict[str, float]:
    return {"reached": plan.reached, "planned": plan.planned, "share": plan.reached / plan.planned}


def _harmless(run: Run) -> str:
    if has_finished(run):
        return f", and it says that it finished: {run.ending.text}"
    if any("early_stop" in name.lower() or name.lower() == "patience" for name in run.config):
        return "; the configuration asks for early stopping"
    return ""


@question(
    outcome_of(log_stops, 0.3, as_chosen=True, follows=_FAILURES),
    outcome_of(last_steps_slow, 0.003, of="log_stops", as_chosen=True),
    outcome_of(log_falls_silent, 0.005, "bloom_176b_chronicles", as_chosen=True, follows=_FAILURES),
    whole_run=True,
)
def end_of_log(run: Run) -> Answers:
    """Say whether the log falls silent, or ends before its plan."""
    if run.ending.how == "silence":
        return {"log_falls_silent": log_falls_silent(run)}
    stops = told(by_outcome((log_stops,), run))
    slow = isinstance(stops.get("log_stops"), Evidence)
    return {**stops, **told(by_outcome((last_steps_slow,), run))} if slow else stops
