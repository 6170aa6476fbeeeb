"""The same score of training and of evaluation, at the same steps and passes over the data.

A score is a share of one that is better the higher it is, such as accuracy or F1; an error rate counts as one less
itself. Losses are not compared here: dropout, smoothing and sums put them on scales of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.passes import passes_at
from mldebug_mcp.measure.rows import rows_behind, sampling_error
from mldebug_mcp.measure.statistics import noise_on_slope

SCORES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.REWARD_ACCURACY, Quantity.F1, Quantity.AUC, Quantity.DICE,
    Quantity.IOU, Quantity.AVERAGE_PRECISION, Quantity.ERROR_RATE,
)  # fmt: skip
_ERRORS = (Quantity.ERROR_RATE, Quantity.WORD_ERROR_RATE)
MOST_WORDS = 5.0
"""Words that are wrong or too many for one that was said, up to which a word error rate is a share. Chosen: by hand."""
NEAR = 20
"""Training records before an evaluation, at most, whose mean stands for the score there: of those since the one before,
the later half. Chosen: batches are small, and a score that rises fast is soon out of date."""


@dataclass(frozen=True, slots=True)
class ScorePair:
    """One score of training and of evaluation.

    Args:
        trained: Name of the score in training.
        evaluated: Its name at evaluation.
        steps: Steps of the evaluations that training precedes, ascending, shape (n,).
        train: Mean of the last training records before each (`NEAR`), as a share, shape (n,).
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
        sampled = sampling_error(float(np.median(self.evaluation)), self.rows) if self.rows else 0.0
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
        for one in run.with_role(quantity, phase="eval"):
            shares = _shares(_all_wrong_at_most(one.finite) if quantity is Quantity.WORD_ERROR_RATE else one.finite)
            if shares is not None:
                found.append(replace(shares, value=1 - shares.value) if quantity in _ERRORS else shares)
    return found


def _all_wrong_at_most(rates: Series) -> Series:
    """Return word error rates without what inserted words add to one: of shares, not of per cents."""
    low = len(rates) > 0 and float(rates.value.min()) <= 1 and float(rates.value.max()) < MOST_WORDS
    return replace(rates, value=np.minimum(rates.value, 1.0)) if low else rates


def _pairs(run: Run) -> Iterator[ScorePair]:
    for quantity in SCORES:
        trained: dict[str, Series] = {}
        for one in run.with_role(quantity, phase="train", parts=True):
            trained.setdefault(_part(one), one)
        for one in run.with_role(quantity, phase="eval", parts=True):
            beside = trained.get(_part(one))
            pair = None if beside is None else _paired(run, quantity, beside.finite, one.finite)
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
    level = _levels(ours.value, until[keep])
    held_out, steps = theirs.value[keep], evaluation.step[keep]
    if quantity is Quantity.ERROR_RATE:
        level, held_out = 1 - level, 1 - held_out
    rows = run.setting("eval_rows") or (rows_behind(held_out) if quantity in (SCORES[0], SCORES[-1]) else None)
    return ScorePair(train.name, evaluation.name, steps, level, held_out, passes_at(run, steps), rows)


def _levels(values: Floats, ends: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Floats:
    """Return the mean of the last values before each end: of the later half since the end before, `NEAR` at most."""
    before = np.concatenate([[0], ends[:-1]])
    count = np.clip((ends - before + 1) // 2, 1, NEAR)
    since = ends - count
    total = np.concatenate([[0.0], np.cumsum(values)])
    means: Floats = (total[ends] - total[since]) / count
    return means


def _shares(series: Series) -> Series | None:
    """Return a score as shares of one; the series itself if it is, None if it is no score."""
    if not len(series) or float(series.value.min()) < 0:
        return None
    highest = float(series.value.max())
    return series if highest <= 1 else series.times(0.01) if highest <= 100 else None
