"""Evaluation losses that rise: how, when, and at which pass over the data."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.eval_rise import EvalRise, rise_of_evaluation
from mldebug_mcp.measure.evaluation import begins_late, evaluation_losses, refuse_after_explosion, start_of
from mldebug_mcp.measure.quality import all_zero
from mldebug_mcp.measure.statistics import aligned, median
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told
from mldebug_mcp.text import figure

LEAST_EVALUATIONS = 5
"""Evaluations beside the training loss. Chosen: fewer show no course."""
FIRST = 0.15
"""The lowest evaluation loss stands within this share of the evaluations, or is the first. Chosen: by hand."""
RISE = 0.05
"""Of its lowest by which the evaluation loss must rise. Chosen: most fine-tuning rises by less in the end."""
FALL = 0.1
"""Of its first value by which the training loss must fall. Chosen: by hand."""
FAR, OF_START = 0.3, 0.1
"""Of its lowest, and of what training began with: a rise from the first evaluations on that is one however it scatters,
as rows of another kind are met with ever surer answers. Chosen: by hand."""


def eval_gap_grows(run: Run, rise: EvalRise) -> Evidence:
    """The evaluation loss rises from its minimum while the training loss goes on falling.

    Not this when: both rise; the rise is within the noise, or like those that it came back from; of several named
    evaluation sets only a minority rises; the error rate or BLEU of what is written out still gets better.
    """
    sets = f"{rise.rising} of {rise.sets} evaluation losses rise; " if rise.sets > 1 else ""
    train = ""
    if rise.train is not None:
        train = f", while the training loss goes from {figure(rise.train[0])} to {figure(rise.train[1])}"
    gains = ", yet what is written out still gets better" if rise.gains else ""
    return Evidence(
        f"{sets}{rise.name} rises from its minimum {figure(rise.minimum)} at {run.place(rise.step)} to "
        f"{figure(rise.last)}{train}{gains}",
        steps=(rise.step,),
        values={"minimum": rise.minimum, "last": rise.last, "relative_rise": rise.relative},
        present=not rise.gains,
    )


def _is_far(run: Run, never: Evidence) -> bool:
    """Say whether an evaluation that never improves has come so far up that no scatter, however wild, explains it."""
    lowest, risen = never.values["lowest"], never.values["last"] - never.values["lowest"]
    return risen > FAR * abs(lowest) and risen > OF_START * abs(start_of(run, run["loss"].finite))


def eval_never_improves(run: Run) -> Evidence | None:
    """The evaluation loss is lowest at the very first evaluations and rises from there, while the training loss falls.

    Not this when: it improves first and rises later, as in overfitting. Told only beside the rise.
    """
    if "loss" not in run:
        return None
    loss = run["loss"].finite
    refuse_after_explosion(run, evaluation_losses(run)[0])
    judged = [
        (series.finite, train)
        for series in evaluation_losses(run)
        if len(series.finite) >= LEAST_EVALUATIONS
        and len(train := aligned(loss, series.finite)[1]) >= LEAST_EVALUATIONS
    ]
    if not judged:
        raise CannotTell(f"fewer than {LEAST_EVALUATIONS} evaluations stand beside the training loss")
    evaluation, train = judged[0]
    if all_zero(evaluation):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    if begins_late(evaluation):
        raise CannotTell(
            f"the first evaluation is at {run.place(evaluation.step[0])}: whether it improved before does not show"
        )
    best = int(np.argmin(evaluation.value))
    lowest, last = float(evaluation.value[best]), median(evaluation.value[-2:])
    fell = median(train[-2:]) < float(train[0]) * (1 - FALL)
    if last < lowest + RISE * abs(lowest) or not fell:
        raise CannotTell("the evaluation loss does not rise while the training loss falls")
    if best > max(0.0, FIRST * len(evaluation) - 1):
        return None
    return Evidence(
        f"{evaluation.name} is lowest, {figure(lowest)}, at evaluation {best + 1} of {len(evaluation)} and "
        f"{figure(last)} at the end, while the training loss goes from {figure(train[0])} to "
        f"{figure(median(train[-2:]))}",
        steps=(float(evaluation.step[best]),),
        values={"lowest": lowest, "last": last, "evaluation": best + 1},
    )


_RUINS = ("loss_zero", "loss_negative", "eval_learns_nothing", "loss_divergence", "loss_nonfinite")


@question(
    outcome_of(
        eval_gap_grows,
        0.02,
        "axolotl_stability",
        "goodfellow_ch11",
        follows=(*_RUINS, "held_out_sets_part"),
        instead=("eval_gap_at_zero", "eval_gap_wide"),
    ),
    outcome_of(eval_never_improves, 0.15, "slavv_37", of="eval_gap_grows", needs=("loss",)),
    not_for=("grpo", "ppo", "rl"),
)
def eval_rise(run: Run) -> Answers:
    """Look for a lasting rise of the evaluation loss; of several sets, for that of most."""
    rise, never = rise_of_evaluation(run), told(by_outcome((eval_never_improves,), run))
    if rise is not None and rise.slight:
        raise CannotTell("evaluation rises by less than 5 % of its minimum, as most fine-tuning does in the end")
    if rise is not None:
        return {"eval_gap_grows": eval_gap_grows(run, rise), **never}
    far = next((one for one in never.values() if isinstance(one, Evidence) and _is_far(run, one)), None)
    return {} if far is None else {"eval_gap_grows": far, **never}
