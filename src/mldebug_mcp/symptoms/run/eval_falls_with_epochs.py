"""Evaluation falls as training does where training falls from epoch to epoch."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import compared
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.data_order import loss_epoch_steps
from mldebug_mcp.text import figure

FALLEN = 0.5
"""Of what it was at the first boundary: that far must evaluation come down. Chosen by hand."""
BESIDE = 2.0
"""... to no more than so many times the training loss. Chosen by hand."""
LEAST_EVALUATIONS = 4


@symptom(
    needs=("loss", "eval_loss"),
    sources=("smol_playbook",),
    not_for=("grpo", "ppo", "rl", "boosting"),
    whole_run=True,
    background=0.004,
)
def eval_falls_with_epochs(run: Run) -> Evidence | None:
    """The training loss falls in steps at the epoch boundaries, and the evaluation loss comes down with it.

    Such steps are rows known from the pass before; held-out rows have none. Not this when: training falls evenly, by
    what it learns; evaluation stays where it was or rises (`eval_gap_grows`). The shares were chosen by hand.
    """
    steps = loss_epoch_steps(run)
    if steps is None or not steps.present:
        raise CannotTell("the training loss does not fall in steps at epoch boundaries")
    both = compared(run, LEAST_EVALUATIONS)
    before = both.evaluation[both.steps <= steps.steps[0]]
    begun = float(before[-1]) if len(before) else float(both.evaluation[0])
    end = float(both.evaluation[-1])
    if end > FALLEN * begun or end > BESIDE * float(both.train[-1]):
        return None
    return Evidence(
        f"evaluation comes from {figure(begun)} to {figure(end)} while the training loss falls at the epoch "
        f"boundaries to {figure(float(both.train[-1]))}",
        steps=(steps.steps[0],),
        values={"begun": begun, "end": end, "train": float(both.train[-1])},
    )
