"""Schedule ended before the run."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.rounding import ends_by_rounding
from mldebug_mcp.text import figure

SHARE = 0.1
"""A cosine is within a thousandth of its peak of its end for the last 2 % of its length, so a tenth is more than a
schedule gives."""
STILL_LEARNS = 0.15
"""Of the peak: a rate that stays at more than this was meant to, as where weights are averaged from there on. Chosen by
hand: schedules that are given a floor have one of a tenth at most."""
SMOOTH = 5
"""Rates between the peak and the floor that make a decay gradual: a step schedule may well end in a long last stage."""


@symptom(needs=("learning_rate",), sources=("karpathy_recipe",), points=20, background=0.03)
def lr_schedule_short(run: Run) -> Evidence | None:
    """The learning rate falls gradually to its lowest value and stays there for the rest of the run.

    Not this when: the schedule ends with the run; it goes down in a few stages, the last of which may be long; it is
    constant; what it stays at is no small share of the peak. How long the rest must be, a tenth of the log, was chosen
    by hand.
    """
    rate = run["learning_rate"].finite
    peak_at = int(np.argmax(rate.value))
    peak, floor = float(rate.value[peak_at]), float(rate.value[-1])
    after = rate.value[peak_at:]
    low = after <= floor + 0.001 * peak
    rest = int(np.argmin(low[::-1])) if not low.all() else 0
    if peak <= 0 or floor > STILL_LEARNS * peak or rest < max(5, SHARE * len(rate)):
        return None
    if len(np.unique(after[(after > floor + 0.01 * peak) & (after < 0.99 * peak)])) < SMOOTH:
        return None
    if ends_by_rounding(rate.value, rest / len(rate)):
        raise CannotTell("the learning rate is printed with too few decimals to tell where its schedule ends")
    first = float(rate.step[len(rate) - rest])
    return Evidence(
        f"learning_rate reaches its lowest value, {figure(floor)}, at {run.step_name} {figure(first)} and stays there "
        f"to {figure(float(rate.step[-1]))}: {rest / len(rate):.0%} of the log; its peak is {figure(peak)}",
        steps=(first,),
        values={"floor": floor, "peak": peak, "share_after": rest / len(rate)},
    )
