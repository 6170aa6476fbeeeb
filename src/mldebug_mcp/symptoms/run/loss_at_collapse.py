"""Loss of an embedding at what it is when all inputs get the same one."""

from __future__ import annotations

import math
from fnmatch import fnmatch

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

TRIPLET = ("*triplet*",)
CONTRASTIVE = ("*contrastive*", "*infonce*", "*info_nce*", "nce", "nce_loss", "*_nce_loss", "*nt_xent*", "*ntxent*")
USUAL_MARGINS = (0.1, 0.2, 0.3, 0.5, 1.0, math.log(2))
"""ln 2 is that of the soft margin, ln(1 + exp(0)) (triplet_reid_issue_30)."""
USUAL_BATCHES = tuple(2**power for power in range(3, 17))
NEAR, SPREAD = 0.005, 0.01
"""How near to it the loss stays over the later half, and how little it varies there: of triplets that are only hard, as
where those that are easy are left out of the mean, it stays about the margin too, but it goes up and down. Both were
chosen by hand."""
LEAST = 8


@symptom(
    any_of=(*TRIPLET, *CONTRASTIVE),
    sources=("triplet_reid_issue_30",),
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.002,
)
def loss_at_collapse(run: Run) -> Evidence | None:
    """A triplet loss stays exactly at its margin, or a contrastive loss at the logarithm of the number of candidates.

    That is their value when all inputs have the same embedding, or embeddings that say nothing. Not this when: the loss
    varies about it, or goes on from there. The margin and the batch size are taken from the configuration, else
    usual ones are tried.
    """
    found = None
    for name, series in run.series.items():
        known = _levels(run, name)
        one = series.finite
        if not known or len(one) < LEAST:
            continue
        found = found or one
        later = one.value[len(one) // 2 :]
        level = median(later)
        beside = next((each for each in known if abs(level - each) <= NEAR * each), None)
        if beside is not None and level > 0 and float(np.ptp(later)) <= SPREAD * level:
            return _evidence(run, one, later, beside)
    if found is None:
        raise CannotTell(f"no loss of an embedding has {LEAST} finite values")
    return None


def _levels(run: Run, name: str) -> tuple[float, ...]:
    """Return the losses that equal embeddings would have, none if the metric is not the loss of an embedding."""
    lowered = name.lower()
    if any(fnmatch(lowered, pattern) for pattern in TRIPLET):
        margin = run.setting("margin")
        return (margin,) if margin else USUAL_MARGINS
    if any(fnmatch(lowered, pattern) for pattern in CONTRASTIVE):
        rows = run.setting("batch_size") or run.setting("per_device_train_batch_size")
        # Against the rows of the other view, or against all rows of both views but itself (SimCLR).
        return tuple(math.log(each) for size in ((rows,) if rows else USUAL_BATCHES) for each in (size, 2 * size - 1))
    return ()


def _evidence(run: Run, loss: Series, later: Floats, beside: float) -> Evidence:
    first = float(loss.step[len(loss) - len(later)])
    return Evidence(
        f"{loss.name} is {figure(median(later))} from {run.step_name} {figure(first)} to the end, between "
        f"{figure(float(later.min()))} and {figure(float(later.max()))}: equal embeddings have {figure(beside)}",
        steps=(first,),
        values={"level": median(later), "of_equal_embeddings": beside, "spread": float(np.ptp(later))},
    )
