"""Means over epochs of which none is as low as the first."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.beginning import PASSES
from mldebug_mcp.symptoms.quality import as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.terms import refuse_new_terms
from mldebug_mcp.text import figure

LEAST = 6
ABOVE = 1.05
"""Times the first mean: so high stands the median of the later ones, which noise alone does not explain."""
FAR_ABOVE, SOON, MANY = 1.25, 10, 30
"""Times the first record: so high stands the median of what follows the first tenth of so many records of steps."""
DONE = 0.85
"""An accuracy from which on training has nothing left to gain. All were chosen by hand."""


@symptom(
    needs=("loss",),
    points=LEAST,
    not_for=("grpo", "ppo", "rl", "preference", "diffusion"),
    background=0.0007,
    follows=(
        "accuracy_below_chance",
        "loss_divergence",
        "loss_rises",
        "loss_at_clip",
        "loss_above_start",
        "loss_nonfinite",
    ),
)
def loss_never_below_first(run: Run) -> Evidence | None:
    """No later epoch has a mean training loss as low as that of the first, in which the model was still untrained.

    Likewise no later round of boosting, each of which should bring the loss on its own rows down, and no record of
    steps after the first tenth, all of them far above the first.

    Not this when: the log begins later; a term of the loss sets in; the loss goes up steadily
    (`loss_divergence`, `loss_rises`); the accuracy is high already, or rises all the same.
    """
    loss = run["loss"].finite
    by_steps = _by_steps(run, loss)
    first, later = float(loss.value[0]), loss.value[len(loss) // SOON if by_steps else 1 :]
    if first <= 0 or float(later.min()) < first or median(later) < (FAR_ABOVE if by_steps else ABOVE) * first:
        return None
    beside = ""
    if "accuracy" in run and len(run["accuracy"].finite):
        shares = as_shares(run["accuracy"].finite.value).tolist()
        if shares[-1] > DONE or shares[-1] > 2 * shares[0]:
            return None
        beside = f"; accuracy goes from {figure(shares[0])} to {figure(shares[-1])}"
    return Evidence(
        f"loss is {figure(first)} in {run.step_name} {figure(float(loss.step[0]))}, and between "
        f"{figure(float(later.min()))} and {figure(float(later.max()))} in the last {len(later)} of "
        f"{len(loss)} records{beside}",
        steps=(float(loss.step[1]),),
        values={"first": first, "lowest": float(later.min()), "median": median(later)},
    )


def _by_steps(run: Run, loss: Series) -> bool:
    """Say whether the records are of single steps, and not means over all rows.

    Raises CannotTell if they tell nothing of where training began.
    """
    begin = float(loss.step[0])
    whole = run.kind == "boosting" or (run.step_name == "epoch" and bool(np.all(np.diff(loss.step) == 1)))
    if whole and begin > PASSES:
        raise CannotTell(f"the log begins at {run.step_name} {figure(begin)}")
    if not whole and (run.step_name != "step" or len(loss) < MANY):
        raise CannotTell("the records are no means over whole epochs, and too few to tell without")
    if not whole and begin > float(loss.step[1]) - begin:
        raise CannotTell(f"the log begins at step {figure(begin)}")
    refuse_new_terms(run)
    return not whole
