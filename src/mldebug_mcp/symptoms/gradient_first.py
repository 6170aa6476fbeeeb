"""Evidence that the gradient norm had left its level before something befell the loss."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.gradient_lead import gradient_lead
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure


def gradient_left_level(run: Run, step: float, what: str) -> Evidence | None:
    """Return what the gradient norm did before a step, None if it kept its level.

    Args:
        run: The run.
        step: The step at which something befell the loss.
        what: What that was, in words.

    Raises:
        CannotTell: the norm is not logged there, or is neither calm nor clearly above its level.
    """
    lead = gradient_lead(run, step)
    if lead is None:
        raise CannotTell("the gradient norm is not logged in enough records before, or stands at a clip")
    if lead.since is None:
        if not lead.calm:
            raise CannotTell(f"grad_norm is up to {figure(lead.last)} before, after up to {figure(lead.highest)}")
        return None
    return Evidence(
        f"grad_norm goes from a level of {figure(lead.level)}, and {figure(lead.highest)} at most, to "
        f"{figure(lead.last)} from {run.step_name} {figure(lead.since)} on; {what}",
        steps=(lead.since,),
        values={"level": lead.level, "last": lead.last, "factor": lead.last / lead.level},
    )
