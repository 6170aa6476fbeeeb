"""Is evaluation as good as a guess, or worse, while training learns?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.evaluation import compared
from mldebug_mcp.measure.quality import ACCURACIES, as_shares, is_auc, ranking_metrics
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.ways import first_seen
from mldebug_mcp.text import figure

LEAST, LEAST_RANKINGS = 4, 8
"""Evaluations of a score, and of a ranking. Chosen: both halves then hold two."""
BELOW_CHANCE, LOW_AUC = 0.6, 0.4
"""Of 1 / classes, and an AUC, below which a model is wrong more often than a guess. Chosen: hundreds of rows bring a
guess nearer."""
OF_UNTRAINED, MOST_BY_A_GUESS = 0.7, 0.25
"""Of the first evaluation of a ranking, where that is no more than an untrained model may have. Chosen: by hand."""
LEARNT, RISEN = 0.7, 1.1
"""Of its first level, to which the training loss has fallen, or risen as it moves away from what is right. Chosen: by
hand."""
OF_GUESS, ONCE_KNEW = 0.3, 0.5
"""Of the accuracy of a guess, below which it moves away on purpose; what had learnt more at first has turned. Chosen:
one class for all is right as often as a guess."""
MEASURED = 0.02
"""An accuracy of a guess below it is hardly measured in a batch. Chosen: by hand."""
FALL, GAIN, UNTRAINED = 0.03, 0.02, 0.9
"""Shares by which training falls and evaluation does not, and of the first training loss that evaluation begins with:
nothing was learnt before it. Chosen: by hand."""
POOR, BETTER, TIMES_GUESS, OF_FEW_ROWS = 0.6, 0.05, 1.5, 0.03
"""The most that a poor accuracy is, gains, is as many times that of a guess, and has by chance beyond. Chosen: by
hand."""
NEAR_AUC = 0.04
"""How far from 0.5 the AUC of a guess may be. Chosen: the error over some hundred rows."""

BELOW = Outcome(
    "eval_below_chance",
    """Evaluation is far worse than a uniform guess, though the training loss has fallen.

    Not this when: evaluation is about that of a guess. An accuracy needs the number of classes.""",
    background=0.004,
    sources=("slavv_37",),
    follows=("loss_constant", "loss_nonfinite", "loss_zero"),
)
AWAY = Outcome(
    "accuracy_below_chance",
    """The loss rises far above its first level and the accuracy goes from about that of a guess to nearly zero.

    Not this when: the accuracy is that of a guess at the end, as of weights thrown about; the loss falls.""",
    background=0.001,
)
BELOW_MEAN = Outcome(
    "eval_below_mean",
    """R² is below zero at every evaluation of the later half: the mean of the targets is the better prediction.

    Not this when: it comes above zero in the end.""",
    background=0.002,
)
NOTHING = Outcome(
    "eval_learns_nothing",
    """Loss and accuracy of evaluation, or its AUC, get no better than a guess, while the training loss falls.

    Not this when: evaluation improves first (`eval_gap_grows`); it begins better than training, as of a model that
    comes trained.""",
    background=0.004,
    follows=("loss_plateau", "loss_nonfinite", "loss_divergence"),
    instead=NO_PROGRESS,
)


@question(BELOW, AWAY, BELOW_MEAN, NOTHING, not_for=("grpo", "ppo", "rl", "preference"), whole_run=True)
def eval_chance(run: Run) -> Answers:
    """Far below a guess, below the mean, no better than a guess."""
    judges = {BELOW.id: _below, AWAY.id: _away, BELOW_MEAN.id: _below_mean, NOTHING.id: _nothing}
    return first_seen({outcome: partial(judge, run) for outcome, judge in judges.items()})


@dataclass(frozen=True, slots=True)
class _Guess:
    """A score, what a guess has of it, and what is far below that."""

    series: Series
    value: float
    limit: float

    @property
    def reached(self) -> float:
        """The median of the later half."""
        return median(as_shares(self.series.value)[len(self.series) // 2 :])


def _below(run: Run) -> Evidence | None:
    guesses, moved = _judged(run)
    worse = next((one for one in guesses if one.reached < one.limit), None)
    return _evidence(run, worse) if worse is not None and moved <= LEARNT else None


def _away(run: Run) -> Evidence | None:
    guesses, moved = _judged(run)
    for one in guesses:
        first = float(as_shares(one.series.value)[0])
        measured = one.value >= MEASURED and first < ONCE_KNEW
        if moved >= RISEN and measured and one.reached < min(OF_GUESS * one.value, first):
            return _evidence(run, one)
    return None


def _judged(run: Run) -> tuple[list[_Guess], float]:
    """Return scores with what a guess has of them, and to which share of its start the training loss has moved."""
    guesses = [one for one in _guesses(run) if len(one.series) >= LEAST]
    if not guesses or "loss" not in run or not len(loss := run["loss"].finite.value):
        raise CannotTell("not logged: an accuracy with the number of classes, an AUC, or a ranking, often enough")
    start, end = start_level(loss), end_level(loss)
    return guesses, end / start if start > 0 else float(end >= start)  # below zero it has fallen if it is lower


def _evidence(run: Run, worse: _Guess) -> Evidence:
    loss, since = run["loss"].finite.value, float(worse.series.step[len(worse.series) // 2])
    return Evidence(
        f"{worse.series.name} is {figure(worse.reached)} in the later half of {len(worse.series)} records, a guess has "
        f"{figure(worse.value)}, and the training loss goes from {figure(start_level(loss))} to "
        f"{figure(end_level(loss))}",
        steps=(since,),
        values={"reached": worse.reached, "guess": worse.value},
    )


def _guesses(run: Run) -> Iterator[_Guess]:
    uniform, name = uniform_loss(run), next((one for one in ACCURACIES if one in run), None)
    if name is not None and uniform is not None:
        yield _Guess(run[name].finite, math.exp(-uniform), BELOW_CHANCE * math.exp(-uniform))
    aucs = sorted((one for one in run.series.values() if is_auc(one)), key=lambda one: not one.name.startswith("eval_"))
    if aucs:
        yield _Guess(aucs[0].finite, 0.5, LOW_AUC)
    ranked = [one.finite for one in ranking_metrics(run) if len(one.finite) >= LEAST_RANKINGS]
    firsts = [(one, float(as_shares(one.value)[0])) for one in ranked]
    untrained = [_Guess(one, had, OF_UNTRAINED * had) for one, had in firsts if 0 < had < MOST_BY_A_GUESS]
    if untrained:  # the one that has kept most of what it had
        yield max(untrained, key=lambda one: one.reached / one.value)


def _below_mean(run: Run) -> Evidence | None:
    logged = [one.finite for phase in ("eval", "train") for one in run.with_role(Quantity.R2, phase=phase, parts=True)]
    r2 = next((one for one in logged if len(one) >= LEAST), None)
    if r2 is None:
        raise CannotTell(f"no R² of evaluation has {LEAST} values")
    later = r2.value[len(r2) // 2 :]
    if float(later.max()) >= 0:
        return None
    return Evidence(
        f"{r2.name} is {figure(float(r2.value[0]))} at first and {figure(float(r2.value[-1]))} at the end, below 0 in "
        f"all of the later {len(later)} records",
        steps=(float(r2.step[len(r2) // 2]),),
        values={"first": float(r2.value[0]), "last": float(r2.value[-1]), "median": median(later)},
    )


def _nothing(run: Run) -> Evidence | None:
    if run.kind == "sft":
        raise CannotTell("what is fine-tuned on text begins where it may well stay")
    auc = next((one.finite for one in run.series.values() if one.name.startswith("eval_") and is_auc(one)), None)
    if "loss" not in run or len(run["loss"].finite) < LEAST:
        raise CannotTell("not logged: the training loss, often enough")
    trained = run["loss"].finite.value
    if start_level(trained) <= 0 or median(trained[-3:]) > (1 - FALL) * start_level(trained):
        raise CannotTell("the training loss does not fall, so that evaluation need not either")
    if auc is not None and len(auc) >= LEAST_RANKINGS:
        return _auc_of_a_guess(auc)
    if "eval_loss" not in run or "eval_accuracy" not in run or len(run["eval_accuracy"].finite) < LEAST:
        raise CannotTell(f"no loss and accuracy, or AUC, of {LEAST} evaluations")
    return _no_better(run)


def _auc_of_a_guess(auc: Series) -> Evidence | None:
    later = median(auc.value[len(auc) // 2 :])
    if abs(later - 0.5) > NEAR_AUC or float(auc.value.max()) > 0.5 + 2 * NEAR_AUC:
        return None
    return Evidence(
        f"{auc.name} is {figure(later)} (median of the later half of {len(auc)} evaluations), and "
        f"{figure(float(auc.value.max()))} at its highest, while the training loss falls",
        steps=(float(auc.step[0]),),
        values={"late": later, "highest": float(auc.value.max()), "guess": 0.5},
    )


def _no_better(run: Run) -> Evidence | None:
    both = compared(run, LEAST)
    loss, shares = both.evaluation, as_shares(run["eval_accuracy"].finite.value)
    half = len(shares) // 2
    early, late = median(shares[:half]), median(shares[half:])
    if float(loss.min()) < (1 - GAIN) * loss[0] or loss[0] < UNTRAINED * both.start:
        return None
    guess = math.exp(-min(float(loss[0]), both.start))
    if late > min(POOR, early + BETTER, TIMES_GUESS * guess + OF_FEW_ROWS):
        return None
    return Evidence(
        f"eval_loss is {figure(float(loss[0]))} at first and never below {figure(float(loss.min()))} in "
        f"{len(loss)} evaluations, eval_accuracy {figure(early)} and {figure(late)}, while the training loss goes from "
        f"{figure(both.start)} to {figure(both.train_level)}",
        steps=(float(both.steps[0]),),
        values={"first": float(loss[0]), "lowest": float(loss.min()), "early": early, "late": late, "guess": guess},
    )
