"""A training loss that makes no progress, or stops too high: constant, flat from the start, stuck after a fall."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.answers import has_settled, nothing_right
from mldebug_mcp.measure.beginning import is_late
from mldebug_mcp.measure.evaluation import evaluation_stands
from mldebug_mcp.measure.quality import ACCURACIES, as_share
from mldebug_mcp.measure.scale import LANGUAGE_MODELS, comes_trained, uniform_loss
from mldebug_mcp.measure.stall import HIGH_SHARE, stalled
from mldebug_mcp.measure.statistics import (
    MEDIAN_ERROR,
    blocks,
    edge_width,
    end_level,
    last_decimal,
    median,
    noise,
    start_level,
)
from mldebug_mcp.measure.terms import refuse_new_terms
from mldebug_mcp.symptoms.levels.loss_slow import creeps_below
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

SAME, TAIL = 5, 3
"""Records of one and the same loss, and the part of the log that they are. Chosen: rounding at rest is shorter."""
EXACTLY, ROUNDED = 1e-9, 3e-4
"""Share by which they differ, and where the accuracy stands too. Chosen: a unit of the fourth digit."""
LAST_DIGITS = 1.5
"""Units of the last decimal by which a loss comes to rest that goes on falling unseen. Chosen: one, and rounding."""
SATURATED = 0.85
"""Accuracy from which on little is left to learn. Chosen: as in `eval_metric_constant`."""
LEAST_PROGRESS, PROGRESS_OF_TRAINED = 0.03, 0.015
"""Share of the first level that a run gains that learns, or comes trained. Chosen: slow pretraining passes."""
SURE, SEEMS = 3.0, 2.0
"""Standard errors from which on progress is sure, and likely. Chosen: 1 in 700, and 1 in 40."""
FIRST = 5
"""Records that stand for the beginning of a long log. Chosen: a small model is done soon."""
FEW_POINTS = 4
"""Records that prove it where evaluation stands, too. Chosen: two witnesses of few points each."""
LEAST_POINTS, LONG, MIDDLE = 12, 100, 0.2
"""Records that prove a flat curve; from how many on a log is long; share after which a log begins late. Chosen: a run
that learns shows it."""
MOST_NOISE, MOST_NOISE_LONG = 0.12, 0.3
"""Share of the level that `SURE` errors may be, in a long log too. Chosen: more could hide what runs gain."""
NEAR_CHANCE = 0.02
"""Within this share of ln(classes) the model guesses. Chosen: as noise goes."""
SETTLING, SETTLING_OF_TWO = 1.5, 1.15
"""Times ln(classes) from which a new classifier falls without learning, and where two classes are taken for granted.
Chosen: usual initialisations; a loss that falls from far may pass by."""
FROM_SCRATCH, STUCK = 0.1, 0.01
"""Share of its first loss that a new language model gains from frequencies, and that it moves later. Chosen: less is
stuck."""
KNOWS = 0.75
"""Accuracy at the first evaluation from which on a flat loss may be done. Chosen: far above a guess."""
LEAST_EVALUATIONS = 4
"""Chosen: fewer show no trend."""
RISES = 1.1
"""Times the first level: no level above it is one of standing still. Chosen: as wide as the noise of short logs."""


def loss_constant(run: Run) -> Evidence | None:
    """The training loss is the same number in every record, or from some step on to the end.

    Not this when: it is zero (`loss_zero`), or moves within its noise; it comes to rest by the last printed decimal.
    """
    loss = run["loss"].finite
    last = float(loss.value[-1])
    same = np.abs(loss.value - last) <= (ROUNDED if _accuracy_stands(run) else EXACTLY) * abs(last)
    tail = len(same) if same.all() else int(np.argmin(same[::-1]))
    if last == 0 or tail < SAME or tail * TAIL < len(same):
        return None
    if tail < len(same) and abs(float(loss.value[-tail - 1]) - last) < LAST_DIGITS * last_decimal(loss.value):
        return None
    first = float(loss.step[len(same) - tail])
    said = f"loss is {figure(last)} in all {tail} records from {run.place(first)} to the end"
    return Evidence(said, steps=(first,), values={"value": last, "records": tail, "share": tail / len(same)})


def _accuracy_stands(run: Run) -> bool:
    """Say whether the training accuracy is one and the same number throughout, and not that of a model that is done."""
    accuracy = run["accuracy"].finite.value if "accuracy" in run else np.empty(0)
    return len(accuracy) >= SAME and float(np.ptp(accuracy)) == 0 and as_share(float(accuracy[0])) < SATURATED


def loss_plateau(run: Run) -> Evidence | None:
    """The training loss makes no progress from the start of the log to its end, or none beyond a uniform guess.

    Not this when: it fell before the log began; the noise could hide progress; evaluation learns, or is right already.
    """
    loss = run["loss"].finite
    cut = blocks(loss.value, 10)
    start, best = _first_level(loss.value), float(cut.level[1:].min(initial=np.inf))
    if start <= 0 or math.isinf(best) or best > start * RISES or float(np.ptp(loss.value)) <= EXACTLY * abs(start):
        return None
    stands = evaluation_stands(run) or _evaluation_gains_nothing(run)
    gained = start - (end_level(loss.value) if stands else best)
    error = math.hypot(cut.wobble, MEDIAN_ERROR * noise(loss.value) / math.sqrt(edge_width(len(loss))))
    least, chance = max(LEAST_PROGRESS * start, SURE * error), _chance(run, best)
    rises = end_level(loss.value) - start > least and not stands
    if rises or (chance is not None and creeps_below(run, chance)):
        return None
    if gained > least:
        if not _ends_at(run, chance, start, loss) and not _stuck_from_scratch(run, loss, start, gained):
            _refuse_nothing_right(run, loss)
            return None
    elif chance is None:
        if SURE * error > LEAST_PROGRESS * start and _evaluation_falls(run):
            return None
        _refuse_to_judge(run, loss, start, gained, error, stands=stands)
    beside = f"; a uniform guess has {figure(chance)} = ln({math.exp(chance):.0f})" if chance is not None else ""
    return Evidence(
        f"the level of the loss is {figure(start)} at the start and {figure(best)} at its lowest after that, up to "
        f"{run.place(loss.step[-1])}{beside}",
        steps=(float(loss.step[0]),),
        values={"start": start, "best": best, "gained": gained, "noise": error}
        | ({"uniform_guess": chance} if chance is not None else {}),
    )


def _first_level(values: Floats) -> float:
    """Return the level of the first twentieth, or of the first records where a long log falls clearly from there."""
    level, first = start_level(values), median(values[:FIRST])
    if edge_width(len(values)) < 4 * FIRST:
        return level
    doubt = SURE * MEDIAN_ERROR * noise(values) / math.sqrt(FIRST)
    return first if first - level > max(LEAST_PROGRESS * abs(level), doubt) else level


def _ends_at(run: Run, chance: float | None, start: float, loss: Series) -> bool:
    """Say whether a fall ends at the loss of a guess, and began no farther above than new models do."""
    if chance is None or abs(end_level(loss.value) - chance) > NEAR_CHANCE * chance:
        return False
    return start <= chance * (SETTLING if uniform_loss(run) is not None else SETTLING_OF_TWO)


def _refuse_nothing_right(run: Run, loss: Series) -> None:
    if nothing_right(run) is not None and has_settled(loss):
        raise CannotTell("the loss falls and comes to rest where no answer is right (`loss_at_chance`)")


def _refuse_to_judge(run: Run, loss: Series, start: float, gained: float, error: float, *, stands: bool) -> None:
    """Raise CannotTell if a flat curve proves nothing: noisy, short, from the middle of a run, or done already."""
    doubt = SURE * error / start
    if doubt > (MOST_NOISE_LONG if len(loss) >= LONG else MOST_NOISE) and not stands:
        raise CannotTell(f"the noise could hide progress by {doubt:.0%}")
    if len(loss) < LEAST_POINTS and not (len(loss) >= FEW_POINTS and stands):
        raise CannotTell(f"{len(loss)} records are flat; {LEAST_POINTS} are needed")
    if _begins_late(run):
        raise CannotTell(f"the log begins at step {figure(loss.step[0])}: a fall before it would not show")
    trained = run.kind in LANGUAGE_MODELS and comes_trained(run, start)
    if gained > max((PROGRESS_OF_TRAINED if trained else LEAST_PROGRESS) * start, SEEMS * error):
        raise CannotTell(f"progress of {gained / start:.1%} is likely, but not beyond the noise")
    if run.kind == "pretraining" and trained:
        raise CannotTell(f"the loss begins at {figure(start)}, that of a model that comes trained: it may be done")
    if any(KNOWS <= one <= 1 for one in _first_accuracies(run)):
        raise CannotTell("the first evaluations are right already: there may be nothing left to learn")


def _stuck_from_scratch(run: Run, loss: Series, start: float, gained: float) -> bool:
    """Say whether a new language model has learnt less than the frequencies of tokens, and no longer learns."""
    if run.kind != "pretraining" or comes_trained(run, start) or _begins_late(run) or len(loss) < LEAST_POINTS:
        return False
    later = blocks(loss.value[len(loss) // 2 :], 5).level
    return gained < FROM_SCRATCH * start and float(np.ptp(later)) <= STUCK * start


def _begins_late(run: Run) -> bool:
    return is_late(run, float(run["loss"].finite.step[0]), MIDDLE, 0)


def _first_accuracies(run: Run) -> list[float]:
    logged = [run[name].finite.value for name in ACCURACIES if name in run]
    return [float(one[0]) for one in logged if len(one)]


def _evaluation_gains_nothing(run: Run) -> bool:
    """Say whether evaluation, from early on, has come no lower than a run that learns does, in all that time."""
    evaluation = run["eval_loss"].finite if "eval_loss" in run else None
    if evaluation is None or len(evaluation) < LEAST_EVALUATIONS or evaluation.step[0] > MIDDLE * run.last_step:
        return False
    first, trained = float(evaluation.value[0]), run.kind in LANGUAGE_MODELS
    least = PROGRESS_OF_TRAINED if trained else LEAST_PROGRESS
    return first - float(evaluation.value.min()) <= least * first and end_level(evaluation.value) <= RISES * first


def _evaluation_falls(run: Run) -> bool:
    """Say whether the evaluation loss has fallen by as much as a run that learns lowers its loss."""
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    return len(evaluation) >= LEAST_EVALUATIONS and end_level(evaluation) < (1 - LEAST_PROGRESS) * evaluation[0]


def _chance(run: Run, best: float) -> float | None:
    """Return ln(classes), by default of two, if the lowest level lies near it.

    Of more classes the number has to be known: every loss lies near the logarithm of some whole number.
    """
    known = uniform_loss(run)
    if known is None and (run.kind in LANGUAGE_MODELS or _begins_late(run)):
        return None
    guess = math.log(2) if known is None else known
    return guess if abs(best - guess) < NEAR_CHANCE * guess else None


def loss_stall(run: Run) -> Evidence | None:
    """The training loss falls at first, then stops, still near what a guess by frequency would give.

    Not this when: it is low already; it never fell (`loss_plateau`). Needs the number of classes or tokens.
    """
    refuse_new_terms(run)
    stall = stalled(run["loss"].finite)
    if stall is None:
        return None
    uniform = uniform_loss(run)
    if uniform is None:
        if run.kind in LANGUAGE_MODELS or stall.end < HIGH_SHARE:
            return None
        raise CannotTell(
            "the loss does not move, but without the number of classes or tokens it is not known where it should be"
        )
    if stall.end < HIGH_SHARE * uniform:
        return None
    return Evidence(
        f"loss falls from {figure(stall.start)} to {figure(stall.end)} by {run.place(stall.onset)} and moves by no "
        f"more than {figure(stall.moved)} after; a uniform guess has {figure(uniform)} = ln({math.exp(uniform):.0f})",
        steps=(stall.onset,),
        values={
            "start": stall.start,
            "end": stall.end,
            "moved_in_second_half": stall.moved,
            "uniform_guess": uniform,
        },
    )
