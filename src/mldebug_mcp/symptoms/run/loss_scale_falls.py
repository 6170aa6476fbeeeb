"""The loss scaler halves again and again."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.messages import matching
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST_HEALTHY = 1.0
"""OPT-175B restarted only from where the scale was at least 1."""
OCTAVES = 6
"""A healthy scaler goes up and down by one or two halvings; this many net are a fall. Chosen by hand."""
AGAIN = 3
"""Overflows at the smallest scale that are more than probing; chosen by hand."""
SHORT, STILL_FALLS = 20, 2
"""In so few records a scale that is so many halvings down at the end may be on its way to nothing; chosen by hand."""
PROBING = 0.05
"""Over this share of the log, or 20 records, a scaler that began too high halves down to where it fits: above 1. Down
to a 64th, a fall by so many halvings counts wherever it stands in an excerpt."""


_MESSAGE = re.compile(r"loss scale: ([\d.e+]+), reducing to ([\d.e+]+)")


@symptom(needs=(), sources=("opt_175b", "opt_175b_logbook", "pytorch_docstrings"), background=0.004)
def loss_scale_falls(run: Run) -> Evidence | None:
    """The loss scale of half-precision training falls by many halvings, or below 1.

    Not this when: it halves down from a high start in the first steps; it goes up and down by a halving or two, which
    is how a dynamic scaler finds its limit. Without the scale as a metric, messages of the scaler that it is down to
    1 count.
    """
    if "loss_scale" not in run:
        return _in_messages(run)
    scale = run["loss_scale"].finite
    scale = scale.where(scale.value > 0)
    if not len(scale):
        return None
    if float(np.ptp(scale.value)) == 0:
        skipped = "overflow" in run and bool(run["overflow"].value.any())
        down = skipped and float(scale.value[0]) < LEAST_HEALTHY
        return _below_one(run, scale) if down else _at_the_floor(run, scale)
    log = np.log2(scale.value)
    start = min(len(log) - 1, max(20, int(PROBING * len(log))))
    fall = np.maximum.accumulate(log[start:]) - log[start:]
    sinks = log[-1] <= -OCTAVES and float(np.ptp(log)) >= OCTAVES and log[-1] < log[0]
    if float(scale.value[-1]) < LEAST_HEALTHY < float(scale.value[0]) or sinks or _overflows_at_the_floor(run, scale):
        # From the top of the last descent on.
        top = int(np.flatnonzero(log == log.max())[-1])
        low = len(log) - 1
    elif float(fall.max()) >= OCTAVES:
        low = start + int(np.argmax(fall))
        top = start + int(np.flatnonzero(log[start : low + 1] == log[start : low + 1].max())[-1])
    else:
        if len(log) <= SHORT and log[-1] == log.min() and log[0] - log[-1] >= STILL_FALLS:
            raise CannotTell(f"the scale still falls where the log ends, at {figure(float(scale.value[-1]))}")
        return None
    first = float(scale.step[min(top + 1, low)])
    return Evidence(
        f"loss_scale falls from {figure(float(scale.value[top]))} at {run.step_name} {figure(float(scale.step[top]))} "
        f"to {figure(float(scale.value[low]))} at {figure(float(scale.step[low]))}",
        steps=(first, float(scale.step[low])),
        values={
            "from": float(scale.value[top]),
            "to": float(scale.value[low]),
            "halvings": float(log[top] - log[low]),
        },
    )


def _overflows_at_the_floor(run: Run, scale: Series) -> bool:
    """Say whether the scale came down to the least that scalers go to, and a step was skipped even there."""
    skipped = run["overflow"].at(float(scale.step[-1])) if "overflow" in run else None
    return bool(skipped) and float(scale.value[-1]) <= LEAST_HEALTHY < float(scale.value[0])


def _below_one(run: Run, scale: Series) -> Evidence:
    """Tell of a scale below 1 at which a step is skipped: no scaler begins there, so that it came down unseen."""
    low, first = float(scale.value[0]), float(scale.step[0])
    return Evidence(
        f"loss_scale is down to {figure(low)} at {run.step_name} {figure(first)}",
        steps=(first,),
        values={"from": LEAST_HEALTHY, "to": low, "halvings": float(-np.log2(low))},
    )


def _at_the_floor(run: Run, scale: Series) -> Evidence | None:
    """Say whether steps overflow again and again with a scale that can fall no further."""
    overflows = run["overflow"].between(float(scale.step[0]), float(scale.step[-1])) if "overflow" in run else ()
    if len(overflows) < AGAIN or scale.value[0] > LEAST_HEALTHY:
        return None
    return Evidence(
        f"steps are skipped for overflow {len(overflows)} times from {run.step_name} {figure(float(scale.step[0]))} on "
        f"though loss_scale is down to {figure(float(scale.value[0]))}",
        steps=(float(scale.step[0]), float(scale.step[-1])),
        values={"from": float(scale.value[0]), "to": float(scale.value[0]), "halvings": 0.0},
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
