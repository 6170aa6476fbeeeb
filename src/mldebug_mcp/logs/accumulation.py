"""Is the logged loss the mean over the accumulated micro-batches of a step, or their sum?

Loops and some versions of the Trainer log the sum (transformers#34263): then every absolute level is a multiple. It
shows against the evaluation loss, which is never accumulated, and against the loss of a uniform guess at the start.
"""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.text import figure

NEAR = 0.15
"""How near a quotient must come to 1 or to the number of micro-batches, as a share; chosen by hand."""


def accumulation_note(run: Run) -> str | None:
    """Return what the log shows of its convention, None if nothing is accumulated or nothing shows it."""
    number = run.setting("gradient_accumulation_steps")
    if number is None or number < 2 or "loss" not in run:
        return None
    for level, reference, told in _levels(run):
        if abs(level / (number * reference) - 1) <= NEAR:
            return (
                f"the loss is logged as the sum over {figure(number)} accumulated micro-batches: {told}; "
                f"divide by {figure(number)}"
            )
        if abs(level / reference - 1) <= NEAR:
            return f"the loss is logged as the mean over {figure(number)} accumulated micro-batches: {told}"
    return None


def _levels(run: Run) -> list[tuple[float, float, str]]:
    """Return levels of the loss, what they are to be compared with, and that in words."""
    loss = run["loss"].finite
    found = []
    evaluation = run.series.get("eval_loss")
    if evaluation is not None and len(loss) and len(evaluation.finite):
        held_out = evaluation.finite
        train, other = (
            float(np.median(np.interp(held_out.step, loss.step, loss.value))),
            float(np.median(held_out.value)),
        )
        if min(train, other) > 0:
            found.append((train, other, f"it stands at {figure(train / other)} x eval_loss"))
    size = run.facts.classes or run.facts.tokens
    if size is not None and size >= 2 and len(loss) and loss.value[0] > 0:
        first, uniform = float(loss.value[0]), math.log(size)
        found.append((first, uniform, f"it begins at {figure(first / uniform)} x ln({figure(size)})"))
    return found
