"""How training and evaluation differ.

This holds the gap of their losses, an evaluation loss that rises, and scores of both at the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import aligned, finite_of, median_of_three, noise_on_slope
from mldebug_mcp.checks.evaluation import (
    LEAST_FOR_MEDIAN,
    beside_training,
    evaluation_losses,
    refuse_after_explosion,
    start_of,
    still_gains,
    worst_written,
)
from mldebug_mcp.checks.progress import MAX_STARTING_PASSES, passes_at, predicts_tokens
from mldebug_mcp.core.arrays import SPREAD_VALUES, distinct, median
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series

# Whether training rows are as new to the model as evaluation rows, or known by heart.


MIN_LOSS_SHARE_KEPT = 0.5
"""Of the first training loss, kept at the first evaluation: rows are not known by heart then. Chosen: half."""
FIRST_PASS = 1.02
"""Passes over the data up to which its rows are new. Chosen: loaders round up."""


def refuse_known_by_heart(run: Run, step: float, train: float, start: float) -> None:
    """Raise CannotTell if training rows may be known by heart at the first evaluation."""
    passes = passes_at(run, np.array([step]))
    if run.kind == "boosting" and step > 1:
        raise CannotTell(f"the first evaluation stands after {figure(step)} rounds: trees may know rows by heart")
    if passes is not None and float(passes[0]) > MAX_STARTING_PASSES:
        raise CannotTell(f"the first evaluation is at pass {figure(passes[0])}: rows may be memorised by then")
    begun = float(run["epoch"].value[0]) if "epoch" in run and len(run["epoch"]) else 0.0
    if passes is None and begun > MAX_STARTING_PASSES:
        raise CannotTell(f"the log begins in epoch {figure(begun)}: rows may be memorised by then")
    fresh = passes is not None and float(passes[0]) <= FIRST_PASS
    if train < MIN_LOSS_SHARE_KEPT * start and not fresh:
        raise CannotTell(
            f"at the first evaluation ({run.place(step)}) the training loss had already gone from "
            f"{figure(start)} to {figure(train)}: whether they ever were close is not known"
        )


# An evaluation loss that rises from its lowest, however little, while the training loss does not.


LEAST_RISE = 0.01
"""Of the minimum: by so much it rises for good. Chosen: evaluation on a fixed set has hardly any noise."""
SHARE_OF_START = 0.03
"""Share of the first evaluation loss, or of what training began with where larger, that a rise is. Chosen: near zero a
doubling is nothing; small sets move by 3 % as the model wanders."""
SHARE_OF_START_OF_TOKENS = 0.01
"""The same of a language model. Chosen: means over many tokens move by less."""
LEAST_FALL = 0.02
"""Share of itself by which a training loss that stands still falls, over means of epochs, which are free of noise. Rows
are not learnt by heart so. Chosen: by hand."""
FALL_OF_RISE = 0.25
"""The same as a share of the rise; the smaller of both counts. Chosen: by hand."""
BELOW_TRAINING = 0.05
"""Share by which an evaluation below the noisy training loss, of dropout or a high rate, must rise. Chosen: by hand."""
TIMES_BELOW = 2.0
"""Times what counts else that it must rise by: the evaluation wanders with that noise. Chosen: by hand."""
IN_A_ROW = 4
"""Evaluations that each rise above the one before. Chosen: noise would turn back."""
SHARE_IN_A_ROW = 0.008
"""Share of the first that then suffices. Chosen: noise would turn back."""
LEARNS_ON = 0.1
"""Share of the training loss at the lowest evaluation by which it falls on. Chosen: a rise meanwhile is not scatter."""
LEAST_LATE = 4
"""Evaluations that tell their noise. Chosen: by hand."""
MIN_RECORDS_PER_EVALUATION = 6
"""Records to an evaluation that give a median. Chosen: fewer show how the training loss moved between."""
MAX_SLIGHT_RISE_SHARE = 0.05
"""Of the minimum: a rise by less in the nats of tokens, up and down by turns, is not reported. Most fine-tuning
over three epochs ends with one. Chosen: by hand."""
MAX_OVERCONFIDENT_RISE_SHARE = 0.5
"""Of the minimum: a rise by less is of answers that are too sure, while most get better. Chosen: by hand."""
OF_START_TOO_SURE = 0.1
"""Of the loss at first: a rise by less while accuracy stays comes from the few wrong answers, given ever more
surely. Chosen: overfitted runs of nine right answers in ten rise by more."""
MOSTLY_RIGHT = 0.9
"""Share of right answers from which on few are wrong. Chosen: one in ten."""
STAYS_RIGHT = 0.03
"""By which such a share is below its best at most while it stays. Chosen: two errors of a few hundred rows."""
LEFT_OF_START = 0.25
"""Of the loss at first, what is left of it where nearly all is learnt. Chosen: one common class has as much left."""
MIN_EARLIER_RISE_RATIO = 2.0
"""Times an earlier rise that came back: evaluated at every step it goes up and down. Chosen: by hand."""
LEAST_OF_EXCERPT = 6
"""Evaluations from which the first may be the lowest although the log begins late. Chosen: by hand."""
MAX_LOG_START_SHARE = 0.5
"""Share of the run after which a log begins late. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class EvalRise:
    """An evaluation loss that rises from its minimum.

    Args:
        name: What it is called.
        step: Where its minimum is.
        minimum: The minimum.
        last: Where it ends.
        train: The training loss at the minimum and at the end, None where it is not logged.
        gains: Whether what is written out still gets better.
        slight: Whether it rises by no more of the nats of tokens than sound fine-tuning ends with, or than a few wrong
            answers cost.
        rising, sets: How many of how many evaluation losses rise.
    """

    name: str
    step: float
    minimum: float
    last: float
    train: tuple[float, float] | None
    gains: bool
    slight: bool
    rising: int = 1
    sets: int = 1

    @property
    def relative(self) -> float:
        """The rise as a share of the minimum."""
        return (self.last - self.minimum) / abs(self.minimum) if self.minimum else math.nan


