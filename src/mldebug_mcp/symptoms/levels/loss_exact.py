"""Losses that are exactly, or by their size alone, what no sound training gives: zero, below it, huge, clipped."""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.logs.names import is_evaluation
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.quality import ACCURACIES, as_share, quality_metrics
from mldebug_mcp.measure.scale import predicts_tokens, uniform_loss
from mldebug_mcp.measure.statistics import aligned, end_level, last_decimal, median, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

HUGE = 1e15
"""Chosen: squared errors of prices that nobody scaled come to some 1e12."""
NEARLY_ZERO = 1e-4
"""Chosen: no real data are fitted to this cross-entropy within the first tenth of a run."""
EARLY, MOSTLY = 0.1, 0.5
"""Share of the records by which it is zero, and of those from there on. Chosen: learning takes longer."""
AT_ONCE = 0.05
"""Of the loss at the start: what it comes from. Chosen: from less it may have come down by learning, and rounding."""
LEAST_MOVE, LEAST_GUESS = 0.05, 0.1
"""By this share of its highest a small loss of its own units moves; below the second no cross-entropy begins.

Chosen: a seventh of ln 2.
"""
LAST_DIGITS = 2.5
"""Units of the last decimal from which a loss is not rounded to zero. Chosen: progress of a record is less."""
SHORT, FROM_SHORT = 10, 0.5
"""In fewer records a single zero is enough, from this share of the start. Chosen: excerpts are cut to show it."""
BELOW = 0.1
"""Share of the records below zero. Chosen: single ones may be of a regulariser."""
RUNAWAY, UNBENT = 20.0, 0.4
"""Times its first size, and share of the fall in the later half, of a loss that has no bound. Chosen: a straight line
has half of it there, an exponential a quarter.
"""
CLIPPED = {
    "1e-7": -math.log(1e-7),
    "1e-8": -math.log(1e-8),
    "1e-12": -math.log(1e-12),
    "1e-15": -math.log(1e-15),
    "the smallest float32": -math.log(1.17549435e-38),
    "e^-100": 100.0,
}
"""What a wrong answer costs where probabilities are clipped. Source: Keras (1e-7), scikit-learn (1e-15), Caffe
(FLT_MIN), PyTorch's BCELoss (e^-100).
"""
NEAR, EXACT = 0.005, 2e-5
"""Of the expected loss, with an accuracy and without. Chosen: the digits that both are printed with."""
LEAST_WRONG, LEAST = 0.02, 3
"""Share of wrong answers, and last records. Chosen: fewer bring the loss near zero whatever is clipped."""
LEFT, EPOCHS = 0.05, 3.0
"""Share of the first loss that is left after so many epochs. Chosen: rows are not memorised at first sight."""
LEAST_BOXES = 5
"""Records. Chosen: a single batch may well hold no object."""
_OVERLAP = re.compile(r"dice|iou|jaccard", re.IGNORECASE)
_OF_BOXES = re.compile(
    r"(?:.+/)?(?:(?:box|bbox|iou|giou|ciou|dfl|l1|reg)_loss|loss_(?:box|bbox|iou|giou|dfl|box_reg|rpn_bbox|rpn_box_reg))"
)
_BESIDE = re.compile(
    r"(?:.+/)?(?:(?:cls|obj|conf|ce)_loss|loss_(?:cls|obj|objectness|conf|ce|rpn_cls|rpn_loc|classifier))"
)


def loss_huge(run: Run) -> Evidence | None:
    """A finite loss is so large that its numbers are near overflow, or made of uninitialised memory.

    Not this when: targets of a regression are large and nobody scaled them. One record is enough.
    """
    loss = _finite(run)
    huge = np.abs(loss.value) >= HUGE
    if not huge.any():
        return None
    at = int(np.argmax(np.abs(loss.value)))
    top = float(loss.value[at])
    return Evidence(
        f"loss is {figure(top)} at {run.step_name} {figure(float(loss.step[at]))}",
        steps=(float(loss.step[int(np.argmax(huge))]),),
        values={"largest": top, "records": float(np.count_nonzero(huge))},
    )


