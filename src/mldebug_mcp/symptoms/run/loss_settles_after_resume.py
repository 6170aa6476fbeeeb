"""The loss jumps up at a resume and comes back down."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.loss_jump_at_resume import loss_jump_at_resume
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

BACK = 0.5
"""Of the jump: what must be made up again. Chosen by hand."""
LEAST = 6
LATER = 5


@symptom(
    needs=("loss",),
    sources=("bekman_mle",),
    points=8,
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
    background=0.0005,
    as_chosen=True,
)
def loss_settles_after_resume(run: Run) -> Evidence | None:
    """After a jump up at a resume the loss comes back by half of the jump or more.

    The weights are those of before, and what moves them has to settle anew. Not this when: the loss falls at the
    resume, or stays up. Judged only where the loss jumps (`loss_jump_at_resume`).
    """
    jump = loss_jump_at_resume(run)
    if jump is None or jump.values["jump"] <= 0:
        return None
    loss = run["loss"].finite
    after = loss.value[loss.step >= jump.steps[0]]
    if len(after) < LEAST:
        return None
    level = median(after[-max(LATER, len(after) // 4) :])
    if level > jump.values["before"] + (1 - BACK) * jump.values["jump"]:
        return None
    return Evidence(
        f"after the jump from {figure(jump.values['before'])} to {figure(jump.values['after'])} at {run.step_name} "
        f"{figure(jump.steps[0])} the loss comes back to {figure(level)}",
        steps=jump.steps[:1],
        values={"before": jump.values["before"], "after": jump.values["after"], "end": level},
    )
