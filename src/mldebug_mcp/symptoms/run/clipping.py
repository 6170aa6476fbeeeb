"""How much of the gradient does clipping take?"""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.gradients import norm_of, pinned
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told, with_attribute
from mldebug_mcp.text import figure

LEAST = 5
"""Norms. Chosen: all of them, then, and by so much."""
SHARE = 0.95
"""Share of the records that are clipped, or stand at the threshold. Chosen: nearly every step."""
FACTOR, AT = 5.0, 0.01
"""Times the threshold: far above the 90th percentile of norms, where one clips; within this share a norm stands at it.
Source: tuning_playbook; logs are rounded."""
MOST = 50.0
"""Times the threshold. Chosen: 98 % of each gradient is cut off."""
LOW = 0.05
"""A tiny threshold: practice lies between 0.1, for policies, and 1. Source: axolotl_stability."""


def grad_clip_saturated(threshold: float, norm: Series | None) -> Evidence | None:
    """The gradient norm lies above the clipping threshold at nearly every step, typically by several times.

    One that is logged after clipping stands exactly at it instead. Not this when: only the first steps are clipped.
    """
    if norm is None:
        return None
    if len(norm) < LEAST:
        raise CannotTell(f"grad_norm has {len(norm)} finite values; {LEAST} are needed")
    clipped, typical, at = norm.value > threshold, median(norm.value), pinned(norm)
    stands = at is not None and abs(at.value / threshold - 1) < AT and at.share >= SHARE
    if not stands and (clipped.mean() < SHARE or typical < FACTOR * threshold):
        return None
    return Evidence(
        f"grad_norm is {'at' if stands else 'above'} the clipping threshold {figure(threshold)} in "
        f"{at.share if stands and at else clipped.mean():.0%} of {len(norm)} records; its median is {figure(typical)}",
        steps=(float(norm.step[0 if stands else int(np.argmax(clipped))]),),
        values={"share": float(clipped.mean()), "median": typical, "threshold": threshold},
    )


def grad_clip_takes_most(saturated: Evidence) -> Evidence | None:
    """The typical gradient norm is fifty times the clipping threshold, or more.

    Not this when: it is a few times above.
    """
    return saturated if saturated.values["median"] >= MOST * saturated.values["threshold"] else None


def grad_clip_low(threshold: float, norm: Series | None) -> Evidence | None:
    """The threshold that gradients are clipped to is configured to 0.05 or less.

    Not this when: it is 0, which switches clipping off; the gradient norm that is logged stays below it.
    """
    if threshold > LOW or (norm is not None and float(norm.value.max()) <= threshold):
        return None
    summary = f"max_grad_norm is {figure(threshold)}; most configurations have 0.1 to 1.0"
    return Evidence(summary, values={"max_grad_norm": threshold})


@question(
    outcome_of(grad_clip_saturated, 0.06, "tuning_playbook", needs=("grad_norm",)),
    outcome_of(grad_clip_takes_most, 0.005, of="grad_clip_saturated"),
    outcome_of(grad_clip_low, 0.01, "axolotl_stability", "opt_175b", as_chosen=True),
)
def clipping(run: Run) -> Answers:
    """Compare the gradient norm with the threshold, then the threshold with what is usual."""
    threshold = run.facts.clip
    norm = norm_of(run) if "grad_norm" in run else None
    if threshold is None:
        return _pinned(norm)
    if math.isinf(threshold):
        return {}
    answers = told(by_outcome((grad_clip_saturated,), threshold, norm))
    if isinstance(answers.get("grad_clip_saturated"), Evidence):
        return with_attribute(answers, "grad_clip_saturated", grad_clip_takes_most)
    return {**answers, **told(by_outcome((grad_clip_low,), threshold, norm))}


def _pinned(norm: Series | None) -> Answers:
    """Judge a norm without a threshold to compare it with: one that stands at its highest value is cut off there."""
    at = None if norm is None or len(norm) < LEAST else pinned(norm)
    if at is None or at.share < SHARE:
        raise CannotTell("the clipping threshold (max_grad_norm) is not in the configuration")
    said = Evidence(
        f"grad_norm stands at {figure(at.value)} in {at.share:.0%} of {at.records} records and is never above, as "
        "one that is clipped",
        steps=(at.step,),
        values={"share": at.share, "threshold": at.value},
    )
    return {"grad_clip_saturated": said, "grad_clip_low": CannotTell("the threshold is not in the configuration")}