def loss_drops_to_zero(run: Run) -> Evidence | None:
    """The training loss is well above zero, and exactly zero from the next record on, as filtered NaN are printed.

    Not this when: it is zero from the first record, or may be rounded; the gradient norm stays above zero.
    """
    loss = run["loss"]
    zero = loss.value == 0
    zeros = int(np.argmin(zero[::-1])) if not zero.all() else len(zero)
    short = zeros < 2
    if not zeros or zeros == len(zero) or (short and len(zero) >= SHORT):
        return None
    last = len(zero) - zeros - 1
    before, start = float(loss.value[last]), float(loss.value[0])
    if not np.isfinite(before) or abs(before) < (FROM_SHORT if short else AT_ONCE) * abs(start):
        return None
    if abs(before) < LAST_DIGITS * last_decimal(loss.value):
        raise CannotTell(f"the loss stands at {figure(before)} in its last decimal before: it may be rounded to zero")
    first = float(loss.step[last + 1])
    if "grad_norm" in run and bool(np.any(run["grad_norm"].finite.between(first, run.last_step).value > 0)):
        raise CannotTell("the gradient norm is above zero where the loss reads zero")
    return Evidence(
        f"loss is {figure(before)} at {run.step_name} {figure(float(loss.step[last]))}, exactly 0 at {figure(first)} "
        f"and in all {counted(zeros, 'record')} from there on",
        steps=(first,),
        values={"before": before, "zeros": float(zeros)},
    )


def loss_zero(run: Run) -> Evidence | None:
    """The training loss is zero, or nearly, from early on, and did not get there by learning.

    Not this when: it falls record by record; margins of preferences are so wide; it has small units of its own.
    """
    loss = _finite(run)
    if len(loss) == 1 and not _no_gradient(run):
        raise CannotTell("a single loss was logged")
    zero = np.abs(loss.value) < NEARLY_ZERO
    start = int(np.argmax(zero))
    share = float(zero[start:].mean())
    if not zero.any() or start > max(1, EARLY * len(loss)) or share < MOSTLY:
        return None
    if start > 2 and loss.value[:start].min() < AT_ONCE * median(loss.value[:LEAST]):
        return None
    if (not start or loss.value[0] < LEAST_GUESS) and _has_its_own_units(run, loss):
        raise CannotTell("the loss is small and never zero: squares of small numbers are, which are no cross-entropy")
    first = float(loss.step[start])
    if run.kind == "preference" and _is_told_apart(run, first):
        return None
    return Evidence(
        f"loss is {figure(float(loss.value[start]))} at {run.step_name} {figure(first)} and below {NEARLY_ZERO:g} in "
        f"{share:.0%} of the records from there on",
        steps=(first,),
        values={"share": share, "median": median(loss.value[start:])},
    )


def _no_gradient(run: Run) -> bool:
    return "grad_norm" in run and not bool(np.any(run["grad_norm"].finite.value > 0))


def _is_cross_entropy(run: Run) -> bool:
    """Say whether the settings or an accuracy make the loss one of classes or tokens."""
    return predicts_tokens(run) or uniform_loss(run) is not None or any(name in run for name in ACCURACIES)


def _has_its_own_units(run: Run, loss: Series) -> bool:
    """Say whether a loss moves above zero throughout, and nothing shows that it is one of classes or tokens."""
    moves = float(np.ptp(loss.value)) > LEAST_MOVE * float(loss.value.max()) and float(loss.value.min()) > 0
    return moves and not _is_cross_entropy(run) and run.kind in ("unknown", "supervised")


def _is_told_apart(run: Run, step: float) -> bool:
    """Say whether the pairs of a preference run are told apart so well that the loss, -log sigmoid(margin), is zero."""
    margin = run["rewards/margins"].finite.at(step) if "rewards/margins" in run else None
    return margin is not None and margin > -math.log(NEARLY_ZERO)


def box_loss_zero(run: Run) -> Evidence | None:
    """A detector's loss of boxes is exactly zero in every record, while that of classes or objects is not.

    No box is matched to a labelled object. Not this when: single records are zero, as of a batch without objects.
    """
    parts = [name for name in run.series if not is_evaluation(name)]
    boxes = [run[name].finite for name in parts if _OF_BOXES.fullmatch(name.lower())]
    beside = [run[name].finite for name in parts if _BESIDE.fullmatch(name.lower())]
    boxes = [one for one in boxes if len(one) >= LEAST_BOXES]
    if not boxes or not any(one.value.any() for one in beside):
        raise CannotTell(f"no losses of a detector's boxes and of its classes have {LEAST_BOXES} finite values")
    if any(one.value.any() for one in boxes):
        return None
    first = boxes[0]
    return Evidence(
        f"{', '.join(one.name for one in boxes)}: 0 in all {len(first)} records from {run.step_name} "
        f"{figure(float(first.step[0]))} to {figure(float(first.step[-1]))}",
        steps=(float(first.step[0]),),
        values={"records": len(first), "parts": len(boxes)},
    )


