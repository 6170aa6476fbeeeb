"""Evaluation worse than that of a guess."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.quality import ACCURACIES, as_shares, is_auc, ranking_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

SHARE_OF_CHANCE = 0.6
"""Of 1 / classes: below it the model is wrong more often than a random guess. Chosen by hand."""
LOW_AUC = 0.4
"""A guess has an AUC of 0.5; hundreds of rows bring it within 0.1 of that. Chosen by hand."""
SHARE_OF_UNTRAINED, LEAST_RANKINGS, MOST_BY_A_GUESS = 0.7, 8, 0.25
"""Of the first of so many evaluations of a ranking, if that is so low that an untrained model may have it. Chosen by
hand."""
LEARNT = 0.7
"""Of its first level: the training loss must have fallen to this share, so that something was learnt."""
LEAST_EVALUATIONS = 4


@symptom(
    needs=("loss",),
    sources=("slavv_37",),
    points=10,
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
    background=0.004,
    follows=("loss_constant", "loss_nonfinite", "loss_zero"),
)
def eval_below_chance(run: Run) -> Evidence | None:
    """Evaluation is far worse than a uniform guess would be, though the training loss has fallen.

    An accuracy far below 1 / classes, an AUC far below 0.5, or a ranking (recall@20, nDCG) that becomes far worse than
    at the first evaluation. The model is evaluated on other inputs, or against other labels, than it was trained on, or
    trained towards the opposite. Not this when: nothing is learnt, and evaluation is about that of a guess
    (`loss_at_chance`). An accuracy needs the number of classes.
    """
    judged = [found for judge in (_accuracy, _auc, _ranking) if (found := judge(run)) is not None]
    if not judged:
        raise CannotTell("not logged: an accuracy with the number of classes, an AUC, or a ranking, often enough")
    loss = run["loss"].finite.value
    worse = next((one for one in judged if one.reached < one.share * one.guess), None)
    if worse is None or end_level(loss) > LEARNT * start_level(loss):
        return None
    return Evidence(
        f"{worse.series.name} is {figure(worse.reached)} in the later half of {len(worse.series)} evaluations; "
        f"{worse.words} {figure(worse.guess)}, and the training loss went from {figure(start_level(loss))} to "
        f"{figure(end_level(loss))}",
        steps=(float(worse.series.step[len(worse.series) // 2]),),
        values={"reached": worse.reached, "guess": worse.guess},
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A measure of evaluation, what a guess has of it, and which share of that is far below it."""

    series: Series
    guess: float
    share: float
    words: str

    @property
    def reached(self) -> float:
        """The median of the later half."""
        return median(as_shares(self.series.value)[len(self.series) // 2 :])


def _accuracy(run: Run) -> Judged | None:
    uniform = uniform_loss(run)
    name = next((one for one in ACCURACIES if one in run), None)
    if uniform is None or name is None or len(run[name].finite) < LEAST_EVALUATIONS:
        return None
    words = f"the share of right ones in a guess among {math.exp(uniform):.0f} is"
    return Judged(run[name].finite, math.exp(-uniform), SHARE_OF_CHANCE, words)


def _auc(run: Run) -> Judged | None:
    names = [name for name, one in run.series.items() if is_auc(one)]
    name = next((name for name in sorted(names, key=lambda name: not name.startswith("eval_"))), None)
    if name is None or len(run[name].finite) < LEAST_EVALUATIONS:
        return None
    return Judged(run[name].finite, 0.5, LOW_AUC / 0.5, "that of a guess is")


def _ranking(run: Run) -> Judged | None:
    """Return the ranking that has kept most of what it had at first."""
    found = [one.finite for one in ranking_metrics(run) if len(one.finite) >= LEAST_RANKINGS]
    judged = [
        Judged(one, first, SHARE_OF_UNTRAINED, "at the first it was")
        for one in found
        if 0 < (first := float(as_shares(one.value)[0])) < MOST_BY_A_GUESS
    ]
    return max(judged, key=lambda one: one.reached / one.guess, default=None)
