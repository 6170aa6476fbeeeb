"""Loss that is zero from one record to the next."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import last_decimal
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted, figure

FROM = 0.05
"""Of the loss at the start: what it drops from. Below, it may have been learnt, and printed rounded. Chosen by hand."""
LEAST_ZEROS = 2
LAST_DIGITS = 2
"""A loss of no more than so many in its last decimal may be rounded to zero at the next record. Chosen by hand."""
SHORT, FROM_SHORT = 10, 0.5
"""In an excerpt of fewer records a single zero is enough, as it was mostly cut there to show it, but it must come from
so much of the start: a loss printed with one digit is soon 0.0. Chosen by hand."""


@symptom(needs=("loss",), points=2, not_for=("grpo", "ppo", "rl", "preference"), whole_run=True, background=0.001)
def loss_drops_to_zero(run: Run) -> Evidence | None:
    """The training loss is well above zero, exactly zero at the next record, and zero from there on.

    This is how a trainer prints losses that are not finite (`logging_nan_inf_filter` of the Hugging Face Trainer),
    whenever they began. Not this when: it is zero from the first record (`loss_zero`); it has come down by learning;
    so few decimals are printed that it may be rounded; the gradient norm stays above zero.
    """
    loss = run["loss"]
    zero = loss.value == 0
    zeros = int(np.argmin(zero[::-1])) if not zero.all() else len(zero)
    short = zeros < LEAST_ZEROS
    if not zeros or zeros == len(zero) or (short and len(zero) >= SHORT):
        return None
    last = len(zero) - zeros - 1
    before, start = float(loss.value[last]), float(loss.value[0])
    if not np.isfinite(before) or abs(before) < (FROM_SHORT if short else FROM) * abs(start):
        return None
    if abs(before) < (LAST_DIGITS + 0.5) * last_decimal(loss.value):
        raise CannotTell(f"the loss stands at {figure(before)} in its last decimal before: it may be rounded to zero")
    first = float(loss.step[last + 1])
    if "grad_norm" in run:
        norm = run["grad_norm"]
        if bool(np.any(norm.value[np.isfinite(norm.value) & (norm.step >= first)] > 0)):
            raise CannotTell("the gradient norm is above zero where the loss reads zero")
    return Evidence(
        f"loss is {figure(before)} at {run.step_name} {figure(float(loss.step[last]))}, exactly 0 at {figure(first)} "
        f"and in all {counted(zeros, 'record')} from there on",
        steps=(first,),
        values={"before": before, "zeros": float(zeros)},
    )
