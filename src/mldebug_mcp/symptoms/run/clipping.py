"""How much of the gradient does clipping take?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.gradients import Pinned, norm_of, pinned
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

LEAST = 10
"""Norms. Chosen: a share of nearly all needs that many."""
SHARE = 0.95
"""Share of the records that are clipped, or stand at the threshold. Chosen: nearly every step."""
FACTOR = 5.0
"""Times the threshold: far above the 90th percentile of norms, where one clips. Source: tuning_playbook."""
MOST = 50.0
"""Times the threshold. Chosen: 98 % of each gradient is cut off."""
AT = 0.01
"""A norm is that of the threshold to within this share. Chosen: rounding of logs."""
LOW = 0.05
"""A tiny threshold: practice lies between 0.1, for policies, and 1. Source: axolotl_stability."""


@question(
    Outcome(
        "grad_clip_saturated",
        """The gradient norm lies above the clipping threshold at nearly every step, typically by several times.

        Not this when: only the first steps are clipped; the norm is logged after clipping (`grad_norm_at_clip`).
        """,
        background=0.06,
        sources=("tuning_playbook",),
        needs=("grad_norm",),
    ),
    Outcome(
        "grad_clip_takes_most",
        """The typical gradient norm is fifty times the clipping threshold, or more.

        Not this when: it is a few times above.
        """,
        background=0.005,
        of="grad_clip_saturated",
        needs=("grad_norm",),
    ),
    Outcome(
        "grad_norm_at_clip",
        """The logged gradient norm stands exactly at the clipping threshold in nearly every record and never above it.

        That is a norm which is logged after clipping, of a run in which nearly every step is clipped. Not this when: no
        threshold is configured; some of the norms are above it.
        """,
        background=0.03,
        needs=("grad_norm",),
    ),
    Outcome(
        "grad_clip_low",
        """The threshold that gradients are clipped to is configured to 0.05 or less.

        Not this when: it is 0, which switches clipping off; the gradient norm that is logged stays below it.
        """,
        background=0.01,
        sources=("axolotl_stability", "opt_175b"),
        as_chosen=True,
    ),
)
def clipping(run: Run) -> Answers:
    """Compare the gradient norm with the threshold, then the threshold with what is usual."""
    threshold = run.setting("max_grad_norm")
    if threshold is None:
        raise CannotTell("the clipping threshold (max_grad_norm) is not in the configuration")
    if threshold <= 0:
        return {}
    norm = norm_of(run)
    answers = _by_norm(norm, threshold) if norm is not None and "grad_norm" in run else {}
    if any(isinstance(one, Evidence) for one in answers.values()):
        return answers
    if threshold > LOW or (norm is not None and float(norm.value.max()) <= threshold):
        return answers
    said = f"max_grad_norm is {figure(threshold)}; most configurations have 0.1 to 1.0"
    return {**answers, "grad_clip_low": Evidence(said, values={"max_grad_norm": threshold})}


def _by_norm(norm: Series, threshold: float) -> Answers:
    if len(norm) < LEAST:
        why = CannotTell(f"grad_norm has {len(norm)} finite values; {LEAST} are needed")
        return {"grad_clip_saturated": why, "grad_norm_at_clip": why}
    at = pinned(norm)
    if at is not None and abs(at.value / threshold - 1) < AT and at.share >= SHARE:
        return {"grad_norm_at_clip": _of_pinned(at, threshold)}
    clipped, typical = norm.value > threshold, median(norm.value)
    if clipped.mean() < SHARE or typical < FACTOR * threshold:
        return {}
    saturated = Evidence(
        f"grad_norm is above the clipping threshold {figure(threshold)} in {clipped.mean():.0%} of "
        f"{len(norm)} records; its median is {figure(typical)}",
        steps=(float(norm.step[int(np.argmax(clipped))]),),
        values={"share": float(clipped.mean()), "median": typical, "threshold": threshold},
    )
    most = {"grad_clip_takes_most": saturated} if typical >= MOST * threshold else {}
    return {"grad_clip_saturated": saturated, **most}


def _of_pinned(at: Pinned, threshold: float) -> Evidence:
    return Evidence(
        f"grad_norm is {figure(at.value)} in {at.share:.0%} of {at.records} records and never above; the clipping "
        f"threshold is {figure(threshold)}",
        steps=(at.step,),
        values={"share": at.share, "threshold": threshold},
    )
