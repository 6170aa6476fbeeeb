"""Loss of an embedding at what it is when all inputs get the same one."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatch

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
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
DIVERGENCE = ("*kl*", "*KL*")
_DIVERGENCE = re.compile(r"(?:train[_/])?(?:vae_)?kl(?:d|_loss|_div(?:ergence)?(?:_loss)?)?")
_RECONSTRUCTION = re.compile(r"recon|(?:^|_)rec(?:_|$)|vae_r_loss")
GONE, LEFT = 0.02, 0.02
"""A divergence from the prior stays below this many nats and this share of its highest value over the later half. In
a run that uses its code it rises from where it began, or falls to some share of it; a weight of it, as latent
diffusion's 1e-6, makes it small from the start. Both were chosen by hand."""


@symptom(
    any_of=(*TRIPLET, *CONTRASTIVE, *DIVERGENCE),
    sources=("triplet_reid_issue_30",),
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.002,
)
def loss_at_collapse(run: Run) -> Evidence | None:
    """A triplet loss stays exactly at its margin, or a contrastive loss at the logarithm of the number of candidates.

    That is their value when all inputs have the same embedding, or embeddings that say nothing. So has the code of a
    variational autoencoder whose divergence from the prior (KL) vanishes beside a loss of reconstruction.
    Not this when: the loss varies about it, or goes on from there; the divergence has always been small, or rises
    again. The margin and the batch size are taken from the configuration, else usual ones are tried.
    """
    found = None
    for name, series in run.series.items():
        known = _levels(run, name)
        one = series.finite
        vanishing = _is_divergence(run, name)
        if not (known or vanishing) or len(one) < LEAST:
            continue
        found = found or one
        later = one.value[len(one) // 2 :]
        if vanishing:
            if _vanishes(one.value, later):
                return _evidence(run, one, later, 0.0)
            continue
        level = median(later)
        beside = next((each for each in known if abs(level - each) <= NEAR * each), None)
        if beside is not None and level > 0 and float(np.ptp(later)) <= SPREAD * level:
            return _evidence(run, one, later, beside)
    if found is None:
        raise CannotTell(f"no loss of an embedding has {LEAST} finite values")
    return None


def _is_divergence(run: Run, name: str) -> bool:
    """Say whether a metric is the divergence of a variational autoencoder's code from its prior."""
    return _DIVERGENCE.fullmatch(name.lower()) is not None and any(
        _RECONSTRUCTION.search(other.lower()) for other in run.series
    )


def _vanishes(value: Floats, later: Floats) -> bool:
    highest = float(value.max())
    gone = float(later.min()) >= 0 and float(later.max()) <= min(GONE, LEFT * highest)
    return highest > 0 and gone and float(value[-1]) <= 2 * median(later)


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
    what = "equal embeddings have" if beside else f"it was {figure(float(loss.value.max()))}, and equal codes have"
    return Evidence(
        f"{loss.name} is {figure(median(later))} from {run.step_name} {figure(first)} to the end, between "
        f"{figure(float(later.min()))} and {figure(float(later.max()))}: {what} {figure(beside)}",
        steps=(first,),
        values={"level": median(later), "of_equal_embeddings": beside, "spread": float(np.ptp(later))},
    )
