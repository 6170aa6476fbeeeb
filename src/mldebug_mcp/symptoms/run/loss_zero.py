"""Loss exactly or nearly zero from early on."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.scale import predicts_tokens, uniform_loss
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.quality import ACCURACIES
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_drops_to_zero import loss_drops_to_zero
from mldebug_mcp.text import figure

NEARLY_ZERO = 1e-4
"""No real data set is fitted to this cross-entropy within the first tenth of a run."""
LEAST_MOVE = 0.05
"""Of its largest value: by so much a loss moves that is one, however small its units. Chosen by hand."""
LEAST_GUESS = 0.1
"""A seventh of ln(2): no cross-entropy of an untrained model is as low as that, over however few classes."""
AT_ONCE = 0.05
"""Of the loss at the start: what it comes from. Shortly after less than that it has come down by learning."""


@symptom(needs=("loss",), sources=("unsloth_faq",), not_for=("grpo", "ppo", "rl"), background=0.002)
def loss_zero(run: Run) -> Evidence | None:
    """The training loss is zero, or nearly, from early on, and did not get there by learning.

    Not this when: the loss falls to zero record by record, by memorising, or late; it was above zero at first and is
    zero at once (`loss_drops_to_zero`); the run is RL, where a policy loss of zero is normal; a single record is all
    there is, and its gradient is not zero; the margins of preferences are so wide that the loss is zero; it is small in
    units of its own, such as the squares of small errors.
    """
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    if len(loss) == 1 and not _no_gradient(run):
        raise CannotTell("a single loss was logged")
    zero = np.abs(loss.value) < NEARLY_ZERO
    start = int(np.argmax(zero))
    if not zero.any() or start > max(1, len(loss) // 10) or zero[start:].mean() < 0.5:
        return None
    if start >= 3 and loss.value[max(0, start - 5) : start].min() < AT_ONCE * median(loss.value[:3]):
        return None
    if (not start or loss.value[0] < LEAST_GUESS) and _has_its_own_units(run, loss):
        raise CannotTell("the loss is small and never zero: squares of small numbers are, which are no cross-entropy")
    if start and loss_drops_to_zero(run) is not None:
        raise CannotTell("the loss was above zero at first, which says more (`loss_drops_to_zero`)")
    first = float(loss.step[start])
    if run.kind == "preference" and _is_told_apart(run, first):
        return None
    return Evidence(
        f"loss is {figure(float(loss.value[start]))} at {run.step_name} {figure(first)} and below {NEARLY_ZERO:g} in "
        f"{zero[start:].mean():.0%} of the records from there on",
        steps=(first,),
        values={"share": float(zero[start:].mean()), "median": median(loss.value[start:])},
    )


def _no_gradient(run: Run) -> bool:
    """Say whether a gradient norm is logged and never both finite and above zero."""
    return "grad_norm" in run and not bool(np.any(run["grad_norm"].finite.value > 0))


def _has_its_own_units(run: Run, loss: Series) -> bool:
    """Say whether a loss moves above zero throughout, and nothing shows that it is one of classes or tokens."""
    entropy = predicts_tokens(run) or uniform_loss(run) is not None or any(name in run for name in ACCURACIES)
    moves = float(np.ptp(loss.value)) > LEAST_MOVE * float(loss.value.max()) and float(loss.value.min()) > 0
    return moves and not entropy and run.kind in ("unknown", "supervised")


def _is_told_apart(run: Run, step: float) -> bool:
    """Say whether the pairs of a preference run are told apart so well that the loss, -log sigmoid(margin), is zero."""
    margin = run["rewards/margins"].finite.at(step) if "rewards/margins" in run else None
    return margin is not None and margin > -math.log(NEARLY_ZERO)
