"""Does half precision overflow: does its loss scale fall, are numbers lost, or are steps skipped again and again?"""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.precision import in_half_precision
from mldebug_mcp.measure.precision import overflow as numbers_lost
from mldebug_mcp.measure.scaler import AGAIN, LEAST_HEALTHY, descent_of, skips_of
from mldebug_mcp.symptoms.messages import matching
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

SHORT, STILL_FALLS = 20, 2
"""In so few records a scale that is so many halvings down may be on its way to nothing. Chosen: a descent's length."""
SHARE, FEW = 0.05, 3
"""Share of the steps that are skipped, and their number. Chosen: scalers that try every 100 steps skip one in 100."""
IN_A_ROW = 4
"""Skipped steps on end. Chosen: a scaler that probes needs one or two."""
_MESSAGE = re.compile(r"loss scale: ([\d.e+]+), reducing to ([\d.e+]+)")


def loss_scale_falls(run: Run) -> Evidence | None:
    """The loss scale of half-precision training falls by many halvings, or below 1.

    Not this when: it halves down from a high start in the first steps; it goes up and down by a halving or two. Without
    the scale as a metric, messages of the scaler that it is down to 1 count.
    """
    if "loss_scale" not in run:
        return _in_messages(run)
    scale = run["loss_scale"].finite
    scale = scale.where(scale.value > 0)
    if not len(scale):
        return None
    if float(np.ptp(scale.value)) == 0:
        return _at_the_floor(run, scale)
    skipped = run["overflow"].at(float(scale.step[-1])) if "overflow" in run else None
    fall = descent_of(scale, skips_at_end=bool(skipped))
    if fall is None:
        if len(scale) <= SHORT and scale.value[-1] == scale.value.min() <= scale.value[0] / 2**STILL_FALLS:
            raise CannotTell(f"the scale still falls where the log ends, at {figure(scale.value[-1])}")
        return None
    top, low = (figure(scale.value[at]) for at in (fall.top, fall.low))
    first, last = float(scale.step[min(fall.top + 1, fall.low)]), float(scale.step[fall.low])
    return Evidence(
        f"loss_scale falls from {top} at {run.place(scale.step[fall.top])} to {low} at {figure(last)}",
        steps=(first, last),
        values={"from": float(scale.value[fall.top]), "to": float(scale.value[fall.low]), "halvings": fall.halvings},
    )


def _at_the_floor(run: Run, scale: Series) -> Evidence | None:
    """Tell of a scale that no scaler begins with and at which steps are skipped: it came down unseen."""
    value, first, last = float(scale.value[0]), float(scale.step[0]), float(scale.step[-1])
    skipped = run["overflow"].where(run["overflow"].value > 0) if "overflow" in run else None
    times = 0 if skipped is None else len(skipped.between(first, last))
    if skipped is None or not len(skipped) or value > LEAST_HEALTHY or (value == LEAST_HEALTHY and times < AGAIN):
        return None
    return Evidence(
        f"loss_scale is down to {figure(value)} at {run.place(first)}, and steps are skipped for overflow "
        f"{max(times, 1)} times even so",
        steps=(first, last),
        values={"from": LEAST_HEALTHY, "to": value, "halvings": float(-np.log2(value))},
    )


def _in_messages(run: Run) -> Evidence | None:
    said = [match for message in matching(run, _MESSAGE) if (match := _MESSAGE.search(message.text))]
    if not said:
        raise CannotTell("not logged: loss_scale")
    first, last = float(said[0][1]), float(said[-1][2])
    if last > LEAST_HEALTHY or first <= last:
        raise CannotTell(f"the scaler says that it goes down to {figure(last)}; the loss scale itself is not logged")
    return Evidence(
        f"the loss scaler says {len(said)} times that it reduces the scale, from {figure(first)} to {figure(last)}",
        steps=(run.first_step,),
        values={"from": first, "to": last, "messages": len(said)},
    )


def overflows_in_fp16(run: Run) -> Evidence | None:
    """The loss, or the gradient norm again and again, is NaN or infinite, and the run computes in half precision.

    Fp16 holds no number above 65504. Not this when: the precision is another one, which rules overflow of fp16 out; a
    loss scaler loses single steps. Unknown where all is finite, or where nothing tells the precision.
    """
    lost = numbers_lost(run)
    if lost is None:
        raise CannotTell("the loss and the gradient norm are finite, or not logged")
    half = in_half_precision(run)
    if half is None:
        raise CannotTell("neither the settings nor a loss scale tell the precision")
    if not half:
        return None
    return Evidence(
        f"{lost.series} is not finite in {lost.lost} of {lost.records} records, from {run.place(lost.step)} on, and "
        "the run computes in fp16",
        steps=(lost.step,),
        values={"lost": float(lost.lost), "share": lost.lost / lost.records},
    )


def steps_skipped(run: Run) -> Evidence | None:
    """Optimizer steps are skipped again and again because gradients overflow.

    Not this when: single steps far apart are skipped (a dynamic scaler probes for its limit), or the first steps.
    The counter of the log is read, or its messages, or else each halving of the loss scale counts.
    """
    if "overflow" in run and set(run.series) <= {"overflow", "loss_scale", "epoch"}:
        raise CannotTell("only skipped steps are logged: how many there were between them is not known")
    skips = skips_of(run)
    if skips is None:
        raise CannotTell("not logged: skipped_iterations or loss_scale")
    count, late = skips.count, skips.late
    if not (count.value > 0).any():
        return None
    records, first = int((count.value > 0).sum()), float(count.step[int(np.argmax(count.value > 0))])
    onset = float(count.step[int(np.argmax(late > 0))]) if late.any() else first
    return Evidence(
        f"skipped steps in {records} of {len(count)} records, the first at {run.place(first)}, at most "
        f"{skips.longest} on end after the first {skips.probing}",
        steps=(onset,),
        values={"records": records, "share": skips.share, "longest": skips.longest},
        present=skips.longest >= IN_A_ROW or (skips.share > SHARE and float(late.sum()) >= FEW),
    )


ask_in_turn(
    "overflow",
    reading(loss_scale_falls, sources=("opt_175b", "opt_175b_logbook", "pytorch_docstrings"), background=0.004),
    reading(overflows_in_fp16, sources=("bekman_mle", "opt_175b_logbook"), background=0.1, as_chosen=True),
    reading(
        steps_skipped,
        sources=("pytorch_docstrings", "opt_175b_logbook"),
        background=0.01,
        instead=("loss_scale_falls",),
    ),
)
