"""Do two held-out sets say the same of the model?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.evaluation import beside_training, evaluation_losses
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 4
"""Evaluations of each. Chosen: halves then hold two."""
FOLLOWS, APART, OPENED = 1.5, 3.0, 2.0
"""Times the training loss up to which a set follows it; times the loss of that set which another has, and times more
than at first. Chosen: sets that are drawn alike differ by some per cent."""


@symptom(needs=("loss",), not_for=("grpo", "ppo", "rl", "preference"), whole_run=True, background=0.003)
def held_out_sets_part(run: Run) -> Evidence | None:
    """One held-out set follows the training loss down, and another, which began beside it, stays behind or gets worse.

    Not this when: they lay as far apart at first, as sets of different kinds do; none follows the training loss.
    """
    sets = [one.finite for one in evaluation_losses(run) if len(one.finite) >= LEAST]
    if len(sets) < 2:
        raise CannotTell(f"no two held-out sets have {LEAST} losses")
    best, worst = (key(sets, key=lambda one: median(one.value[-2:])) for key in (min, max))
    steps, train, low = beside_training(run["loss"].finite, best)
    if len(low) < LEAST or train[-1] <= 0 or not np.array_equal(best.step, worst.step):
        return None
    first, last = _times(best, worst, slice(None, 2)), _times(best, worst, slice(-2, None))
    if median(low[-2:]) > FOLLOWS * median(train[-2:]) or last < max(APART, OPENED * first):
        return None
    return Evidence(
        f"{best.name} follows the training loss to {figure(best.value[-1])}, and {worst.name} is "
        f"{figure(worst.value[-1])}: {figure(last)} times as much, {figure(first)} times at first",
        steps=(float(steps[0]),),
        values={"first": first, "last": last},
    )


def _times(best: Series, worst: Series, part: slice) -> float:
    return median(worst.value[part]) / max(median(best.value[part]), 1e-12)
