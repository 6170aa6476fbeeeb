"""Does evaluation gain nothing while training gets better, and does training learn from rows that it sees at first?"""

from __future__ import annotations

import math
from inspect import cleandoc

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.evaluation import compared, start_of
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.quality import as_shares
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.telling import told
from mldebug_mcp.text import counted, figure

LEAST_EVALUATIONS = 4
FALL = 0.03
"""The training loss falls by this share, as one that learns does (`loss_plateau`)."""
GAIN = 0.02
"""The evaluation loss never falls this share below its first value ..."""
UNTRAINED = 0.9
"""... which is at least so many times the loss that training began with: nothing was learnt before it."""
BETTER = 0.05
POOR = 0.6
"""The accuracy of the later evaluations is no more than so much above the first ones, and not good ..."""
TIMES_GUESS, OF_FEW_ROWS = 1.5, 0.03
"""... and at most so many times that of a guess whose loss is what training or evaluation began with, and so much more,
as a set of some hundred rows has by chance. All were chosen by hand."""
MORE = 0.05
"""The mean accuracy of the first epoch is `TIMES_GUESS` times that of a guess, and so much more."""
FIRST_FALL, LEAST = 0.05, 6
"""Without one the loss falls by this share within the first epoch, of which so many records are needed. All chosen by
hand."""


@question(
    Outcome(
        "eval_learns_nothing",
        cleandoc("""Neither loss nor accuracy of the evaluation get better than at first, while the training loss falls.

        What is learnt in training is of no use on held-out rows from the very beginning. Not this when: evaluation
        improves first (`eval_gap_grows`); its accuracy is above that of a guess; the first evaluation is better than
        training began, as of a model that comes trained.
        """),
        0.004,
        follows=("loss_plateau", "loss_nonfinite", "loss_divergence"),
        instead=NO_PROGRESS,
    ),
    Outcome(
        "first_pass_learns",
        cleandoc("""Within the first epoch, before any row comes again, training does clearly better than a guess.

        Then the inputs do tell something of the labels, which rows learnt by heart do not show. Not this when: training
        gains only once rows come again. The shares were chosen by hand.
        """),
        0.5,
        of="eval_learns_nothing",
    ),
    needs=("loss", "eval_loss", "eval_accuracy"),
    not_for=("grpo", "ppo", "rl", "preference", "sft"),  # what is fine-tuned on text begins where it may well stay
    whole_run=True,
)
def eval_learns_nothing(run: Run) -> Answers:
    """Say whether evaluation gains nothing, and what training does within the first epoch then."""
    nothing = _nothing_gained(run)
    if nothing is None:
        return {}
    guess = nothing.values["guess"]
    return {"eval_learns_nothing": nothing, **told({"first_pass_learns": lambda: _first_pass(run, guess)})}


def _nothing_gained(run: Run) -> Evidence | None:
    both = compared(run, LEAST_EVALUATIONS)
    loss, accuracy = both.evaluation, run["eval_accuracy"].finite.value
    if len(accuracy) < LEAST_EVALUATIONS:
        raise CannotTell(f"eval_accuracy has {counted(len(accuracy), 'finite value')}; {LEAST_EVALUATIONS} are needed")
    trained = run["loss"].finite.value
    start, end = both.start, median(trained[-3:])
    if start <= 0 or end > (1 - FALL) * start:
        raise CannotTell("the training loss does not fall, so that evaluation need not either")
    early, late = _ends(accuracy)
    if float(loss.min()) < (1 - GAIN) * loss[0] or loss[0] < UNTRAINED * start or late > POOR or late - early > BETTER:
        return None
    guess = math.exp(-min(float(loss[0]), start))
    if late > TIMES_GUESS * guess + OF_FEW_ROWS:
        return None
    return Evidence(
        f"eval_loss is {figure(float(loss[0]))} at first and never below {figure(float(loss.min()))} in "
        f"{len(loss)} evaluations, eval_accuracy {figure(early)} and {figure(late)}, while the training loss goes from "
        f"{figure(start)} to {figure(end)}",
        steps=(float(both.steps[0]),),
        values={"first": float(loss[0]), "lowest": float(loss.min()), "early": early, "late": late, "guess": guess},
    )


def _first_pass(run: Run, guess: float) -> Evidence | None:
    loss = run["loss"].finite
    if run.step_name == "epoch" and "accuracy" in run and len(accuracy := run["accuracy"].finite):
        return _by_accuracy(accuracy, guess)
    if "epoch" not in run or run.step_name != "step":
        raise CannotTell("the log does not tell which records are of the first epoch")
    epoch = run["epoch"].finite
    within = loss.where(np.interp(loss.step, epoch.step, epoch.value) < np.floor(epoch.value[0]) + 1)
    if len(within) < LEAST:
        raise CannotTell(f"{len(within)} records are of the first epoch; {LEAST} are needed")
    start, end = start_of(run, loss), median(within.value[-LEAST // 2 :])
    if end > (1 - FIRST_FALL) * start:
        return None
    return Evidence(
        f"loss falls from {figure(start)} to {figure(end)} within the first epoch, up to step "
        f"{figure(float(within.step[-1]))}",
        steps=(float(within.step[-1]),),
        values={"start": start, "end": end},
    )


def _by_accuracy(accuracy: Series, guess: float) -> Evidence | None:
    first = float(as_shares(accuracy.value)[0])
    if first <= TIMES_GUESS * guess + MORE:
        return None
    return Evidence(
        f"accuracy is {figure(first)} in the first epoch, of rows that training sees for the first time; a guess has "
        f"about {figure(guess)}",
        steps=(float(accuracy.step[0]),),
        values={"accuracy": first, "guess": guess},
    )


def _ends(accuracy: Floats) -> tuple[float, float]:
    """Return the median of the first and of the later half, as shares."""
    half = len(accuracy) // 2
    shares = as_shares(accuracy)
    return median(shares[:half]), median(shares[half:])