def loss_negative(run: Run) -> Evidence | None:
    """The training loss is negative where it must be a cross-entropy, or falls below zero without a bound.

    Not this when: the curve bends, as that of a log-density or of decibels does, or stays above -20 beside a Dice.
    """
    loss = run["loss"].finite
    below = loss.value < 0
    if below.mean() < BELOW:
        return None
    first, half = float(loss.step[int(np.argmax(below))]), len(loss) // 2
    start, middle, end = start_level(loss.value), start_level(loss.value[half:]), end_level(loss.value)
    masks = any(_OVERLAP.search(name) for name in run.series)
    bound = RUNAWAY * (1.0 if masks else max(1.0, abs(float(loss.value[0]))))
    endless = (end < 0 and start > end and middle - end > UNBENT * (start - end)) or end < -bound
    wrong = endless or _is_cross_entropy(run)
    return Evidence(
        f"loss is below zero from {run.step_name} {figure(first)} on, in {below.mean():.0%} of the records; the lowest "
        f"is {figure(float(loss.value.min()))}{'' if wrong else ': a log-density or a ratio in decibels may be'}",
        steps=(first,),
        values={"share": float(below.mean()), "lowest": float(loss.value.min()), "start": start, "end": end},
        present=bool(wrong),
    )


def loss_at_clip(run: Run) -> Evidence | None:
    """The training loss is that of answers of probability 0 or 1, clipped, wrong as often as the accuracy says.

    The outputs are saturated: no gradient comes through. Not this when: the loss only passes such a value.
    """
    loss = run["loss"].finite
    right = aligned(run["accuracy"].finite, loss)[1] if "accuracy" in run else np.empty(0)
    wrong = 1 - as_share(median(right[-LEAST:])) if len(right) >= LEAST else 0.0
    share, near = (wrong, NEAR) if wrong > LEAST_WRONG else (1.0, EXACT)
    for name, cost in CLIPPED.items():
        for expected, within in ((share * cost, near), (cost, EXACT)):
            at_it = np.abs(loss.value - expected) <= within * expected
            if at_it[-LEAST:].all():
                return _clipped(run, loss, int(len(at_it) - np.argmin(at_it[::-1])) % len(at_it), name, expected)
    if "accuracy" not in run and float(np.ptp(loss.value[-LEAST:])) > 0:
        raise CannotTell("no accuracy is logged, and the loss is none of those that clipping gives")
    return None


def _clipped(run: Run, loss: Series, at: int, name: str, expected: float) -> Evidence:
    return Evidence(
        f"loss is {figure(float(loss.value[-1]))} from {run.step_name} {figure(float(loss.step[at]))} on: that of "
        f"answers of probability 0 or 1 clipped at {name}, wrong as often as these",
        steps=(float(loss.step[at]),),
        values={"loss": float(loss.value[-1]), "expected": expected},
    )


def loss_gone_by_epochs(run: Run) -> Evidence | None:
    """The training loss is near zero after several epochs, and no held-out rows are evaluated.

    Not this when: there is an evaluation, which tells learning from memorising; there are fewer than three epochs.
    """
    if _evaluated(run):
        raise CannotTell("an evaluation tells more")
    if run.step_name != "epoch" and "epoch" not in run:
        raise CannotTell("not logged: epoch")
    loss = run["loss"].finite
    epochs = run.last_step if run.step_name == "epoch" else float(np.max(run["epoch"].finite.value, initial=0.0))
    edge = max(1, len(loss) // 20)  # of a handful of records the first alone tells where it began
    start, end = median(loss.value[:edge]), median(loss.value[-edge:])
    if epochs < EPOCHS or start <= 0 or not 0 <= end < LEFT * start:
        return None
    return Evidence(
        f"loss goes from {figure(start)} to {figure(end)} in {figure(epochs)} epochs, with no evaluation logged",
        steps=(float(loss.step[int(np.argmax(loss.value < LEFT * start))]),),
        values={"start": start, "end": end, "epochs": epochs},
    )


def _evaluated(run: Run) -> bool:
    for of_evaluation in (evaluation_losses, quality_metrics):
        try:
            if any(len(series.finite) for series in of_evaluation(run)):
                return True
        except CannotTell:
            continue
    return False


def _finite(run: Run) -> Series:
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    return loss
