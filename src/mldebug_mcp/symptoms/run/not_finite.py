"""Is the training loss finite, and if not, how is it lost?"""

from __future__ import annotations

from collections.abc import Callable

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.not_finite import Lost, first_lost, training_losses
from mldebug_mcp.symptoms import lost_loss
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import told

POLICIES = ("grpo", "ppo", "rl")
"""Kinds of run whose loss says nothing by its size: what leads to a NaN counts there, and not the rest."""
LOST = lost_loss.loss_nonfinite.__name__

Way = Callable[[Run, Lost], Evidence | None]
ANY: tuple[Way, ...] = (
    lost_loss.loss_climbs_to_nan,
    lost_loss.gradient_lost_first,
)
OF_A_LEVEL: tuple[Way, ...] = (
    lost_loss.loss_nonfinite_at_first,
    lost_loss.loss_nonfinite_in_warmup,
    lost_loss.loss_nonfinite_passes,
    lost_loss.nonfinite_spreads,
    lost_loss.loss_nan_alone,
)
"""What is told of a loss that is a level, and of no policy's."""


@question(
    outcome_of(lost_loss.loss_nonfinite, 0.001, "axolotl_stability", instead=("logits_grow",)),
    outcome_of(lost_loss.nan_steps_counted, 0.005),
    outcome_of(lost_loss.loss_nonfinite_at_first, 0.03, of=LOST, as_chosen=True),
    outcome_of(lost_loss.loss_nonfinite_in_warmup, 0.1, "bekman_mle", of=LOST, as_chosen=True),
    outcome_of(lost_loss.loss_nonfinite_passes, 0.001, of=LOST),
    outcome_of(lost_loss.nonfinite_spreads, 0.02, of=LOST),
    outcome_of(lost_loss.loss_climbs_to_nan, 0.25, "axolotl_stability", of=LOST, instead=("grad_norm_growing",)),
    outcome_of(lost_loss.gradient_lost_first, 0.2, "axolotl_stability", of=LOST),
    outcome_of(lost_loss.loss_nan_alone, 0.0005, of=LOST),
)
def not_finite(run: Run) -> Answers:
    """Say whether the training loss is finite, and if not, how it is lost."""
    losses = training_losses(run)
    if not losses:
        raise CannotTell("not logged: loss")
    loss = first_lost(losses)
    if loss is None:
        return told({"nan_steps_counted": lambda: lost_loss.nan_steps_counted(run)})
    policy = run.kind in POLICIES
    untold = {one.__name__: CannotTell(f"not judged for a run of kind {run.kind}") for one in OF_A_LEVEL if policy}
    judged = ANY if policy else ANY + OF_A_LEVEL
    said = told({one.__name__: _bound(one, run, loss) for one in judged})
    return {LOST: lost_loss.loss_nonfinite(run, loss), **untold, **said}


def _bound(tell: Way, run: Run, loss: Lost) -> Callable[[], Evidence | None]:
    return lambda: tell(run, loss)
