"""Embeddings that have come together: no spread is left, or any two views of anything are alike."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 8
LEFT, GONE = 0.1, 0.003
"""A standard deviation is gone at this share of its highest and below this number: spread evenly over a sphere of 2048
dimensions, more than are in use, embeddings of unit length have 0.022 each."""
ALIKE, SOON = 0.002, 0.25
"""A mean cosine comes so near to 1 within this share of the run and stays there: a predictor that has to tell images
apart takes all of it, and ends further off. All were chosen by hand."""
_SPREAD = re.compile(
    r"(?:.*[_/])?(?:feat(?:ure)?s?|emb(?:edding)?s?|repr(?:esentation)?s?|proj(?:ection)?s?|outputs?|z\d?|latent)"
    r"[_/]std(?:_mean|_avg)?",
    re.IGNORECASE,
)


@symptom(any_of=("loss", "*std*"), not_for=("grpo", "ppo", "rl", "preference", "pretraining", "sft"), background=0.002)
def embedding_spread_gone(run: Run) -> Evidence | None:
    """The standard deviation of embeddings falls to nearly zero, or a negative cosine similarity to exactly -1.

    All inputs then have one embedding, which is alike for any two views. Not this when: the spread was as small from
    the start; the loss comes near -1 only late, as an overlap (Dice) may that is nearly perfect.
    """
    spreads = [run[name].finite for name in run.series if _SPREAD.fullmatch(name) and len(run[name].finite) >= LEAST]
    found = next((evidence for one in spreads if (evidence := _vanishes(run, one)) is not None), None)
    if found is not None:
        return found
    loss = run["loss"].finite if "loss" in run else None
    if loss is not None and len(loss) >= LEAST and -1 - 1e-3 <= float(loss.value.min()) < 0:
        return _alike(run, loss)
    if not spreads:
        raise CannotTell("neither a spread of embeddings nor a negative cosine similarity is logged")
    return None


def _vanishes(run: Run, spread: Series) -> Evidence | None:
    later, highest = spread.value[len(spread) // 2 :], float(spread.value.max())
    if not 0 <= median(later) < min(GONE, LEFT * highest) or float(later.max()) > LEFT * highest:
        return None
    at = int(np.argmax(spread.value < LEFT * highest))
    return Evidence(
        f"{spread.name} falls from {figure(highest)} to {figure(median(later))} and stays there from {run.step_name} "
        f"{figure(float(spread.step[at]))} on",
        steps=(float(spread.step[at]),),
        values={"highest": highest, "later": median(later)},
    )


def _alike(run: Run, loss: Series) -> Evidence | None:
    apart = np.flatnonzero(loss.value > -1 + ALIKE)
    since = int(apart[-1]) + 1 if len(apart) else 0
    if since > SOON * len(loss) or since == len(loss):
        return None
    return Evidence(
        f"loss is {figure(median(loss.value[since:]))} from {run.step_name} {figure(float(loss.step[since]))} to the "
        "end: a negative cosine similarity that is -1, its least value, for all",
        steps=(float(loss.step[since]),),
        values={"level": median(loss.value[since:])},
    )
