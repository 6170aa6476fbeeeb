"""Does the gradient norm rise over the run?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import blocks, median
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.turning import fails_at
from mldebug_mcp.text import figure

FACTOR = 4.0
"""Healthy norms drift by less than this over a log once the first steps are over: chosen by hand."""
FAR = 25.0
"""Sound runs whose norm rises at all, as the rate decays or rows are learnt by heart, gain a factor of 4 to 10.

Chosen by hand.
"""
SIGMAS = 6.0
LEAST = 20
RISING = 0.6
"""Share of later blocks that stand above earlier ones: a trend, not one step."""


@question(
    Outcome(
        "grad_norm_growing",
        """The gradient norm grows over the run to several times its early level.

        Not this when: it jumps and comes back (`grad_norm_spike`); it is noisy without a trend; it grows within the
        first steps only. Unknown where it grows only once the loss rises: that is no more than the loss says. The
        factor, 4, was chosen by hand.
        """,
        background=0.03,
        sources=("axolotl_stability",),
    ),
    Outcome(
        "grad_norm_grows_far",
        """The gradient norm grows to more than 25 times its early level, whatever the loss does meanwhile.

        Clipping hides it in the loss for as long as the direction is still good. Not this when: it grows by less
        (`grad_norm_growing` alone); it jumps and comes back.
        """,
        background=0.002,
        sources=("axolotl_stability",),
        of="grad_norm_growing",
    ),
    needs=("grad_norm",),
    points=LEAST,
    not_for=("rl",),
)
def gradient_growth(run: Run) -> Answers:
    """Compare the later blocks of the norm with the earlier ones."""
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < LEAST:
        raise CannotTell(f"{len(norm)} positive gradient norms; {LEAST} are needed")
    found = _growth(run, norm)
    if found is None:
        return {}
    turn = fails_at(run["loss"]) if "loss" in run else None
    if turn is not None and _growth(run, norm.where(norm.step <= turn)) is None:
        raise CannotTell(f"it grows only from {run.step_name} {figure(turn)} on, as the loss does")
    return {"grad_norm_growing": found, **({"grad_norm_grows_far": found} if found.values["factor"] >= FAR else {})}


def _growth(run: Run, norm: Series) -> Evidence | None:
    if len(norm) < LEAST:
        return None
    cut = blocks(np.log(norm.value), 20)
    level = cut.level[1:] if len(cut.level) > 10 else cut.level
    offset = len(cut.level) - len(level)
    lowest = int(np.argmin(level[: max(1, len(level) // 2)]))
    end = median(level[-3:])
    rise = end - float(level[lowest])
    after = level[lowest:]
    later = after[None, :] > after[:, None]
    pairs = later[np.triu_indices(len(after), 1)]
    if rise < max(np.log(FACTOR), SIGMAS * cut.wobble) or len(after) < 4 or pairs.mean() < 0.5 + RISING / 2:
        return None
    quarter = float(level[lowest]) + rise / 4
    first = int(cut.first[offset + lowest + int(np.argmax(after > quarter))])
    return Evidence(
        f"grad_norm grows from {figure(float(np.exp(level[lowest])))} to {figure(float(np.exp(end)))} from "
        f"{run.step_name} {figure(float(norm.step[first]))} on",
        steps=(float(norm.step[first]),),
        values={"from": float(np.exp(level[lowest])), "to": float(np.exp(end)), "factor": float(np.exp(rise))},
    )
