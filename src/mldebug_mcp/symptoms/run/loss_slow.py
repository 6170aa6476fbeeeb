"""Progress much slower than usual."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.slow import EPOCHS, slow


@symptom(
    needs=("loss",),
    sources=("axolotl_stability",),
    points=EPOCHS,
    settled=True,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.01,
    follows=("loss_plateau", "loss_epoch_steps", "eval_learns_nothing"),
    instead=NO_PROGRESS,
)
def loss_slow(run: Run) -> Evidence | None:
    """The training loss falls by little and as fast at the end as at the beginning: the curve has not bent yet.

    Not this when: the rate is not logged, and at this pace the loss is gone within a thousand steps; the model knows
    something already; the log is an excerpt from the middle of a run; the rate still warms up; there is no progress at
    all (`loss_plateau`). Time counts by the learning rate spent, where it is logged, so that a decay of the rate does
    not bend the curve. The shares were chosen on synthetic curves.
    """
    return slow(run)
