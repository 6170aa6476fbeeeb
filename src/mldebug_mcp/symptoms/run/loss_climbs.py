"""A language model's loss turns and climbs slowly."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.rise import rise_for_good
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, monotone
from mldebug_mcp.text import figure

BLOCKS = 20
LONG = 5
"""Blocks of the log, a quarter of it, over which the loss climbs."""
RISE = 0.03
"""Of the lowest level. Other data, or a longer context, change a language model's loss at one step. Chosen by hand."""
SIGMAS = 6.0
STEADY = 0.85
"""Rank correlation with time from the lowest block on: the loss climbs, it does not step up."""
AT_ONCE = 0.6
"""Of the rise: more than this from one block to the next is a step."""


@symptom(
    needs=("loss",),
    sources=("small_scale_proxies",),
    points=3 * BLOCKS,
    not_for=("grpo", "ppo", "rl", "preference", "boosting"),
    background=0.002,
    follows=("loss_rises", "loss_hump"),
    instead=("loss_divergence",),
)
def loss_climbs(run: Run) -> Evidence | None:
    """The training loss turns after it has come down, and climbs by 3 % or more over the last quarter of the log.

    Of the fall from the first loss that may be little, as most of that fall is easy. Not this when: it steps up at
    once, as with other data; it comes down again; it rises far (`loss_divergence`, where this is unknown). Judged only
    where the lowest level lies before the last quarter.
    """
    if rise_for_good(run) is not None:
        raise CannotTell("the loss diverges, which says more")
    loss = run["loss"].finite
    cut = blocks(loss.value, BLOCKS)
    best = int(np.argmin(cut.level))
    after = cut.level[best:]
    rise = float(after[-1] - after[0])
    if best == 0 or len(after) <= LONG:
        raise CannotTell("the loss does not turn well before the end of the log")
    if rise < max(RISE * abs(float(after[0])), SIGMAS * cut.wobble):
        return None
    if monotone(after) < STEADY or float(np.diff(after).max()) > AT_ONCE * rise:
        return None
    onset = float(loss.step[int(cut.first[best])])
    return Evidence(
        f"loss turns at {run.step_name} {figure(onset)} and climbs from {figure(float(after[0]))} to "
        f"{figure(float(after[-1]))} up to the end",
        steps=(onset,),
        values={"lowest": float(after[0]), "end": float(after[-1])},
    )
