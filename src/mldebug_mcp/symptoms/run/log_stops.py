"""The log ends before the planned end."""

from __future__ import annotations

from mldebug_mcp.logs.plan import plan_of
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.beginning import has_finished
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

_SAID = {
    "error": "it ends in an error",
    "interrupted": "it was interrupted",
    "silence": "it fell silent",
    "cut": "its last line is cut off",
}


@symptom(
    whole_run=True,
    background=0.3,  # a run that is still going
    as_chosen=True,
    follows=("error_message", "out_of_memory_error", "collective_timeout", "device_error"),
)
def log_stops(run: Run) -> Evidence | None:
    """The log ends before the number of steps or epochs that was planned.

    Not this when: only the last logging interval is missing; the run says that it finished, or was set to stop early
    (remarks); the log is the state saved with a checkpoint, which ends where the checkpoint was written. A run that is
    still going looks the same, hence the high background. The slack was chosen by hand.
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
        f"the log ends at {plan.unit} {figure(plan.reached)} of {figure(plan.planned)} "
        f"({plan.reached / plan.planned:.0%}){harmless or last}",
        steps=(run.last_step,),
        values={"reached": plan.reached, "planned": plan.planned, "share": plan.reached / plan.planned},
        present=not harmless,
    )


def _harmless(run: Run) -> str:
    if has_finished(run):
        return f", and it says that it finished: {run.ending.text}"
    if any("early_stop" in name.lower() or name.lower() == "patience" for name in run.config):
        return "; the configuration asks for early stopping"
    return ""