def rise_of_evaluation(run: Run) -> EvalRise | None:
    """Return how an evaluation loss rises, by however little; of several sets the one that rises most, if most do.

    Raises CannotTell where too few are logged, or what training does meanwhile is unknown.
    """
    series = [loss.finite for loss in evaluation_losses(run) if len(loss.finite) >= LEAST_FOR_MEDIAN]
    if not series:
        raise CannotTell(f"no evaluation loss has {LEAST_FOR_MEDIAN} finite values")
    refuse_after_explosion(run, series[0])
    found = [rise for evaluation in series if (rise := _rise(run, evaluation)) is not None]
    if not found or 2 * len(found) < len(series):
        return None
    return replace(max(found, key=lambda eval_rise: eval_rise.relative), rising=len(found), sets=len(series))


def _least_rise(run: Run, evaluation: Series, lowest: float, *, in_a_row: bool) -> float:
    """Return by how much an evaluation must rise to be no chance.

    The lowest of n normal values lies about sqrt(2 ln n) - 0.5 below their mean; the mean of the last two by chance
    1.4 above it, two of its own standard deviations.
    """
    first = abs(float(evaluation.value[0]))
    if in_a_row:
        return max(LEAST_RISE * abs(lowest), SHARE_IN_A_ROW * first)
    # Evaluation may begin when most of it is learnt.
    loss = finite_of(run, "loss")
    started = abs(start_of(run, loss)) if len(loss) else 0.0
    share = SHARE_OF_START_OF_TOKENS if predicts_tokens(run) or _learnt_on(run, evaluation) else SHARE_OF_START
    chance = (math.sqrt(2 * math.log(len(evaluation))) + 0.9) * _noise(evaluation.value)
    return max(LEAST_RISE * abs(lowest), share * max(first, started), chance)


