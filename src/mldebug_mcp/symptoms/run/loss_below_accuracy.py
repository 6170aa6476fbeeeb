"""A loss too low for answers that are wrong so often."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import aligned, median
from mldebug_mcp.symptoms.answers import worst_written
from mldebug_mcp.symptoms.quality import as_share
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 4
SHARE = 0.05
"""Of what wrong answers cost at least: a focal loss (alpha 0.25, gamma 2) leaves a 16th of it. Chosen by hand."""
WRONG = 0.3
"""So many answers are wrong, else a few rows that the loss leaves out would do. Chosen by hand."""
HALVED = 0.6
"""Of the first evaluation loss: to so much of it one falls that learns what the accuracy does not show. By hand."""
WRITTEN_WRONG, GONE = 0.6, 0.05
"""So much of what is written out is wrong, by an error rate or by BLEU, at an evaluation loss that has come to this
share of where training began: token by token hardly any is. Chosen by hand."""


@symptom(
    needs=("loss",),
    any_of=("accuracy", "eval_loss"),
    points=LEAST,
    not_for=("grpo", "ppo", "rl", "preference", "pretraining", "sft"),
    background=0.003,
    follows=("loss_zero", "loss_negative"),
)
def loss_below_accuracy(run: Run) -> Evidence | None:
    """The training loss is far lower than a cross-entropy can be where so many answers are wrong.

    The right class of a wrong answer had no more than half of the probability, so that it costs ln 2 or more: with
    accuracy a, a mean cross-entropy is at least (1 - a) ln 2. Either the accuracy is not that of these answers, or the
    loss is no mean over them. Likewise where answers are written out, and the error rate or BLEU says that most are
    wrong, while an evaluation loss near zero says that each token is known, or where an
    accuracy of evaluation never changes. Not this when: few answers are wrong; the
    loss is merely a focal one. The shares were chosen by hand.
    """
    if "accuracy" not in run:
        return _of_evaluation(run) or _written(run)
    _, accuracy, loss = aligned(run["accuracy"].finite, run["loss"].finite)
    if len(loss) < LEAST:
        raise CannotTell(f"loss and accuracy stand together at {len(loss)} steps; {LEAST} are needed")
    later = slice(len(loss) // 2, None)
    right, level = as_share(median(accuracy[later])), median(loss[later])
    least = (1 - right) * math.log(2)
    if 1 - right < WRONG or not 0 < level < SHARE * least:
        return None
    return Evidence(
        f"loss is {figure(level)} and accuracy {figure(right)} in the later half of {len(loss)} records; a mean "
        f"cross-entropy with so many wrong answers is at least {figure(least)}",
        steps=(float(run["loss"].finite.step[0]),),
        values={"loss": level, "accuracy": right, "least": least},
    )


def _of_evaluation(run: Run) -> Evidence | None:
    """Compare an accuracy of evaluation that never changes with the loss beside it, which all but halves.

    Of a focal loss that would be odd as well, so that the whole bound counts.
    """
    if "eval_accuracy" not in run or "eval_loss" not in run:
        return None
    _, accuracy, loss = aligned(run["eval_accuracy"].finite, run["eval_loss"].finite)
    if len(loss) < LEAST or float(np.ptp(accuracy)) > 0 or not 0 < (level := median(loss[-LEAST:])) < HALVED * loss[0]:
        return None
    right = as_share(float(accuracy[0]))
    least = (1 - right) * math.log(2)
    if 1 - right < WRONG or level >= least:
        return None
    return Evidence(
        f"eval_loss goes from {figure(float(loss[0]))} to {figure(level)} while eval_accuracy is {figure(right)} at "
        f"all {len(loss)} evaluations; a mean cross-entropy with so many wrong answers is at least {figure(least)}",
        steps=(float(run["eval_loss"].finite.step[0]),),
        values={"loss": level, "accuracy": right, "least": least},
    )


def _written(run: Run) -> Evidence | None:
    """Compare the evaluation loss with the answers that are written out at the same evaluations."""
    wrong, evaluation, start = worst_written(run), run["eval_loss"].finite, float(run["loss"].finite.value[0])
    if wrong is None or len(evaluation) < LEAST:
        raise CannotTell("no error rate or BLEU stands beside an evaluation loss often enough")
    share, level = median(wrong.value[-LEAST:]), median(evaluation.value[-LEAST:])
    if share < WRITTEN_WRONG or not 0 < level < GONE * start:
        return None
    return Evidence(
        f"eval_loss is {figure(level)} at the end, where training began at {figure(start)}: nearly every token is "
        f"known; {wrong.name} says that {share:.0%} of what is written out is wrong",
        steps=(float(evaluation.step[0]),),
        values={"loss": level, "start": start, "wrong": share},
    )
