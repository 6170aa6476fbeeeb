"""Training that gets better on rows which it sees for the first time, while evaluation never does."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.evaluation import start_of
from mldebug_mcp.symptoms.quality import as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.eval_learns_nothing import eval_learns_nothing
from mldebug_mcp.text import figure

TIMES_GUESS, MORE = 1.5, 0.05
"""The mean accuracy of the first epoch is above so many times that of a guess, and so much more."""
FALL, LEAST = 0.05, 6
"""Without one the loss falls by this share within the first epoch, of which so many records are needed. All chosen by
hand."""


@symptom(
    needs=("loss", "eval_loss", "eval_accuracy"),
    not_for=("grpo", "ppo", "rl", "preference", "sft"),
    whole_run=True,
    background=0.5,
)
def first_pass_learns(run: Run) -> Evidence | None:
    """Within the first epoch, before any row comes again, training does clearly better than a guess.

    Then the inputs do tell something of the labels, which rows learnt by heart do not show. Not this when: training
    gains only once rows come again. Judged only where evaluation learns nothing from the first to the last
    (`eval_learns_nothing`). The shares were chosen by hand.
    """
    nothing = eval_learns_nothing(run)
    if nothing is None:
        raise CannotTell("evaluation learns something, or may")
    loss = run["loss"].finite
    if run.step_name == "epoch" and "accuracy" in run and len(accuracy := run["accuracy"].finite):
        return _by_accuracy(accuracy, nothing.values["guess"])
    if "epoch" not in run or run.step_name != "step":
        raise CannotTell("the log does not tell which records are of the first epoch")
    epoch = run["epoch"].finite
    within = loss.where(np.interp(loss.step, epoch.step, epoch.value) < np.floor(epoch.value[0]) + 1)
    if len(within) < LEAST:
        raise CannotTell(f"{len(within)} records are of the first epoch; {LEAST} are needed")
    start, end = start_of(run, loss), median(within.value[-LEAST // 2 :])
    if end > (1 - FALL) * start:
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