def _noise(values: Floats) -> float:
    """Return the noise, of the later half where that is less: a steep beginning is not noise."""
    whole, later = noise_on_slope(values), values[len(values) // 2 :]
    return min(whole, noise_on_slope(later)) if len(later) >= LEAST_LATE else whole


def _learnt_on(run: Run, evaluation: Series) -> bool:
    """Say whether each evaluation behind the lowest is above the last, and the training loss falls on meanwhile."""
    best = int(np.argmin(evaluation.value))
    if "loss" not in run or len(evaluation) - best < LEAST_FOR_MEDIAN or (np.diff(evaluation.value[best:]) <= 0).any():
        return False
    steps, train, _ = aligned(run["loss"].finite, evaluation)
    train = train[steps >= evaluation.step[best]]
    return len(train) > 1 and float(train[-1]) < (1 - LEARNS_ON) * float(train[0])


def _rise(run: Run, evaluation: Series) -> EvalRise | None:
    best = int(np.argmin(evaluation.value))
    lowest, last, after = float(evaluation.value[best]), median(evaluation.value[-2:]), evaluation.value[best + 1 :]
    rise = last - lowest
    in_a_row = len(after) >= IN_A_ROW and bool((np.diff(evaluation.value[best:]) > 0).all())
    least = _least_rise(run, evaluation, lowest, in_a_row=in_a_row)
    if rise <= 0 or rise < least or len(after) < 2:
        return None
    smooth = median_of_three(evaluation.value[: best + 1])
    if not in_a_row and rise < MIN_EARLIER_RISE_RATIO * float(np.max(smooth - np.minimum.accumulate(smooth))):
        return None
    if best == 0 and len(evaluation) < LEAST_OF_EXCERPT and run.first_step > MAX_LOG_START_SHARE * run.last_step > 0:
        raise CannotTell("few evaluations from the middle of a run, the first the lowest: a lower one may come before")
    if best == 0 and "loss" not in run:
        raise CannotTell("the training loss is not logged for an evaluation loss that only rises")
    train = _training_levels_at_rise(run, evaluation, after, lowest + 0.5 * rise)
    if train is not None:
        at_best, half_way, at_end = train
        below = last < at_end and not in_a_row and rise < max(BELOW_TRAINING * abs(lowest), TIMES_BELOW * least)
        means = len(run["loss"].finite) < 2 * len(evaluation)
        stands = means and at_best - at_end < min(LEAST_FALL * abs(at_best), FALL_OF_RISE * rise)
        if max(at_end, half_way) > at_best + 0.5 * rise or below or stands:
            return None
    onset, wrong = float(evaluation.step[best]), worst_written(run)
    gains = wrong is not None and rise < MAX_OVERCONFIDENT_RISE_SHARE * lowest and still_gains(wrong, onset)
    tokens = predicts_tokens(run) or run.kind == "unknown"
    slight = tokens and not in_a_row and not gains and rise < MAX_SLIGHT_RISE_SHARE * abs(lowest)
    slight = slight or _few_wrong_too_sure(run, evaluation, lowest, last)
    ends = None if train is None else (train[0], train[2])
    return EvalRise(evaluation.name, onset, lowest, last, ends, gains, slight)


def _few_wrong_too_sure(run: Run, evaluation: Series, lowest: float, last: float) -> bool:
    """Say whether nearly all is learnt and stays right, so that a small rise is that of a few wrong answers."""
    started = max(float(evaluation.value[0]), start_of(run, run["loss"].finite) if "loss" in run else 0.0)
    accuracy = next((score for score in evaluation_scores(run) if score.name == "eval_accuracy"), None)
    if accuracy is None or evaluation.name != "eval_loss" or len(accuracy) < LEAST_FOR_MEDIAN:
        return False
    right, small = median(accuracy.value[-LEAST_FOR_MEDIAN:]), last - lowest < OF_START_TOO_SURE * started
    stays = right >= max(MOSTLY_RIGHT, float(accuracy.value.max()) - STAYS_RIGHT)
    return small and stays and last <= LEFT_OF_START * started


def _training_levels_at_rise(
    run: Run, evaluation: Series, after: Floats, half: float
) -> tuple[float, float, float] | None:
    """Return the training loss at the minimum, where half of the rise is done, and at the end."""
    loss = finite_of(run, "loss")
    often = len(loss) >= MIN_RECORDS_PER_EVALUATION * len(
        evaluation
    )  # of single batches, whose noise would be taken for a rise
    before = (beside_training if often else aligned)(loss, evaluation)[1]
    if len(before) < len(after) + 1:
        return None
    half_way = int(np.argmax(after >= half)) - len(after)
    return float(before[-len(after) - 1]), float(before[half_way]), float(before[-1])


# How many rows are behind a share: shares of n rows are multiples of 1 / n.


MAX_ROWS_TRIED = 2000
"""Rows up to which a number of them is tried. Chosen: by hand."""
MAX_CHANCE_OF_MULTIPLES = 1e-3
"""How likely random numbers may be multiples of some 1 / n that small, for n to be believed. Chosen: by hand."""
LEAST_DECIMALS = 2
"""Digits that shares are printed with at least. Chosen: by hand."""
MOST_DECIMALS = 6
"""Digits that shares are printed with at most. Chosen: single precision has no more that can be relied on."""


def rows_behind(shares: Floats) -> int | None:
    """Return the least number of rows that makes all of these shares, None if chance could do the same.

    Random numbers printed to d decimals fall within half a unit of a multiple of 1 / n with probability n / 10^d each;
    so all of m different ones do for some number of rows up to n: with at most n times that to the power of m.
    Chance alone therefore decides how many rows so many digits can tell.
    """
    finite = distinct(shares[np.isfinite(shares)])
    logged_shares = finite[(finite > 0) & (finite < 1)]
    if not len(logged_shares):
        return None
    off = 10.0 ** -_decimals(logged_shares)
    some = logged_shares[:: max(1, len(logged_shares) // SPREAD_VALUES)]
    for rows in range(2, MAX_ROWS_TRIED + 1):
        if rows * min(1.0, rows * off) ** len(logged_shares) > MAX_CHANCE_OF_MULTIPLES:
            return None
        if all(_are_multiples(shares, rows, off) for shares in (some, logged_shares)):
            return rows
    return None


def _are_multiples(shares: Floats, rows: int, off: float) -> bool:
    """Say whether shares are multiples of one row's, as far as they are printed."""
    right = shares * rows
    return float(np.abs(right - np.round(right)).max()) <= 0.5001 * off * rows


def sampling_error(share: float, rows: float) -> float:
    """Return the standard error of a share of so many rows, that of a binomial: sqrt(p (1 - p) / n)."""
    kept = min(max(share, 0.0), 1.0)
    return math.sqrt(max(kept * (1 - kept), 0.5 / rows * (1 - 0.5 / rows)) / rows)


def _decimals(shares: Floats) -> int:
    for decimals in range(LEAST_DECIMALS, MOST_DECIMALS):
        if bool(np.all(np.abs(shares - np.round(shares, decimals)) < 1e-9)):
            return decimals
    return MOST_DECIMALS


# The same score of training and of evaluation, at the same steps and passes over the data.
#
# A score is a share of one that is better the higher it is, such as accuracy or F1; an error rate counts as one less
# itself. Losses are not compared here: dropout, smoothing and sums put them on scales of their own.


SCORES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.REWARD_ACCURACY, Quantity.F1, Quantity.AUC, Quantity.DICE,
    Quantity.IOU, Quantity.AVERAGE_PRECISION, Quantity.ERROR_RATE,
)  # fmt: skip
ERROR_RATES = (Quantity.ERROR_RATE, Quantity.WORD_ERROR_RATE)
MOST_WORDS = 5.0
"""Words that are wrong or too many for one spoken word, up to which a word error rate is a share. Chosen: by hand."""
MAX_RECENT_TRAIN_RECORDS = 20
"""Training records before an evaluation, at most, whose mean stands for the score or loss there: of those since the one
before, the later half. Chosen: batches are small, and what moves fast is soon out of date."""


@dataclass(frozen=True, slots=True)
class ScorePair:
    """One score of training and of evaluation.

    Args:
        trained: Name of the score in training.
        evaluated: Its name at evaluation.
        steps: Steps of the evaluations that training precedes, ascending, shape (n,).
        train: Mean of the last training records before each (`MAX_RECENT_TRAIN_RECORDS`), as a share, shape (n,).
        evaluation: The score of evaluation, as a share, shape (n,).
        passes: Passes over the data made at each, shape (n,); None is not known.
        rows: Rows of the evaluation set, as set or as its scores tell; None is not known.
    """

    trained: str
    evaluated: str
    steps: Floats
    train: Floats
    evaluation: Floats
    passes: Floats | None
    rows: float | None

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def gap(self) -> Floats:
        """By how much training is better, shape (n,)."""
        return self.train - self.evaluation

    @property
    def noise(self) -> float:
        """The standard deviation of one gap: of its second differences, which no slope moves, or that of sampling."""
        sampled = sampling_error(median(self.evaluation), self.rows) if self.rows else 0.0
        return max(sampled, noise_on_slope(self.gap))

    @property
    def later(self) -> slice:
        """The later half of the evaluations."""
        return slice(len(self) // 2, None)


def score_pairs(run: Run) -> list[ScorePair]:
    """Return the scores that both training and evaluation log, the most usual one first."""
    return list(_pairs(run))


def evaluation_scores(run: Run) -> list[Series]:
    """Return the scores of evaluation as shares that are better the higher they are, of no part, the most usual first.

    An error rate is turned round, and keeps its name.
    """
    found = []
    for quantity in (*SCORES, Quantity.WORD_ERROR_RATE):
        for series in run.with_role(quantity, phase="eval"):
            shares = _shares(
                _all_wrong_at_most(series.finite) if quantity is Quantity.WORD_ERROR_RATE else series.finite
            )
            if shares is not None:
                found.append(replace(shares, value=1 - shares.value) if quantity in ERROR_RATES else shares)
    return found


def _all_wrong_at_most(rates: Series) -> Series:
    """Return word error rates without what inserted words add to one: of shares, not of per cents."""
    low = len(rates) > 0 and float(rates.value.min()) <= 1 and float(rates.value.max()) < MOST_WORDS
    return replace(rates, value=np.minimum(rates.value, 1.0)) if low else rates


def _pairs(run: Run) -> Iterator[ScorePair]:
    for quantity in SCORES:
        trained: dict[str, Series] = {}
        for series in run.with_role(quantity, phase="train", parts=True):
            trained.setdefault(_part(series), series)
        for series in run.with_role(quantity, phase="eval", parts=True):
            train_series = trained.get(_part(series))
            pair = None if train_series is None else _paired(run, quantity, train_series.finite, series.finite)
            if pair is not None:
                yield pair


def _part(series: Series) -> str:
    return series.role.part if series.role is not None else ""


def _paired(run: Run, quantity: Quantity, train: Series, evaluation: Series) -> ScorePair | None:
    ours, theirs = _shares(train), _shares(evaluation)
    if ours is None or theirs is None or (ours.value is train.value) != (theirs.value is evaluation.value):
        return None  # one of them may be in per cent
    until = np.searchsorted(train.step, evaluation.step, side="right")
    keep = until > 0
    if not keep.any():
        return None
    level, _ = recent_means(ours.value, until[keep])
    held_out, steps = theirs.value[keep], evaluation.step[keep]
    if quantity is Quantity.ERROR_RATE:
        level, held_out = 1 - level, 1 - held_out
    rows = run.setting("eval_rows") or (rows_behind(held_out) if quantity in (SCORES[0], SCORES[-1]) else None)
    return ScorePair(train.name, evaluation.name, steps, level, held_out, passes_at(run, steps), rows)


def recent_means(values: Floats, ends: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    """Return means of the values before each end, and of how many: the later half since the last end, or fewer."""
    count = np.clip((np.diff(ends, prepend=0) + 1) // 2, 1, MAX_RECENT_TRAIN_RECORDS)
    total = np.concatenate([[0.0], np.cumsum(values)])
    return (total[ends] - total[ends - count]) / count, count


def _shares(series: Series) -> Series | None:
    """Return a score as shares of one; the series itself if it is, None for other metrics."""
    if not len(series) or float(series.value.min()) < 0:
        return None
    highest = float(series.value.max())
    return series if highest <= 1 else series.times(0.01) if highest <= 100 else None
