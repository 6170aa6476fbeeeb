"""One jump of the loss, over at once."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_spike import jumps, refuse_densities
from mldebug_mcp.text import figure

AT_ONCE = 0.02
"""The jump is over within this share of the log, or three records."""


@symptom(needs=("loss",), sources=("idefics_80b_chronicles",), points=12, not_for=("grpo", "ppo", "rl"), background=0.4)
def loss_spike_single(run: Run) -> Evidence | None:
    """The training loss jumps once in the whole log and is back within a few records.

    Not this when: it jumps again; it climbs before it jumps or takes long to come back, as instabilities do. Of a
    log-density it cannot be told. The length was chosen by hand. Judged only where the loss jumps at all, so that one
    jump does not count twice.
    """
    loss = run["loss"].finite
    found = jumps(run)
    if not found:
        raise CannotTell("the loss does not jump")
    refuse_densities(loss, found[0])
    if len(found) > 1 or not found[0].recovered:
        return None
    spike = found[0]
    width = spike.last - spike.first + 1
    if width > max(3, AT_ONCE * len(loss)):
        return None
    at = float(loss.step[spike.first])
    return Evidence(
        f"the jump at {run.step_name} {figure(at)} is the only one in {len(loss)} records and lasts {width} of them",
        steps=(at,),
        values={"width_records": width},
    )
