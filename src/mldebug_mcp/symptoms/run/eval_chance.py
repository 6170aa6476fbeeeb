"""Is evaluation as good as a guess, or worse, while training learns?"""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.evaluation import compared
from mldebug_mcp.measure.quality import ACCURACIES, LEAST_AUC, as_shares, auc_of, goes_on_falling, is_of_a_guess
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen
from mldebug_mcp.text import figure

LEAST = 4
"""Evaluations. Chosen: both halves then hold two."""
MORE_CLASSES = 1.3
"""Times the first level of the loss: the logarithm of more classes than there can be. Chosen: a first record may be a
mean over the first epoch, in which much is learnt."""
BELOW_CHANCE, LOW_AUC = 0.6, 0.4
"""Of 1 / classes, and an AUC, below which a model is wrong more often than a guess. Chosen: hundreds of rows bring a
guess nearer."""
LEARNT, FALL = 0.7, 0.03
"""Of its first level, to which the training loss has fallen; by the second share it falls at all. Chosen: by hand."""
GAIN, UNTRAINED = 0.02, 0.9
"""Share by which evaluation does not fall, and of the first training loss that it begins with: nothing was learnt
before it. Chosen: by hand."""
POOR, BETTER, TIMES_GUESS, OF_FEW_ROWS = 0.6, 0.05, 1.5, 0.03
"""The most that a poor accuracy is, gains, is as many times that of a guess, and has by chance beyond. Chosen: by
hand."""


def _learnt(run: Run) -> float:
    """Return to which share of its start the training loss has moved, 0 where it falls and there are no shares."""
    if "loss" not in run or len(loss := run["loss"].finite.value) < LEAST:
        raise CannotTell("not logged: the training loss, often enough")
    start, end = start_level(loss), median(loss[-3:])
    return end / start if start > 0 else float(end >= start)


def eval_below_chance(run: Run) -> Evidence | None:
    """Evaluation is far worse than a uniform guess, though the training loss has fallen.

    Not this when: evaluation is about that of a guess. An accuracy needs the number of classes.
    """
    uniform, name, auc = _uniform(run), next((one for one in ACCURACIES if one in run), None), auc_of(run)
    judged: list[tuple[Series, float, float]] = [] if auc is None else [(auc, 0.5, LOW_AUC)]
    if name is not None and uniform is not None:
        judged.append((run[name].finite, math.exp(-uniform), BELOW_CHANCE * math.exp(-uniform)))
    judged = [one for one in judged if len(one[0]) >= LEAST]
    if not judged:
        raise CannotTell("not logged: an accuracy with the number of classes, or an AUC, often enough")
    for series, guess, limit in judged:
        half = len(series) // 2
        reached = median(as_shares(series.value)[half:])
        if reached < limit and _learnt(run) <= LEARNT:
            loss = run["loss"].finite.value
            return Evidence(
                f"{series.name} is {figure(reached)} in the later half of {len(series)} records, a guess has "
                f"{figure(guess)}, and the training loss goes from {figure(start_level(loss))} to "
                f"{figure(end_level(loss))}",
                steps=(float(series.step[half]),),
                values={"reached": reached, "guess": guess},
            )
    return None


def _uniform(run: Run) -> float | None:
    """Return the loss of a uniform guess; where classes are not told, that of more than the first losses speak of."""
    known = uniform_loss(run)
    if known is not None or run.kind != "supervised" or "accuracy" not in run or "loss" not in run:
        return known
    return MORE_CLASSES * start_level(run["loss"].finite.value)


def eval_learns_nothing(run: Run) -> Evidence | None:
    """Loss and accuracy of evaluation, or its AUC, get no better than a guess, while the training loss falls.

    Not this when: evaluation improves first (`eval_gap_grows`); it begins better than training, as of a model that
    comes trained.
    """
    if run.kind == "sft":
        raise CannotTell("what is fine-tuned on text begins where it may well stay")
    if _learnt(run) > 1 - FALL:
        raise CannotTell("the training loss does not fall, so that evaluation need not either")
    auc = auc_of(run)
    if auc is not None and auc.name.startswith("eval_") and len(auc) >= LEAST_AUC:
        return _auc_of_a_guess(auc) if is_of_a_guess(auc) and not goes_on_falling(run) else None
    if "eval_loss" not in run or "eval_accuracy" not in run or len(run["eval_accuracy"].finite) < LEAST:
        raise CannotTell(f"no loss and accuracy, or AUC, of {LEAST} evaluations")
    return _no_better(run)


def _auc_of_a_guess(auc: Series) -> Evidence:
    later = median(auc.value[len(auc) // 2 :])
    return Evidence(
        f"{auc.name} is {figure(later)} (median of the later half of {len(auc)} evaluations), and "
        f"{figure(auc.value.max())} at its highest, while the training loss falls",
        steps=(float(auc.step[0]),),
        values={"late": later, "highest": float(auc.value.max()), "guess": 0.5},
    )


def _no_better(run: Run) -> Evidence | None:
    both = compared(run, LEAST)
    loss, shares = both.evaluation, as_shares(run["eval_accuracy"].finite.value)
    half = len(shares) // 2
    early, late = median(shares[:half]), median(shares[half:])
    if both.start <= 0 or float(loss.min()) < (1 - GAIN) * loss[0] or loss[0] < UNTRAINED * both.start:
        return None
    guess = math.exp(-min(float(loss[0]), both.start))
    if late > min(POOR, early + BETTER, TIMES_GUESS * guess + OF_FEW_ROWS):
        return None
    return Evidence(
        f"eval_loss is {figure(loss[0])} at first and never below {figure(loss.min())} in "
        f"{len(loss)} evaluations, eval_accuracy {figure(early)} and {figure(late)}, while the training loss goes from "
        f"{figure(both.start)} to {figure(both.train_level)}",
        steps=(float(both.steps[0]),),
        values={"first": float(loss[0]), "lowest": float(loss.min()), "early": early, "late": late, "guess": guess},
    )


@question(
    outcome_of(eval_below_chance, 0.004, "slavv_37", follows=("loss_constant", "loss_nonfinite", "loss_zero")),
    outcome_of(
        eval_learns_nothing, 0.004, follows=("loss_plateau", "loss_nonfinite", "loss_divergence"), instead=NO_PROGRESS
    ),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
)
def eval_chance(run: Run) -> Answers:
    """Far below a guess, no better than a guess."""
    return first_seen(by_outcome((eval_below_chance, eval_learns_nothing), run))
