"""The course of a column: jumps, stretches, periods and growth, at passes over the data, at events and in cycles.

Further what schedules of the settings expect: of the learning rate, and of a task that gets harder.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import (
    LEAST_AFTER_START,
    curves_in_turn,
    leaves_start_at_once,
    mad,
    monotone,
    noise_on_slope,
    positive,
    row_medians,
    sample,
    start_level,
    true_at_end,
)
from mldebug_mcp.checks.evaluation import MUCH_DROPOUT, as_shares, is_of_averaged_weights
from mldebug_mcp.checks.gradients import layers_of, parts_of
from mldebug_mcp.checks.learning_rate import Shape, rate_comes_back, rate_of, shape_of
from mldebug_mcp.checks.progress import passes_at
from mldebug_mcp.checks.run.data_order import MIN_HARD_PLACE_SPREADS, MIN_RECORDS_FOR_PASS, batches_recur, stands_out
from mldebug_mcp.checks.run.gradients import MIN_DEPTH_CORRELATION
from mldebug_mcp.checks.run.loss_start import is_past_start
from mldebug_mcp.checks.run.resume import restarts_of
from mldebug_mcp.checks.run.schedule import MIN_LEARNT_FALL_SHARE
from mldebug_mcp.core.arrays import distinct, grouped, has_distinct, median, median_gap, quantile, slices_of
from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import figure, percent, ratio
from mldebug_mcp.judge.columns import (
    GRADIENT_WORDS,
    HALVED,
    LEAST_PAIRS,
    LOSSES,
    MIN_RECORDS_FOR_LEVEL,
    NOT_BY_LOSS,
    POLICIES,
    Facts,
    Losses,
    are_shares,
    by_key,
    called,
    columns_of,
    derived_fact,
    ends_of,
    from_to,
    given_loss,
    given_losses,
    last_level,
    last_third,
    logged,
    named,
    tenth_of,
    training_loss,
    whole_column,
    whole_columns,
)
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import is_of_ranks, member_of_rank
from mldebug_mcp.logs.names.quantities import CLOCKS, THROUGHPUTS
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.settings.settings import LANGUAGE_MODELS

# Frozen values: exactly the same while others move.


FROZEN_FOR = 0.5
"""Share of the records for which a value is the same. Chosen."""
NEARLY_ALL = 0.9
"""Share of right answers, or of passes, that is nearly all. Chosen: few are left."""
_FREEZES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.AUC, Quantity.IOU, Quantity.DICE,
    Quantity.EXPLAINED_VARIANCE, *LOSSES,
)  # fmt: skip


@given_loss(MIN_RECORDS_FOR_LEVEL)
def frozen_columns(run: Run, loss: Series) -> Facts:
    """Yield scores and losses that are exactly the same over many records while the training loss moves."""
    frozen = []
    for series in columns_of(run, *_FREEZES, least=MIN_RECORDS_FOR_LEVEL // 2):
        records = true_at_end(series.value == series.value[-1])
        is_learnt = series.quantity not in LOSSES and series.value[-1] >= NEARLY_ALL
        is_long = records >= max(MIN_RECORDS_FOR_LEVEL // 2, FROZEN_FOR * len(series))
        moved = loss.value[loss.step >= series.step[-records]]
        if series.value[-1] and not is_learnt and is_long and has_distinct(moved, LEAST_PAIRS):
            frozen.append((series, records, moved))
    for series, records, moved in frozen[:1]:
        more = f" (so are {', '.join(named(other) for other, *_ in frozen[1:3])})" if frozen[1:] else ""
        step = series.step[-records]
        yield derived_fact(
            _frozen_how(run, series, moved),
            f"{named(series)} is exactly {figure(series.value[-1])} in the last {records} of its "
            f"{len(series)} records, from {run.place(step)} on, while {named(loss)} goes from {figure(moved[0])} "
            f"to {figure(moved[-1])}{more}. New weights give other answers to some rows.{_averaged(run, series)}",
            {"value": series.value[-1], "records": records},
            at=step,
        )


_OVER_CLASSES = frozenset({"micro", "macro", "weighted", "mean", "samples"})
"""How a score is averaged over classes, which does not say what it is measured on."""


def _frozen_how(run: Run, frozen: Series, moved: Floats) -> str:
    """Return the fact that a column is frozen, by what it is and what training does meanwhile."""
    if _halves(run, frozen):
        return "frozen_while_loss_halves"
    is_evaluation = frozen.role is not None and frozen.role.is_evaluation and frozen.quantity in LOSSES
    is_learnt = moved[-1] <= HALVED * moved[0] and not is_of_averaged_weights(frozen)
    return "evaluation_loss_frozen" if is_evaluation and is_learnt and not np.ptp(frozen.value) else "frozen"


def _halves(run: Run, frozen: Series) -> bool:
    """Say whether the loss of its phase halves while a score is the same from the first record on."""
    name = "eval_loss" if frozen.role is not None and frozen.role.phase == "eval" else "loss"
    if name not in run or np.ptp(frozen.value) or frozen.role is None or frozen.quantity in LOSSES:
        return False
    if not set(frozen.role.part.split()) <= _OVER_CLASSES:  # of a set or a part of its own, whose loss may be another
        return False
    loss = run[name].finite.value
    return len(loss) >= MIN_RECORDS_FOR_LEVEL // 2 and 0 < float(loss[-1]) <= HALVED * float(loss[0])


def _averaged(run: Run, frozen: Series) -> str:
    """Return what a frozen metric of averaged weights says: the same metric of the trained weights moves."""
    if frozen.role is None or not is_of_averaged_weights(frozen):
        return ""
    same = columns_of(run, frozen.role.quantity, phase=frozen.role.phase, least=LEAST_PAIRS)
    moving = (other for other in same if not is_of_averaged_weights(other) and np.ptp(other.value) > 0)
    if (trained := next(moving, None)) is None:
        return ""
    return (
        f" In these evaluations {named(trained)} goes from {figure(trained.value[0])} to "
        f"{figure(trained.value[-1])}: the averaged weights are not updated, or not those that are evaluated."
    )


# The first record: what a model starts from, where the first update throws it away.


MAX_HARMLESS_RATE = 1e-5
"""Learning rate with which no step throws away what was learnt. Chosen: Adam moves each weight by about the rate."""


def start_thrown_away(run: Run) -> Facts:
    """Yield that a loss or a score is best in its very first record, far worse from the next one on, and never back."""
    rate = rate_of(run)
    is_low = rate is not None and float(rate.value.max()) <= MAX_HARMLESS_RATE
    large = ", or the first step is far too large"
    if rate is not None and is_low:
        large = f"; {named(rate)} is {figure(rate.value.max())} at most, too low to do that in one step"
    for series in whole_columns(run, *_FREEZES, least=LEAST_AFTER_START + 1) if run.kind not in NOT_BY_LOSS else ():
        is_score = series.role is not None and series.role.quantity.higher_is_better
        if not leaves_start_at_once(replace(series, value=1 / series.value) if is_score else series):
            continue
        first, later = float(series.value[0]), series.value[1:]
        best = float(later.max() if is_score else later.min())
        yield derived_fact(
            "start_thrown_away_at_low_rate" if is_low else "start_thrown_away",
            f"{named(series)} is {figure(first)} in its first record, {figure(later[0])} in the next, and "
            f"{figure(best)} at best in the {len(later)} after the first. What the model starts from is gone with the "
            f"first updates: the weights are set anew, or are not those that were restored{large}.",
            {"first": first, "best": best},
            at=series.step[1],
        )


# Batches with nothing to compare: a loss of exactly zero that comes at the end of each pass.


MANY_ZEROS = 0.1
"""Share of the records from which on much of the training is lost in them. Chosen: by hand."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def zeros_end_passes(run: Run, loss: Series) -> Facts:
    """Yield that the last records of nearly each pass have a loss of exactly zero, and no others."""
    zero, count = loss.value == 0, np.count_nonzero(loss.value == 0)
    if count < LEAST_PAIRS or (passes := passes_at(run, loss.step)) is None:
        return
    own = np.floor(passes - median_gap(passes) / 2)  # what a rounded epoch counts for whole may be a bit more
    of_passes = np.split(zero, np.flatnonzero(own[1:] > own[:-1]) + 1)
    zeros = [true_at_end(records) for records in of_passes]
    ended, least = np.count_nonzero(zeros), max(LEAST_PAIRS, len(zeros) * NEARLY_ALL - 1)
    if any(records.all() for records in of_passes) or sum(zeros) < count or ended < least:
        return
    share, norm = np.mean(zero), logged(run, "grad_norm")
    idle = norm is not None and bool(np.isin(loss.step[zero], norm.step[norm.value == 0]).all())
    yield derived_fact(
        "batches_of_one_row" if share >= MANY_ZEROS else "last_batch_of_one_row",
        f"{named(loss)} is exactly 0 in {count} of {len(loss)} records: up to {max(zeros)} at the "
        f"end of {ended} of {len(zeros)} passes over the data{', where the gradient norm is 0 too' if idle else ''}, "
        "and nowhere else. A contrastive loss of a batch of one row is 0, as there is nothing to compare: ln 1 = 0. "
        "drop_last=True leaves such batches out; a sampler without repeated rows makes many where rows share a text.",
        {"zeros": float(sum(zeros)), "share": float(share), "passes": float(ended)},
        steps=loss.step[zero][:20],
    )


# Jumps and passes over the data: rows that are bad come once in each pass, in whatever order.


MIN_RECURRENCES = 4
"""Times that what recurs comes at least: jumps, passes, periods. Chosen: fewer may be chance."""
MOST_CHANCE = 0.02
"""The chance at most that no two of them fall into one pass. Chosen: as usual."""
LEVEL_WINDOW_RECORDS = 11
"""Records whose median is the level of one."""
JUMPS_BY = 20.0
"""Deviations from that level that make a jump. Chosen: noise has none."""
LEAST_JUMP = 3.0
"""Times the size of the level before that makes a jump. Chosen: noise has none, of small batches less."""
MOST_RECORDS = 200_000
"""Records that are looked at: a bound on what it costs."""


@given_loss(LEVEL_WINDOW_RECORDS + 1, not_of=POLICIES)
def one_jump_a_pass(run: Run, loss: Series) -> Facts:
    """Yield that the loss jumps once in each pass over the data, or in nearly each, and never twice."""
    ends = passes_at(run, loss.step[[0, -1]]) if len(loss) <= MOST_RECORDS else None
    at = loss.step[_jumps(loss.value)] if ends is not None else np.zeros(0)
    passes = passes_at(run, at) if len(at) >= MIN_RECURRENCES else None
    if ends is None or passes is None or any(zeros_end_passes(run)):
        return
    own, (first, last) = np.maximum(1, np.ceil(passes)), np.maximum(1, np.ceil(ends)).tolist()
    count = round(last - first) + 1
    chance = math.prod(1 - number / count for number in range(len(at))) if len(at) <= count else 0.0
    if len(distinct(own)) == len(at) and 0 < chance <= MOST_CHANCE:
        yield derived_fact(
            "one_jump_a_pass",
            f"{named(loss)} jumps {len(at)} times in {count} passes over the data, and never twice in one. At "
            f"random that has a chance of {figure(chance)}; the same rows come once in each pass.",
            {"jumps": len(at), "passes": count, "chance": chance},
            at=at[0],
        )


def order_recurs(run: Run) -> Facts:
    """Yield that one place of each pass is far harder than the others, else that the whole order comes again.

    The gradient norm tells the first where it is logged: a running mean of the loss spreads such a place over many.
    """
    yield from norm_high_at_one_place(run)
    yield from whole_order_recurs(run)


@given_loss(MIN_RECORDS_FOR_PASS, not_of=POLICIES)
def whole_order_recurs(run: Run, _: Series) -> Facts:
    """Yield that the batches come again in their order, and that none of them is far harder than the others."""
    try:
        recur = batches_recur(run)
    except CannotTell:
        return
    hardest = None if recur is None else recur.values.get("hardest")
    if recur is None or hardest is None or hardest >= MIN_HARD_PLACE_SPREADS:
        return
    yield derived_fact(
        "whole_order_recurs",
        f"{recur.summary}. The hardest place of that stretch is {figure(hardest)} spreads above the median of all "
        "places: the whole order comes again, not a few bad rows in it.",
        {"hardest": hardest, **recur.values},
        steps=recur.steps,
    )


MIN_RECORDS_OF_PASS = 16
"""Records of a pass whose levels are compared. Chosen: of fewer a slope alone makes them alike."""
MAX_RECORDS_OF_PASS = 250
"""... and at most: a bound on what it costs."""
MOST_PASSES_COMPARED = 6
"""First passes that are compared: a bound on what it costs."""
ALIKE_AFTER_PASS = 0.6
"""Rank correlation of the loss with that of one pass later, at least. Chosen: single records need not agree."""
ABOVE_OTHER_LAGS = 0.4
"""How far it is above that at other distances. Chosen: what falls, or drifts, is as alike at all of them."""


@given_loss(2 * MIN_RECORDS_OF_PASS, not_of=POLICIES)
def levels_come_again(run: Run, loss: Series) -> Facts:
    """Yield that the loss is high and low at the same places of each pass: like rows stand together, in one order.

    Not this where it is as alike at other distances, one place is far harder, or the learning rate comes back.
    """
    passes = passes_at(run, loss.step) if len(loss) <= MOST_RECORDS else None
    gap = 0.0 if passes is None else median_gap(passes)
    lag = round(1 / gap) if gap > 0 else 0
    values = loss.value[lag // 4 : MOST_PASSES_COMPARED * lag]  # what is learnt at first is not of the rows
    lags = np.arange(lag // 2, min(lag + lag // 2, len(values) - max(MIN_RECORDS_OF_PASS, lag // 3)))
    is_short = not MIN_RECORDS_OF_PASS <= lag <= MAX_RECORDS_OF_PASS or lag + lag // 8 > lags.max(initial=0)
    if is_short or len(rate_comes_back(run)):
        return
    ranks = [(values[:-at].argsort().argsort(), values[at:].argsort().argsort()) for at in lags.tolist()]
    alike = np.array([float(np.corrcoef(first, later)[0, 1]) for first, later in ranks])
    best = int(np.argmax(alike))
    if abs(lags[best] - lag) > 1 or alike[best] < max(ALIKE_AFTER_PASS, median(alike) + ABOVE_OTHER_LAGS):
        return
    if (stands_out(np.log(loss.value) if positive(loss.value) else loss.value, lag) or 0.0) >= MIN_HARD_PLACE_SPREADS:
        return
    yield derived_fact(
        "levels_come_again",
        f"The highs and lows of {named(loss)} come again one pass over the data later: the rank correlation of records "
        f"{lags[best]} apart is {figure(alike[best])}, and {figure(median(alike))} in the median of other distances. "
        "Rows that are shuffled anew come at other places each time.",
        {"correlation": alike[best], "records": lags[best]},
        at=loss.step[lag],
    )


def _jumps(values: Floats) -> NDArray[np.int64]:
    """Return where single records, or a few in a row, begin to lie far above the level around them."""
    padded = np.pad(values, LEVEL_WINDOW_RECORDS // 2, mode="edge")
    level = row_medians(np.lib.stride_tricks.sliding_window_view(padded, LEVEL_WINDOW_RECORDS))
    above = (values - level) / np.maximum(np.abs(level), 1e-12)
    far = above > max(JUMPS_BY * mad(above), LEAST_JUMP)
    return np.flatnonzero(far & ~np.concatenate([[False], far[:-1]]))


_MEMBER = regex(r"(?P<list>.+)/(?P<place>\d{1,3})", needs="/")
_OF_THE_DATA = frozenset(
    {"chunk", "chunks", "shard", "shards", "file", "files", "part", "parts", "segment", "segments", "slice", "slices",
     "bucket", "buckets", "piece", "pieces", "section", "sections", "window", "windows", "group", "groups"}
)  # fmt: skip
"""Words of lists with a loss for each piece of the data."""
LEAST_PIECES = 6
"""Pieces of the data. Chosen: of fewer each may be of another kind of text."""
TIMES_OTHER_PIECES = 1.3
"""Times the median loss of the other pieces that one has, in each record. Chosen: harder text has less."""


def piece_stands_out(run: Run) -> Facts:
    """Yield that one of many pieces of the data keeps a loss above all that any other ever had.

    Not this where the list is of classes, layers or ranks, or where the piece falls to where others began.
    """
    lists = by_key(
        (match["list"], series)
        for series in columns_of(run, *LOSSES, phase="train", least=LEAST_PAIRS)
        if (match := _MEMBER.fullmatch(series.name)) and not _OF_THE_DATA.isdisjoint(pieces_of(match["list"]))
    )
    for name, pieces in lists.items():
        if len(pieces) < LEAST_PIECES or any(len(piece) != len(pieces[0]) for piece in pieces):
            continue
        values = np.array([piece.value for piece in pieces])
        at = int(np.argmax(values[:, -1]))
        own, others = values[at], np.delete(values, at, axis=0)
        usual = row_medians(others.T)
        if own.min() <= others.max() or not np.all(own > TIMES_OTHER_PIECES * usual):
            continue
        yield derived_fact(
            "piece_stands_out",
            f"{named(pieces[at])} is {from_to(own)} in all {len(own)} records. None of the other {len(others)} of "
            f"{name} is ever above {figure(others.max())}; their median goes from "
            f"{figure(usual[0])} to {figure(usual[-1])}. Harder rows are learnt with the rest; rows "
            "that cannot be learnt, such as damaged ones, stay where they are.",
            {"place": float(pieces[at].name.rpartition("/")[2]), "pieces": len(pieces)},
            at=pieces[at].step[0],
        )


_OF_UPDATES = frozenset({"update", "updates", "upd", "step", "steps", "delta", "dw"})
LEAST_UPDATED_PARTS = 3
"""Parts of a model whose updates are compared. Chosen: of two nobody knows which is usual."""
TIMES_ITS_UPDATE = 50.0
"""Times its median before that the update of a part becomes. Chosen: those of Adam are near the learning rate."""
TIMES_USUAL_UPDATE = 5.0
"""The same of a part that keeps its size meanwhile, at most."""


def update_of_a_part_jumps(run: Run) -> Facts:
    """Yield that the updates of one part of a model become many times as large while another part keeps their size."""
    groups = by_key(
        (name.rpartition("/")[0], series.finite)
        for name, series in run.series.items()
        if series.quantity in (None, *_UPDATES) and not _OF_UPDATES.isdisjoint(pieces_of(name.rpartition("/")[0]))
    )
    for parts in groups.values():
        is_short = len(parts) < LEAST_UPDATED_PARTS or min(map(len, parts)) < MIN_RECORDS_FOR_LEVEL
        if is_short or not all(positive(part.value) for part in parts):
            continue
        part = max(parts, key=_times_before)
        steady = [other for other in parts if other.value.max() <= TIMES_USUAL_UPDATE * median(other.value)]
        if _times_before(part) < TIMES_ITS_UPDATE or not steady:
            continue
        at = int(np.argmax(part.value))
        yield derived_fact(
            "update_of_a_part_jumps",
            f"{named(part)} is {figure(part.value[at])} at {run.place(part.step[at])}, "
            f"{figure(_times_before(part))} times its median before, while {named(steady[0])} stays within "
            f"{from_to(steady[0].value)}. A learning rate makes all updates larger; one part alone takes such "
            "steps where what divides them lags behind its gradient.",
            {"times": _times_before(part)},
            at=part.step[at],
        )


def _times_before(part: Series) -> float:
    at = int(np.argmax(part.value))
    return float(part.value[at]) / median(part.value[:at]) if at >= LEAST_PAIRS else 0.0


SIGMAS_OF_ROWS = 5.0
"""Standard errors of a share of so many rows, by which a record is off its neighbours. Chosen: one in a million is."""
OFF_BY = 0.2
"""Share of right answers by which it is off as well. Chosen: one device may count fewer rows than a batch has."""
OFTEN_OFF = 0.03
"""Share of the records that are. Chosen: a few batches that are bad have fewer."""
RECORDS_PER_SIDE = 3
"""Records before and after whose medians a record is compared with. Chosen: a level that rises lies between them."""


def rows_of_a_batch_alike(run: Run) -> Facts:
    """Yield that the share of right answers often leaves that of the records before and after, far beyond chance.

    Rows that are drawn at random make it scatter by the binomial law. Not this where rows of a batch answer together,
    as in contrastive learning.
    """
    score = whole_column(run, Quantity.ACCURACY, phase="train", least=2 * LEVEL_WINDOW_RECORDS)
    if run.kind in NOT_BY_LOSS or run.step_name == "epoch" or score is None:
        return
    share = as_shares(score.value[-MOST_RECORDS:])
    rows = run.setting("per_device_train_batch_size") or _least_rows(share)
    if rows < FEW_ROWS or not are_shares(share):
        return
    inner = share[RECORDS_PER_SIDE:-RECORDS_PER_SIDE]
    sides = row_medians(np.lib.stride_tricks.sliding_window_view(share, RECORDS_PER_SIDE))
    before, after = sides[: len(inner)], sides[-len(inner) :]
    level = np.clip(inner, np.minimum(before, after), np.maximum(before, after))
    error = np.sqrt(np.maximum(level * (1 - level), 1 / rows) / rows)
    apart = np.abs(inner - level)
    off = apart > np.maximum(SIGMAS_OF_ROWS * error, OFF_BY)
    if off.sum() < max(LEAST_PAIRS, OFTEN_OFF * len(share)):
        return
    at = int(np.argmax(np.where(off, apart, 0)))
    step = float(score.step[-MOST_RECORDS:][at + RECORDS_PER_SIDE])
    yield derived_fact(
        "rows_of_a_batch_alike",
        f"{named(score)} is far from the records before and after in {off.sum()} of {len(share)} records: "
        f"{figure(inner[at])} at {run.place(step)}, next to {figure(level[at])}. The share of "
        f"{figure(rows)} rows that are drawn at random is off by {figure(error[at])} or so. Rows of one "
        "batch are alike: they come in an order, or some are unlike all others.",
        {"records": off.sum(), "share": inner[at], "level": level[at]},
        at=step,
    )


_LABELS = frozenset({"label", "labels", "target", "targets", "gold"})
_LEVELS = frozenset({"mean", "avg", "average", "frac", "fraction", "share", "rate", "pos", "positive"})
_PLACES = frozenset({"batch", "train", "data", "y"})
"""Words of a level of the labels of a batch, and those that say nothing of it."""
TOO_FEW_STRETCHES = 4.0
"""Standard deviations by which stretches above and below the median are too few for chance. Chosen."""


def labels_in_order(run: Run) -> Facts:
    """Yield that the labels of batches stay above or below their mean for long, and go back: they come in an order.

    Of batches that are drawn at random, one tells nothing of the next (the test of Wald and Wolfowitz).
    """
    if run.kind in NOT_BY_LOSS or run.step_name == "epoch":
        return
    for level in called(run, _LABELS, _LEVELS, least=2 * LEVEL_WINDOW_RECORDS, any_quantity=True):
        if not set(pieces_of(level.logged_as or level.name)) <= _LABELS | _LEVELS | _PLACES:
            continue
        middle = level.value.mean()
        above = level.value > middle
        high, low = int(above.sum()), int((~above).sum())
        stretches = 1 + int(np.count_nonzero(above[1:] != above[:-1]))
        if min(high, low) < LEVEL_WINDOW_RECORDS // 2 or stretches <= LEAST_PAIRS:
            continue
        expected = 1 + 2 * high * low / (high + low)
        deviation = math.sqrt((expected - 1) * (expected - 2) / (high + low - 1))
        if expected - stretches < TOO_FEW_STRETCHES * deviation:
            continue
        yield derived_fact(
            "labels_in_order",
            f"{named(level)} goes from {from_to(level.value)} and lies above and below {figure(middle)} in "
            f"{stretches} stretches of its {len(level)} records. Of batches that are drawn at random there are "
            f"about {figure(expected)}: labels come in an order.",
            {"stretches": stretches, "expected": expected},
        )


def _least_rows(share: Floats) -> float:
    """Return how many rows shares are of at least, up to `FEW_ROWS`: quarters may be of four."""
    gaps = np.diff(distinct(share))
    return min(float(FEW_ROWS), float(np.round(1 / gaps.min()))) if len(gaps) else 0.0


MIN_WORSE_LEVEL_RATIO = 1.5
"""Times its level before by which an evaluation is worse for a stretch. Chosen: noise of a fixed set has far less."""
MAX_RETURNED_LEVEL_RATIO = 1.1
"""Times its level before to which an evaluation comes at most where it does not rise. Chosen: noise has less."""
MAX_STEADY_RATIO = 1.1
"""Times by which a learning rate moves at most between records. Chosen: schedules and long averages move by less."""
LEAST_EVALUATIONS = 5
"""Evaluations that show a level, a stretch and a way back. Chosen."""


@given_loss(LEVEL_WINDOW_RECORDS, not_of=POLICIES)
def worse_for_a_stretch(run: Run, loss: Series) -> Facts:
    """Yield that evaluation gets far worse where the training loss jumps, and comes back to where it was.

    Not this where the learning rate rises there, or where the loss jumps as far at other times.
    """
    if run.step_name == "epoch":  # each epoch has all rows
        return
    for evaluation in columns_of(run, *LOSSES, phase="eval", least=LEAST_EVALUATIONS):
        worst = 1 + int(np.argmax(evaluation.value[1:-1]))
        last = int(np.argmin(evaluation.value[:worst]))
        (before, high), (start, end) = evaluation.value[[last, worst]].tolist(), evaluation.step[[last, worst]].tolist()
        after = evaluation.value[worst + 1 :].min()
        comes_back = 0 < after <= MAX_RETURNED_LEVEL_RATIO * before and high >= MIN_WORSE_LEVEL_RATIO * before
        between = (loss.step > start) & (loss.step <= end)
        earlier = loss.where(loss.step <= start).value[-LEVEL_WINDOW_RECORDS:]
        if not comes_back or not between.any() or between.all() or not len(earlier):
            continue
        highest = int(np.argmax(np.where(between, loss.value, -math.inf)))
        usual = loss.value[(loss.step > evaluation.step[0]) & ~between]
        least = max(MIN_WORSE_LEVEL_RATIO * quantile(usual, 0.95), usual.max())
        if loss.value[highest] < max(least, median(earlier)) or _rate_rises(run, loss.step[highest]):
            continue
        yield derived_fact(
            "worse_for_a_stretch",
            f"{named(evaluation)} is {figure(before)} at {figure(start)}, {figure(high)} at "
            f"{figure(end)} and {figure(after)} again later. {named(loss)} goes from about "
            f"{figure(median(earlier))} to {figure(loss.value[highest])} at {run.place(loss.step[highest])}. Rows "
            "that contradict the others do that, or an update that is far too large.",
            {"before": before, "worst": high, "after": after},
            at=loss.step[highest],
        )


def _rate_rises(run: Run, step: float) -> bool:
    """Say whether the learning rate has risen in the tenth of the run before a step, as at a warm restart."""
    if (rate := logged(run, "learning_rate")) is None:
        return False
    lately = rate.where((rate.step > step - run.last_step / 10) & (rate.step <= step)).value
    return len(lately) > 1 and float(lately.max()) > MAX_STEADY_RATIO * float(lately[0])


# What grows all the way: by the same amount at each step, or ever more slowly.


MIN_STEP_CORRELATION = 0.9
"""Rank correlation with the step. Chosen."""
MIN_LINE_VARIANCE_SHARE = 0.95
"""Share of the variance that a straight line explains. Chosen."""
MIN_GROWTH_RATIO = 3.0
"""Factor of the growth. Chosen."""
SUM_GROWS = 1.5
"""The same of a norm that hardly scatters. Chosen: such a norm of fresh rows shrinks, or grows by less."""
NEIGHBOURS_ALIKE = 0.05
"""Share of its level by which a norm differs from the record before. Chosen: sums of gradients have 0 to 0.05, and
healthy norms that grow as much 0.1 and more."""
LEFT_OF_SCATTER = 0.5
"""Share of the scatter of the loss that such a sum keeps at most. Chosen: a norm of fresh rows scatters as much."""
ROWS_DIFFER = 0.02
"""Share of its level by which the loss differs from the record before, so that each has rows of its own. Chosen."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def growing(run: Run, loss: Series) -> Facts:
    """Yield gradient norms that grow all the way while the loss does not rise.

    Where the loss scatters far more from record to record than the norm, the norm is not of the rows of each record
    alone. Then it may grow less, and the loss may rise: sums of gradients are steps that are too long.
    """
    began, ends = loss.value[:LEAST_PAIRS].max(), median(loss.value[-LEAST_PAIRS:])
    for series in whole_columns(run, Quantity.GRADIENT_NORM, least=2 * MIN_RECORDS_FOR_LEVEL):
        first, last = ends_of(series)
        if last < SUM_GROWS * first or (ordered := monotone(sample(series.value))) < MIN_STEP_CORRELATION:
            continue
        scatter, of_loss = _scatters(series), _scatters(loss)
        adds_up = scatter < min(NEIGHBOURS_ALIKE, LEFT_OF_SCATTER * of_loss) and of_loss > ROWS_DIFFER
        grows = last >= (SUM_GROWS if adds_up else MIN_GROWTH_RATIO) * first > 0
        if not grows or (ends > began and not adds_up):
            continue
        how = "in a straight line" if _in_a_line(series.step, series.value) else "nearly without a break"
        alike = f" From record to record the norm differs by {percent(scatter)}, and the loss by {percent(of_loss)}."
        yield derived_fact(
            "norm_adds_up" if adds_up else "norm_grows",
            f"{named(series)} grows {how} from {figure(first)} to {figure(last)} (medians of {tenth_of(series)} "
            f"records, rank correlation with the step {ordered:.2f}), and the loss goes from {figure(began)} to "
            f"{figure(ends)}.{alike if adds_up else ''} The gradient of fresh rows keeps its size or shrinks as the "
            "loss falls; a sum that is carried from step to step grows.",
            {"from": first, "to": last, "order": ordered},
        )


RUNS_OFF_TIMES = 1000.0
"""Times its first value, at least one, that a column is for good. Chosen: what starts near zero may grow as far."""
_ADDS_UP = frozenset(
    {"total", "sum", "cum", "cumulative", "elapsed", "flops", "tokens", "seen", "time", "count", "far"}
)
"""Words of what adds up as a run goes on."""


def column_runs_off(run: Run) -> Facts:
    """Yield a column of no known quantity that grows a thousandfold and stays there: no count, and no straight line."""
    for column in called(run, but=_ADDS_UP, least=MIN_RECORDS_FOR_LEVEL):
        value = np.abs(column.value)
        far = RUNS_OFF_TIMES * max(float(value[0]), 1.0)
        if last_third(value).min() < far or not (column.value % 1 != 0).any() or _in_a_line(column.step, value):
            continue
        at = int(np.argmax(value >= far))
        yield derived_fact(
            "column_runs_off",
            f"{named(column)} is {figure(column.value[0])} in its first record, {figure(column.value[at])} at "
            f"{run.place(column.step[at])} and {figure(column.value[-1])} at the end. What is measured keeps "
            "its size within a few times, unless something runs away.",
            {"first": column.value[0], "last": column.value[-1]},
            at=column.step[at],
        )


def _in_a_line(step: Floats, value: Floats) -> bool:
    line = np.polyval(np.polyfit(step, value, 1), step)
    return bool(1 - np.var(value - line) / np.var(value) >= MIN_LINE_VARIANCE_SHARE)


_COSINES = frozenset({"cos", "cosine", "cossim", "similarity", "corr", "alignment"})
_BEFORE = frozenset({"prev", "previous", "last", "successive", "consecutive", "lag", "lag1", "before", "adjacent"})
_OF_AVERAGES = frozenset({"m", "mom", "momentum", "buf", "buffer", "ema", "avg", "mean", "update", "updates", "full"})
"""Words of the angle between a gradient and the one before it, and of what goes on from step to step anyway."""
ALIKE_GRADIENTS = 0.98
"""Cosine of two gradients that are the same but for what one batch adds. Chosen: those of fresh rows have far less."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def gradients_alike(run: Run, loss: Series) -> Facts:
    """Yield that each gradient points as the one before it, while the loss is of other rows each time.

    Not this where the loss is smooth, as that of all rows at once is.
    """
    if run.step_name == "epoch" or _scatters(loss) <= ROWS_DIFFER:
        return
    words = (GRADIENT_WORDS, _COSINES, _BEFORE)
    for angle in called(run, *words, but=_OF_AVERAGES, least=MIN_RECORDS_FOR_LEVEL, any_quantity=True):
        if median(angle.value) < ALIKE_GRADIENTS:
            continue
        yield derived_fact(
            "gradients_alike",
            f"{named(angle)} is about {figure(median(angle.value))} in {len(angle)} records, while "
            f"{named(loss)} differs from record to record by {percent(_scatters(loss))}. Gradients of fresh rows "
            "differ as their losses do; a sum that is carried from step to step hardly turns.",
            {"cosine": median(angle.value)},
        )


_PLACES_OF_EVENTS = frozenset(
    {"at", "on", "from", "rank", "ranks", "worker", "gpu", "device", "node", "host", "process", "proc", "slot", "shard"}
)
LEAST_EVENTS = 5
"""Events at one place. Chosen: of four places five events are at one by chance once in 256 times."""
MOST_OF_RECORDS = 0.8
"""Share of the records of the loss that have such an event, at most. Chosen: what each record has is usual."""


@given_loss(MIN_RECORDS_FOR_LEVEL)
def events_at_one_rank(run: Run, loss: Series) -> Facts:
    """Yield that all events that name a rank, and stand between the records, are at the same of many."""
    heads = Counter(
        head for head, _, place in (name.rpartition("/") for name in run.series) if head and place.isdecimal()
    )
    ranks = int(run.setting("world_size") or max(heads.values(), default=0))
    for name, series in run.series.items() if ranks >= LEAST_EVENTS - 1 else ():
        at, words = series.finite, pieces_of(name)
        if not words or not _PLACES_OF_EVENTS.issuperset(words) or len(at) < LEAST_EVENTS:
            continue
        rank = at.value[0]
        is_a_rank = not np.ptp(at.value) and not rank % 1 and 0 < rank < ranks
        if not is_a_rank or np.isin(at.step, loss.step).mean() > MOST_OF_RECORDS:
            continue
        others = columns_of(run, Quantity.GRADIENT_NORM, Quantity.LOSS)
        beyond = [other for other in others if np.array_equal(other.step, at.step)]
        shown = f", with {named(beyond[0])} of {from_to(beyond[0].value)}" if beyond else ""
        yield derived_fact(
            "events_at_one_rank",
            f"{named(at)} is {figure(rank)} in all {len(at)} events{shown}, of {ranks} ranks. By chance all are at "
            f"one rank once in {figure(float(ranks) ** (len(at) - 1))} times: what differs is the machine, not the "
            "rows.",
            {"rank": rank, "events": len(at), "ranks": ranks},
            at=at.step[0],
        )


_OF_INPUTS = frozenset({
    "hist", "history", "input", "inputs", "x", "feature", "features", "pixel", "pixels", "image", "images", "batch",
    "data", "raw", "row", "rows", "signal", "audio", "target", "targets", "y",
})  # fmt: skip
_EXTREMES = frozenset({"max", "min", "absmax", "amax", "abs", "peak", "range", "extreme", "largest", "std", "high"})
"""Words of an extreme of what a model is given."""
TIMES_ALL_OTHERS = 10.0
"""Times the largest of all other records that it is. Chosen: of scaled rows no other is so far off."""


def input_far_off(run: Run) -> Facts:
    """Yield that an extreme of the inputs is far beyond that of all other records in one, where a result is, too."""
    results = [
        series.finite for name, series in run.series.items()
        if len(series.finite) >= MIN_RECORDS_FOR_LEVEL and not set(pieces_of(name)) & _OF_INPUTS
    ]  # fmt: skip
    for extreme in called(run, _OF_INPUTS, _EXTREMES, least=MIN_RECORDS_FOR_LEVEL, any_quantity=True):
        size = np.abs(extreme.value)
        at = int(np.argmax(size))
        step, others = extreme.step[at], np.delete(size, at)
        moved = next((result for result in results if _is_extreme_at(result, step)), None)
        if others.min() <= 0 or size[at] < TIMES_ALL_OTHERS * others.max() or moved is None:
            continue
        result = moved.value[moved.step == step]
        yield derived_fact(
            "input_far_off",
            f"{named(extreme)} is {figure(size[at])} at {run.place(step)} and {figure(others.max())} "
            f"at the most in all other {len(others)} records; {named(moved)} is {figure(result[0])} "
            f"there, and about {figure(median(moved.value))} else. Rows of that record are unlike all others.",
            {"size": size[at], "others": others.max()},
            at=step,
        )


def _is_extreme_at(result: Series, step: float) -> bool:
    """Say whether a curve is farthest above its level at a step, apart from where it begins."""
    later = result.where(result.step > result.step[0])
    here = later.value[later.step == step]
    level = median(later.value)
    return len(here) > 0 and level > 0 and float(here[0]) == float(later.value.max()) >= MIN_WORSE_LEVEL_RATIO * level


LEAST_PASSES = 6
"""Passes over the data in which a norm rises. Chosen: in six it does by chance once in sixty-four times."""
LEAST_OF_A_PASS = 4
"""Records of a pass that show how a norm goes in it. Chosen: as usual."""
RISES_IN_A_PASS = 0.28
"""Logarithm of the times by which a norm rises within a pass. Chosen: that of healthy runs rises by less."""
STAYS_IN_A_PASS = 0.1
"""Logarithm of the times by which the loss rises and the rate changes within a pass at most. Chosen: by hand."""


@given_loss(LEAST_PASSES * LEAST_OF_A_PASS, not_of=POLICIES)
def norm_rises_in_each_pass(run: Run, loss: Series) -> Facts:
    """Yield that the gradient norm rises within each pass over the data and begins the next one low again.

    Not this where the loss or the learning rate goes up and down with the passes, as that of rows in an order does.
    """
    norm = whole_column(run, Quantity.GRADIENT_NORM, phase="train", least=LEAST_PASSES * LEAST_OF_A_PASS)
    if norm is None or run.step_name != "step" or not positive(norm.value) or not positive(loss.value):
        return
    rises, rate = _rises_in_passes(run, norm), logged(run, "learning_rate")
    if len(rises) < LEAST_PASSES or median(rises) < RISES_IN_A_PASS or (rises > 0).mean() < NEARLY_ALL:
        return
    of_rate = _rises_in_passes(run, rate) if rate is not None and positive(rate.value) else np.zeros(0)
    is_scheduled = len(of_rate) > 0 and median(np.abs(of_rate)) > STAYS_IN_A_PASS
    if is_scheduled or median(_rises_in_passes(run, loss)) > STAYS_IN_A_PASS:
        return
    yield derived_fact(
        "norm_rises_in_each_pass",
        f"{named(norm)} is {figure(math.exp(median(rises)))} times as large in the later half of a pass over the "
        f"data as at its beginning (median), and rises in {int((rises > 0).sum())} of {len(rises)} passes. Each "
        f"begins low again, and {named(loss)} shows none of it. Gradients of fresh rows know of no pass; a sum "
        "that is cleared once in a pass grows within it.",
        {"times": math.exp(median(rises)), "passes": len(rises)},
        at=norm.step[0],
    )


def _rises_in_passes(run: Run, series: Series) -> Floats:
    """Return the logarithm of the times by which a curve rises within each pass, from its first quarter on."""
    passes = passes_at(run, series.step)
    if passes is None:
        return np.zeros(0)
    ends = np.ceil(passes)
    return np.array([
        median(values[len(values) // 2 :]) - float(values[: len(values) // 4].mean())
        for values in grouped(np.log(series.value), ends) if len(values) >= LEAST_OF_A_PASS
    ])  # fmt: skip


_OF_MICRO_BATCHES = frozenset({
    "bs", "batch", "micro", "micros", "accum", "accumulation", "accumulate", "gas", "microbatch", "microbatches",
    "minibatches", "chunk", "chunks", "slice", "slices", "piece", "pieces", "shard", "shards", "reads", "rows", "mb",
})  # fmt: skip
"""Words of a column that counts the rows or the micro-batches of an update."""
RECORDS_AT_A_STAGE = 5
"""Records of a gradient norm on both sides of a step at which a batch grows. Chosen: a median of fewer is noise."""
OF_A_SUM = 0.8
"""Share of the root of the times by which a batch grows, by which a sum of its gradients grows at least: those of noise
add up as its root does, and common ones by the whole. Chosen: for what noise of few records takes."""


def norm_rises_with_batch(run: Run) -> Facts:
    """Yield that the gradient norm jumps up where a batch grows, each time, at the same learning rate and loss.

    A mean over more rows has as large a gradient, or a smaller one. Where no column counts the rows, rises
    at once by one factor are enough, if the loss does not move there.
    """
    norms = [] if "loss_scale" in run or run.kind in POLICIES else _gradient_norms(run)
    for series, norm in product(run.series.values(), norms):
        column, is_size = series.finite, series.quantity is Quantity.BATCH_SIZE
        if (not is_size and _OF_MICRO_BATCHES.isdisjoint(pieces_of(series.name))) or not positive(column.value):
            continue
        at = 1 + np.flatnonzero(np.diff(column.value) > 0)
        jumps = [_at_a_stage(norm, column, int(place)) for place in at.tolist()] if len(at) < MOST_STAGES else []
        if not jumps or any(jump is None or jump[1] < OF_A_SUM * math.sqrt(jump[2]) * jump[0] for jump in jumps):
            continue
        shown = [f"{figure(jump[0])} to {figure(jump[1])}" for jump in jumps if jump is not None]
        yield derived_fact(
            "norm_rises_with_batch",
            f"{named(norm)} goes from about {', and from '.join(shown)} where {named(column)} steps up, at "
            f"{run.step_name}s {', '.join(map(figure, column.step[at].tolist()))} ({from_to(column.value)}). The "
            "mean over more rows has a gradient as large or smaller; a sum grows with them.",
            {"stages": len(at)},
            at=column.step[at[0]],
        )
    for norm, levels in ((norm, _levels_of(run, norm)) for norm in norms):
        if len(levels) > LEAST_STAGES_UNNAMED:
            yield derived_fact(
                "norm_rises_by_steps",
                f"{named(norm)} is about {', then '.join(figure(level) for _, level in levels)}: it goes up at once at "
                f"{run.step_name}s {', '.join(figure(step) for step, _ in levels[1:])}, by nearly the same factor, and "
                "the loss does not move there. A gradient that is the mean of a batch does not do so; one that is "
                "summed does where its parts become more.",
                {"stages": len(levels) - 1},
                at=levels[1][0],
            )


def _gradient_norms(run: Run) -> list[Series]:
    """Return norms of gradients by their names, and columns that are the same as one of these for some time."""
    columns = [series.finite for series in run.series.values() if len(series.finite) >= 2 * RECORDS_AT_A_STAGE]
    columns = [series for series in columns if positive(series.value)]
    norms = [
        series for series in columns
        if series.quantity is Quantity.GRADIENT_NORM or (
            series.quantity in (None, Quantity.UPDATE_NORM)
            and not GRADIENT_WORDS.isdisjoint(pieces_of(series.logged_as or series.name))
        )
    ]  # fmt: skip
    starts = {tuple(norm.value[:RECORDS_AT_A_STAGE].tolist()) for norm in norms}
    twins = [series for series in columns if tuple(series.value[:RECORDS_AT_A_STAGE].tolist()) in starts]
    return norms + [series for series in twins if series.role is None and series not in norms]


RISES_AT_ONCE = 1.4
"""Times by which a norm goes up at once where a stage begins. Chosen: twice the parts give the root of two and more."""
OF_ONE_FACTOR = 0.5
"""Share of the logarithm of the largest rise that each has. Chosen: stages multiply the parts alike."""
FLAT_SHARE = 0.35
"""Share of the logarithm of a rise by which a level goes up within its stage. Chosen: by hand."""
LOSS_STAYS = 0.15
"""Logarithm of the times by which the loss moves there at most. Chosen: what it falls by in a few records."""


def _levels_of(run: Run, norm: Series) -> list[tuple[float, float]]:
    """Return where each level of a norm begins that goes up by steps, and the level; none of another curve."""
    size, logs = RECORDS_AT_A_STAGE, np.log(norm.value)
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL)
    if loss is None or not positive(loss.value) or len(logs) < 2 * size:
        return []
    windows, least = np.lib.stride_tricks.sliding_window_view(logs, size), math.log(RISES_AT_ONCE)
    found = []
    for part in slices_of(len(windows), size):
        lowest, highest = windows[part].T.min(axis=0), windows[part].T.max(axis=0)  # many times as fast as by rows
        if (lowest[:-size] > highest[size:] + least).any():
            return []
        found.append(part.start + np.flatnonzero(lowest[size:] - highest[:-size] >= least / 2))
    rises = np.concatenate(found)
    factors = row_medians(windows[rises + size]) - row_medians(windows[rises])
    rises, factors = rises[factors >= least] + size, factors[factors >= least]
    if not LEAST_STAGES_UNNAMED <= len(rises) < MOST_STAGES or np.diff(rises, append=len(logs)).min() < size:
        return []
    stages = np.split(logs, rises)
    drifts = [median(stage[-(len(stage) // 2) :]) - median(stage[: len(stage) // 2]) for stage in stages[1:]]
    places = [int(np.searchsorted(loss.step, norm.step[at])) for at in rises]
    moves = [
        abs(float(np.log(loss.value[place : place + 2]).mean() - np.log(loss.value[:place][-2:]).mean()))
        for place in places if 0 < place < len(loss)
    ]  # fmt: skip
    if factors.min() < OF_ONE_FACTOR * factors.max() or max(drifts) > FLAT_SHARE * factors.max():
        return []
    if len(moves) < len(rises) or max(moves) > LOSS_STAYS:
        return []
    begins = [0, *rises]
    return [(float(norm.step[at]), math.exp(median(stage))) for at, stage in zip(begins, stages, strict=True)]


def _at_a_stage(norm: Series, column: Series, place: int) -> tuple[float, float, float] | None:
    """Return a norm before and after a batch grows, and the times by which that grows; None where little is known."""
    step = column.step[place]
    before, after = norm.where(norm.step < step).value, norm.where(norm.step >= step).value
    times = float(column.value[place] / column.value[place - 1])
    if min(len(before), len(after)) < RECORDS_AT_A_STAGE or times < 2:
        return None
    low, high = before[-RECORDS_AT_A_STAGE:], median(after[:RECORDS_AT_A_STAGE])
    return (median(low), high, times) if high > float(np.sort(low)[-2]) else None  # the last may be of the next stage


TIME_BLOCKS = 10
"""Blocks of the records, whose medians are the course of a time: single slow steps do not move them. Chosen."""
LEAST_TIME_RECORDS = 40
"""Records of a time that has such a course. Chosen: a median of four stands single slow steps."""
LEAST_TIME_RECORDS_AT_A_PACE = 2 * TIME_BLOCKS
"""The same where a pace agrees with the sum of such times. Chosen: both are then means of many steps."""
SAME_WORK = 0.1
"""Scatter of the logarithm of a pace times the times of a step, where a step does as much work. Chosen: by hand."""
MIN_FALLS_SHARE = 0.05
"""Share of the records at which a time is shorter than before. Chosen: a clock, and a sum so far, never are."""
LEAST_FALLS_ALONE = 0.2
"""The same where no other time is logged. Chosen: noise has up to a half."""
MIN_SHARE_OF_TIME = 0.1
"""Share of all times that are logged by which it has grown at the end. Chosen: less of it costs nothing to repair."""
_TIME_UNITS = frozenset({"s", "ms", "us", "sec", "secs", "seconds", "time", "times", "latency", "duration", "t"})
_PACE_NAME = regex(r"/\s?(?:\w{1,8}-)?(?:s|sec|secs|second)$", re.IGNORECASE, needs="/")
"""How a pace is called that is one over a time: "tok/cpu-s"."""
_OF_NO_STEP = frozenset(
    {"eta", "elapsed", "wall", "clock", "total", "remaining", "since", "far", "per", "eval", "val", "test"}
)
_AMOUNT_WORDS = frozenset({"tokens", "length", "len", "seq", "rows", "size", "batch", "samples", "turns", "depth"})
"""Words of what makes a step longer by design, where it grows as well."""


def time_grows(run: Run) -> Facts:
    """Yield that what a part of each step takes grows all the way, while other parts keep their time.

    Not this where a column of an amount grows as well, as rows that get longer make all steps longer.
    """
    times = {name: series.finite for name, series in run.series.items() if _is_of_a_step(name, series)}
    least = LEAST_TIME_RECORDS_AT_A_PACE if _has_pace(run, times) else LEAST_TIME_RECORDS
    times = {
        name: time for name, time in times.items()
        if len(time) >= least and member_of_rank(name.removeprefix("mean "), 0) not in run.series
    }  # fmt: skip
    # One rank that is slow makes the mean of all grow.
    courses = {name: _block_medians(series.value) for name, series in times.items()}
    seconds = {name: _seconds_of(times[name]) * course for name, course in courses.items()}
    grown = [name for name, course in courses.items() if _grows(course)]
    if run.kind in POLICIES or not grown or _amounts_grow(run):
        return
    name = max(grown, key=lambda each: float(seconds[each][-1]))
    others = [other for other in courses if other not in grown]
    least_falls = 0.0 if least < LEAST_TIME_RECORDS else MIN_FALLS_SHARE if others else LEAST_FALLS_ALONE
    is_much = seconds[name][-1] - seconds[name][0] >= MIN_SHARE_OF_TIME * sum(course[-1] for course in seconds.values())
    if not is_much or np.mean(np.diff(times[name].value) < 0) < least_falls:
        return
    steady = min(others, key=lambda other: float(courses[other][-1] / max(courses[other][0], 1e-12)), default=None)
    shown = "" if steady is None else f", while {named(times[steady])} goes from {_first_to_last(courses[steady])}"
    yield derived_fact(
        "time_grows",
        f"{named(times[name])} grows all the way from {_first_to_last(courses[name])} (medians of tenths of the "
        f"records){shown}. What a step does there is more each time: a list, a graph or hooks that pile up.",
        {"from": courses[name][0], "to": courses[name][-1]},
        at=times[name].step[0],
    )


def _has_pace(run: Run, times: Mapping[str, Series]) -> bool:
    """Say whether some times of a step add up to what a pace is one over: so none of them is a clock."""
    columns = [column for column in times.values() if len(column) >= LEAST_TIME_RECORDS_AT_A_PACE]
    paces = [series.finite for name, series in run.series.items() if _PACE_NAME.search(series.logged_as or name)]
    for pace in paces if len(columns) >= LEAST_PAIRS else ():
        if positive(pace.value) and all(np.array_equal(pace.step, part.step) for part in columns):
            whole = np.sum([part.value * _seconds_of(part) for part in columns], axis=0)
            if np.ptp(np.log(whole)) > math.log(SUM_GROWS) and np.std(np.log(pace.value * whole)) < SAME_WORK:
                return True
    return False


def _first_to_last(course: Floats) -> str:
    return f"{figure(course[0])} to {figure(course[-1])}"


def _seconds_of(time: Series) -> float:
    """Return how many seconds the unit of a time has, by its name; 1 where that has none."""
    words = pieces_of(time.logged_as or time.name)
    return 1.0 if time.unit == "s" else 1e-3 if "ms" in words else 1e-6 if "us" in words else 1.0


def _is_of_a_step(name: str, series: Series) -> bool:
    """Say whether a column is what each step, or a part of it, takes."""
    called_as = series.logged_as or name
    words = set(pieces_of(called_as))
    if words & _OF_NO_STEP or _PACE_NAME.search(called_as) or is_of_ranks(re.sub(r"\d", "", name)):
        return False
    if series.role is None:
        return not words.isdisjoint(_TIME_UNITS)
    return series.role.quantity.is_duration and series.quantity not in (*CLOCKS, *_LONG_TIMES)


def _block_medians(values: Floats) -> Floats:
    return np.array([median(block) for block in np.array_split(values, TIME_BLOCKS)])


def _grows(course: Floats) -> bool:
    """Say whether medians of blocks grow by a multiple, each above the one before."""
    ordered = monotone(course) >= MIN_STEP_CORRELATION
    return ordered and float(course[-1]) >= MIN_GROWTH_RATIO * float(course[0]) > 0


def _amounts_grow(run: Run) -> bool:
    """Say whether a column of an amount grows over the run: of tokens, of rows, of a length."""
    amounts = called(run, _AMOUNT_WORDS, least=TIME_BLOCKS, any_quantity=True)
    courses = (_block_medians(series.value) for series in amounts)
    return any(course[-1] > SUM_GROWS * course[0] and monotone(course) >= MIN_STEP_CORRELATION for course in courses)


def _scatters(series: Series) -> float:
    """Return by which share of its level a curve differs from record to record; 0 where it is not above zero."""
    return noise_on_slope(np.log(series.value)) if positive(series.value) else 0.0


# A norm that grows ever faster until nothing is finite.


LEAST_BEFORE_NAN = 5
"""Finite norms before the first that is not finite. Chosen: three that rise, and a level before them."""
RISING_RECORDS = 4
"""Last finite norms, each above the one before. Chosen: noise does so once in twenty-four times."""
LAST_TIMES = 1.5
"""Times the norm before it that the last finite norm is. Chosen: it grows ever faster."""


@given_loss(LEAST_BEFORE_NAN)
def norm_runs_away(run: Run, loss: Series) -> Facts:
    """Yield that an unclipped gradient norm, or its maximum, rises ever faster up to the record where it is not finite.

    Not this where the loss is above its start by then, which a learning rate that is too high brings about as well.
    """
    norms = [series for series in run.series.values() if series.quantity is Quantity.GRADIENT_NORM]
    for series in norms if run.facts.clip == math.inf else ():
        lost = np.flatnonzero(~np.isfinite(series.value))
        before = series.value[: int(lost[0])] if len(lost) else np.empty(0)
        is_of_part = series.role is None or series.role.part
        if is_of_part or len(before) < LEAST_BEFORE_NAN or len(lost) < len(series) - len(before):
            continue
        last, level = before[-RISING_RECORDS:], median(before[: -RISING_RECORDS + 1])
        there = series.step[int(lost[0])]
        losses = loss.value[loss.step < there]
        rises = bool((np.diff(last) > 0).all()) and last[-1] >= max(LEAST_JUMP * level, LAST_TIMES * last[-2])
        if not rises or not len(losses) or losses[-1] > losses[0]:
            continue
        yield derived_fact(
            "norm_runs_away",
            f"{named(series)} is {', '.join(map(figure, last.tolist()))} in the last finite records, and not finite "
            f"from {run.place(there)} on; its level before was {figure(level)}. {named(loss)} is {figure(losses[-1])} "
            "there, not above its start. Nothing clips the gradient, which grows ever faster first.",
            {"level": level, "last": last[-1]},
            at=there,
        )


HUGE_NORM = 1000.0
"""Gradient norm of the weights that a run begins with that is huge. Chosen: of healthy runs none has it."""
TIMES_THE_LOSS = 100.0
"""Times the first loss that it is as well. Chosen: raw units of labels make both large."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def norm_huge_at_start(run: Run, loss: Series) -> Facts:
    """Yield that the gradient is huge before an update has moved the weights, next to an ordinary loss.

    Not this where a loss scale multiplies gradients.
    """
    norm = whole_column(run, Quantity.GRADIENT_NORM, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    step, first, began = loss.step[0], 0.0 if norm is None else norm.value[0], loss.value[0]
    is_scaled = run.facts.precision == "fp16" or "loss_scale" in run
    is_huge = began > 0 and first >= max(HUGE_NORM, TIMES_THE_LOSS * began)
    if norm is not None and is_huge and norm.step[0] == step and not is_scaled and not is_past_start(run, step):
        yield derived_fact(
            "norm_huge_at_start",
            f"{named(norm)} is {figure(first)} at {run.place(step)}, where {named(loss)} is {figure(began)}. No update "
            "has moved the weights far by then, so the learning rate did not make it. It grows on the way back through "
            "the layers or the time steps.",
            {"norm": first, "loss": began},
            at=step,
        )


MIN_BACKWARD_GROWTH = 30.0
"""Times the gradient norm of the last layer that the first one has. Chosen: a sound start keeps it within ten."""
MIN_GROWTH_BETWEEN = 3.0
"""Times the same that the next layer has. Chosen: raw inputs make the gradient of the first layer alone large."""
NOT_LEARNT = 0.4
"""Share of its start that the loss keeps where such gradients hold learning up. Chosen: what is learnt keeps less."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def norm_grows_backwards(run: Run, loss: Series) -> Facts:
    """Yield that gradients grow from layer to layer back to the first one in the first records.

    Not this where the loss is learnt all the same, or where the norm of the whole model states it.
    """
    layers = layers_of(parts_of(run, LEAST_PAIRS))
    norms = np.array([layer.level for layer in layers])
    if len(layers) < LEAST_PAIRS or last_level(loss) < NOT_LEARNT * loss.value[0] or is_past_start(run, loss.step[0]):
        return
    grows = norms[0] >= MIN_BACKWARD_GROWTH * norms[-1] and norms[1] >= MIN_GROWTH_BETWEEN * norms[-1]
    if not grows or monotone(norms) > -MIN_DEPTH_CORRELATION or any(norm_huge_at_start(run)):
        return
    yield derived_fact(
        "norm_grows_backwards",
        f"in the first records {layers[0].name} is {figure(norms[0])}, {layers[1].name} {figure(norms[1])} and "
        f"{layers[-1].name} {figure(norms[-1])}: the gradient grows from layer to layer on its way back to the "
        "input. A sound start keeps layers within ten times of one another.",
        {"first": norms[0], "last": norms[-1], "layers": len(layers)},
        at=loss.step[0],
    )


# What a curve does where a run goes on from a checkpoint, and right after the first evaluation.


RECORDS_BEFORE_EVENT = 8
"""Records before an event. Chosen."""
RECORDS_AFTER_EVENT = 4
"""Records after an event. Chosen."""
MIN_PARTING_ERRORS = 5.0
"""Standard errors by which those records part. Chosen."""
LEAST_MOVE = 0.1
"""Share of a level by which records part from it, and within which they are alike. Chosen: other rows make less."""
MOST_RESUMES = 2
"""Resumes that are stated. Chosen: the first one is the purest."""
SHOWN_AFTER = 3
"""Values after a resume that are stated. Chosen."""
MIN_STATE_JUMP_RATIO = 1.5
"""Times the value before by which a quantity of `_STATE` jumps, up or down. Chosen: a scaler doubles, or halves."""
ON_COURSE = 1.25
"""Times the value before by which a quantity of `_STATE` goes on. Chosen: a schedule does."""
_STATE = (Quantity.LEARNING_RATE, Quantity.LOSS_SCALE)
_UPDATES = (Quantity.UPDATE_RATIO, Quantity.UPDATE_NORM)
MIN_UPDATE_JUMP_RATIO = 2.0
"""Times the longest update before by which the first is longer after the resume. Chosen: noise has far less."""
_COUNTS = (Quantity.EPOCH, Quantity.SAMPLES_SEEN, Quantity.TOKENS_SEEN)
_LONG_TIMES = (Quantity.EPOCH_TIME, Quantity.RUNTIME, Quantity.TIME_LEFT)
_PACE = (Quantity.STEP_TIME, *sorted(THROUGHPUTS))


def around_resumes(run: Run) -> Facts:
    """Yield what rate, scale, loss, gradient norm, counters and pace are before and after a resume, in one line."""
    for step in restarts_of(run)[:MOST_RESUMES]:
        pace = next((quantity for quantity in _PACE if _sides(run, quantity, step)), Quantity.STEP_TIME)
        wanted = (*_STATE, *_UPDATES, Quantity.LOSS, Quantity.GRADIENT_NORM, *_COUNTS, pace)
        sides = {quantity: pair for quantity in wanted if (pair := _sides(run, quantity, step)) is not None}
        if not sides:
            continue
        yield from _updates_at_resume(run, sides, step)
        off_course = [quantity for quantity, pair in sides.items() if _leaves_course(quantity, *pair)]
        first = sorted(sides, key=lambda quantity: quantity not in off_course)
        lines = [_side_by_side(quantity, *sides[quantity]) for quantity in first]
        off = f" Off course: {', '.join(named(sides[quantity][0]) for quantity in off_course)}." if off_course else ""
        curves = [quantity for quantity in (Quantity.LOSS, Quantity.GRADIENT_NORM) if quantity in sides]
        # Rows that were seen before would let a loss fall below its last values.
        highest = {quantity: sides[quantity][0].value[-RECORDS_BEFORE_EVENT:].max() for quantity in curves}
        above = {quantity for quantity in curves if sides[quantity][1].value[0] > highest[quantity]}
        rises = Quantity.LOSS in above and not above.isdisjoint(off_course)
        yield derived_fact(
            "rises_at_resume" if rises else "moves_at_resume" if off else "around_resume",
            f"Up to {RECORDS_BEFORE_EVENT} records before | the first after the resume at {run.place(step)}: "
            f"{'; '.join(lines)}.{off} A whole state goes on where it was.",
            {"moved": len(off_course)},
            at=step,
        )
        if not off:
            return


LEAST_APART = 2.0
"""Times by which it is off that level after the resume. Chosen: noise of what is so calm has far less."""
_BEGINS_WITH_PROCESS = frozenset({
    "time", "elapsed", "wall", "eta", "sec", "secs", "s", "ms", "mem", "memory", "cache", "queue", "util", "temp",
    "speed", "ips", "fps", "throughput", "pos", "position", "cursor", "epoch", "pass", "progress", "pct", "done", "mb",
    "frac", "warmup", "lr", "rate", "fill", "filled", "rss", "gpu", "cpu", "proc", "hit", "hits", "beta", "temperature",
})  # fmt: skip
"""Words of what a new process begins anew without a loss of state, or a schedule does."""


def begins_anew_at_resume(run: Run) -> Facts:
    """Yield that what was calm before a resume is, after it, as in the first records of the run, and goes as it went.

    So does what an optimizer holds, or the length of its updates, where it is made anew. The name says nothing. Not
    this where a new process begins it anew anyway, or it counts.
    """
    for before, after, step in _calm_before_resumes(run, restarts_of(run)):
        is_of_process = not _BEGINS_WITH_PROCESS.isdisjoint(pieces_of(before.name))
        if is_of_process or len(before) < 2 * MIN_RECORDS_FOR_LEVEL or len(after) < 2 * LEAST_PAIRS:
            continue
        first, new = run[before.name].finite.value[:LEAST_PAIRS], after.value[:LEAST_PAIRS]
        old = before.value[-RECORDS_BEFORE_EVENT:]
        if not positive(first) or not positive(new) or not (first % 1).any() or abs(monotone(first)) < 1:
            continue
        apart, as_first = np.abs(np.log(new[0] / old)).min(), np.abs(new / first - 1).max() <= LEAST_MOVE
        if apart >= math.log(LEAST_APART) and as_first:
            yield derived_fact(
                "begins_anew_at_resume",
                f"{named(before)} is {from_to(old)} in the {len(old)} records before the resume at {run.place(step)}, "
                f"and {', '.join(map(figure, new.tolist()))} in the first after it: as in the first of the run, "
                f"{', '.join(map(figure, first.tolist()))}. What is restored goes on where it was; averages that an "
                "optimizer begins anew do this.",
                {"before": old[-1], "after": new[0], "first": first[0]},
                at=step,
            )


def _calm_before_resumes(run: Run, steps: Sequence[float]) -> Iterator[tuple[Series, Series, float]]:
    """Yield columns that no name tells and that hardly move before a resume, before it and after it, with its step."""
    unread = (series for series in run.series.values() if series.role is None and run.kind not in POLICIES)
    for series, step in product(unread, steps[:MOST_RESUMES]):
        if (sides := _around(run, series.finite, step)) is None:
            continue
        old = sides[0].value[-RECORDS_BEFORE_EVENT:]
        if positive(old) and float(np.abs(np.diff(np.log(old))).max()) <= math.log(MAX_STEADY_RATIO):
            yield *sides, step


def _updates_at_resume(run: Run, sides: Mapping[Quantity, tuple[Series, Series]], step: float) -> Facts:
    """Yield that updates are far longer, or shorter, right after a resume than before, by their learning rate."""
    rates = sides.get(Quantity.LEARNING_RATE)
    for before, after in (sides[quantity] for quantity in _UPDATES if quantity in sides):
        old, new = before.value[-RECORDS_BEFORE_EVENT:], after.value[:RECORDS_BEFORE_EVENT]
        if rates is not None:
            old = old / np.interp(before.step[-RECORDS_BEFORE_EVENT:], rates[0].step, rates[0].value)
            new = new / np.interp(after.step[:RECORDS_BEFORE_EVENT], rates[1].step, rates[1].value)
        times, later = float(new[0]) / median(old), median(new[1:]) / median(old)
        is_longer = float(new[0]) >= MIN_UPDATE_JUMP_RATIO * old.max() and later < times
        is_shorter = float(new[0]) <= old.min() / MIN_UPDATE_JUMP_RATIO and later > times
        if min(len(new), len(old)) < LEAST_PAIRS or not (is_longer or is_shorter):
            continue
        by_rate = ", each divided by its learning rate" if rates is not None else ""
        yield derived_fact(
            "updates_jump_at_resume",
            f"{named(before)} is {from_to(before.value[-RECORDS_BEFORE_EVENT:])} in the records before the resume "
            f"at {run.place(step)} and {', '.join(map(figure, after.value[:SHOWN_AFTER].tolist()))} in the first "
            f"after it: {figure(times)} times as long{by_rate}, and {figure(later)} times a few records later. An "
            "optimizer whose averages begin at zero makes such updates; one that goes on makes none.",
            {"times": times, "later": later},
            at=step,
        )
        return


ROWS_IN_A_ROW = 5
"""Records whose row numbers come again in the order they had. Chosen: by chance a single one does."""
LEAST_ROW_NUMBERS = 10
"""Different numbers of a column that names rows. Chosen: workers, layers and tasks are fewer, and come in turn."""
PASS_TOLERANCE = 0.02
"""Share of a pass by which a distance is off a whole number of them. Chosen: a last batch that is dropped."""
_OF_ROWS = frozenset({
    "doc", "docs", "row", "rows", "cursor", "offset", "idx", "index", "sample", "samples", "example", "examples",
    "shard", "file", "line", "chunk", "chunks", "record", "ids", "id", "pos", "position",
})  # fmt: skip
"""Words of a place in the data."""


def rows_after_resume(run: Run) -> Facts:
    """Yield that the numbers of rows which a resume begins with are those of an earlier stretch, in its order.

    Not this where a pass begins anew there, or steps that were lost are made again.
    """
    columns = (_rows_named(column) for column in run.series.values())
    for series in (series for series in columns if series is not None):
        begins = np.searchsorted(series.step, run.restarts).tolist() if run.restarts else _comes_back(series)
        counts = bool(run.restarts) and not _OF_ROWS.isdisjoint(pieces_of(series.name))
        found = ((at, _came_before(series.value, at, counts=counts)) for at in begins)
        at, before = next(((at, came) for at, came in found if came is not None), (0, None))
        if before is None or _ended_there(series, at):
            continue
        began, again = series.step[before], series.step[at]
        passes = (again - began) / run.facts.steps_per_pass if run.facts.steps_per_pass else 0.5
        if again <= began or (round(passes) and abs(passes - round(passes)) < PASS_TOLERANCE * round(passes)):
            continue
        shown = ", ".join(map(figure, series.value[at : at + ROWS_IN_A_ROW].tolist()))
        yield derived_fact(
            "rows_after_resume",
            f"{named(series)} is {shown} in the records from {run.place(again)} on, and the same in this order "
            f"from {run.place(began)} on. Rows that were trained on come again in mid-pass, before others come.",
            {"began": began, "again": again},
            at=again,
        )


_OF_FILES = frozenset({"file", "shard", "chunk", "part", "tar", "archive", "volume", "shards", "files"})
"""Words of pieces of the data that are read one after the other."""
CUT_SHORT = 0.75
"""Share of the steps of a file after which another one begins in its middle, at most. Chosen: by hand."""


def _rows_named(column: Series) -> Series | None:
    """Return the values of a column that are whole numbers of many rows, None if they are no such."""
    values = column.finite.value
    if column.role is not None or len(values) < 2 * ROWS_IN_A_ROW or (values % 1 != 0).any() or (values < 0).any():
        return None
    if not _OF_FILES.isdisjoint(pieces_of(column.name)) and len(distinct(values)) > ROWS_IN_A_ROW:
        begins = np.flatnonzero(np.diff(values, prepend=values[0] - 1))  # a file is read over several records
        return replace(column.finite, step=column.finite.step[begins], value=values[begins])
    return column.finite if len(distinct(values)) >= LEAST_ROW_NUMBERS else None


def _ended_there(series: Series, at: int) -> bool:
    """Say whether the file before a place is as long as others, or the last of a pass: then a pass ends there.

    Rows that do not count on are none of files in turn.
    """
    if _OF_FILES.isdisjoint(pieces_of(series.name)) or median(np.diff(series.value[:at])) != 1:
        return False
    lasts, turns = np.diff(series.step[: at + 1]), list(pairwise(series.value.tolist()))
    return turns.count(turns[at - 1]) > 1 or lasts[-1] > CUT_SHORT * median(lasts[:-1])


def _came_before(values: Floats, at: int, *, counts: bool) -> int | None:
    """Return where the values from a place on came before, the last time; None where none did.

    What only counts begins anew with a process, unless it `counts` rows of the data.
    """
    window = values[at : at + ROWS_IN_A_ROW]
    is_short = len(set(window.tolist())) < ROWS_IN_A_ROW or at < ROWS_IN_A_ROW
    if is_short or (abs(monotone(window)) == 1 and not counts):
        return None
    begins = np.flatnonzero(values[: at - ROWS_IN_A_ROW + 1] == window[0])
    same = begins[(values[begins[:, np.newaxis] + np.arange(ROWS_IN_A_ROW)] == window).all(axis=1)]
    return int(same[-1]) if len(same) else None


def _comes_back(series: Series) -> list[int]:
    """Return where the first rows of a log come again, as they do where no resume is stated."""
    return (1 + np.flatnonzero(series.value[1 : 1 - ROWS_IN_A_ROW] == series.value[0])).tolist()


def _sides(run: Run, quantity: Quantity, step: float) -> tuple[Series, Series] | None:
    """Return the values of a quantity before a resume and after it; None where it is not logged on both sides."""
    found = whole_column(run, quantity, phase="train")
    return None if found is None else _around(run, found, step)


def _around(run: Run, found: Series, step: float) -> tuple[Series, Series] | None:
    """Return the values of a column before a resume and after it; None where it is not logged on both sides."""
    again = next((at for at, segment in enumerate(run.segments) if at and segment.first_step == step), 0)
    before, after = found, found
    if again:
        old, new = (run.segments[at].series.get(found.name) for at in (again - 1, again))
        if old is None or new is None:
            return None
        before, after = old.finite, new.finite
    before, after = before.where(before.step < step), after.where(after.step >= step)
    return (before, after) if len(before) >= LEAST_PAIRS and len(after) else None


def _side_by_side(quantity: Quantity, before: Series, after: Series) -> str:
    is_exact = quantity in (*_STATE, *_COUNTS)
    level = figure(before.value[-1]) if is_exact else from_to(before.value[-RECORDS_BEFORE_EVENT:])
    shown = [figure(value) for value in after.value[:SHOWN_AFTER].tolist()]
    return f"{named(before)} {level} | {', '.join(shown if len(set(shown)) > 1 else shown[:1])}"


def _leaves_course(quantity: Quantity, before: Series, after: Series) -> bool:
    """Say whether a quantity jumps, a counter falls back, or a curve parts from its line."""
    if quantity in _COUNTS:
        return float(after.value[0]) < float(before.value[-2])
    if quantity in _STATE:
        course = np.abs(np.concatenate([before.value[-LEAST_PAIRS:], after.value[:RECORDS_AFTER_EVENT]]))
        times = np.abs(np.diff(np.log(np.maximum(course, 1e-30))))
        calm, jump = times[: LEAST_PAIRS - 1].max(), times[LEAST_PAIRS - 1 :].max()
        return bool(calm <= math.log(ON_COURSE) and jump >= math.log(MIN_STATE_JUMP_RATIO))
    parted = _parts_from_line(before, after) if quantity in (Quantity.LOSS, Quantity.GRADIENT_NORM) else None
    return parted is not None and (parted[1] - parted[0]) * parted[2] > 0


_OF_OPTIMIZER = frozenset({
    "v", "vhat", "nu", "sq", "moment", "moments", "variance", "adam", "adamw", "second", "mu", "m", "momentum", "mom",
    "buffer", "preconditioner",
})  # fmt: skip
"""Words of the size of what an optimizer holds."""


def state_begins_anew(run: Run) -> Facts:
    """Yield that the size of what the optimizer holds falls far down at a resume, and climbs again from there.

    Not this where it moves as much from record to record anyway.
    """
    for before, after, step in _calm_before_resumes(run, run.restarts):
        old, new = before.value[-RECORDS_BEFORE_EVENT:], after.value[:RECORDS_BEFORE_EVENT]
        if _OF_OPTIMIZER.isdisjoint(pieces_of(before.name)) or len(new) < LEAST_PAIRS or not positive(new):
            continue
        if new[0] <= HALVED * old.min() and monotone(new) >= MIN_STEP_CORRELATION:
            yield derived_fact(
                "state_begins_anew",
                f"{named(before)} is {from_to(old)} in the records before the resume at {run.place(step)} and "
                f"{', '.join(map(figure, new[:SHOWN_AFTER].tolist()))} in the first after it, {figure(new[-1])} "
                f"{len(new) - 1} records later. An average that goes on stays near its level; one that begins at zero "
                "climbs so.",
                {"before": old[-1], "after": new[0]},
                at=step,
            )


@given_loss()
def at_first_evaluation(run: Run, loss: Series) -> Facts:
    """Yield that the loss rises from its line right after the first evaluation."""
    if "eval_loss" not in run or len(run["eval_loss"]) < 2:
        return
    step = run["eval_loss"].step[0]
    moved = _parts_from_line(_before(loss, step), _after(loss, step))
    if step in run.restarts or moved is None or moved[2] < 0 or moved[1] < moved[0]:
        return  # a fall that quickens, or one that slows down: both are usual
    yield derived_fact(
        "moves_at_event",
        f"{named(loss)} is {figure(moved[0])} in the {RECORDS_BEFORE_EVENT} records before the first evaluation at "
        f"{run.place(step)} and {figure(moved[1])} in the {RECORDS_AFTER_EVENT} after it, {figure(moved[2])} off "
        "its line. An evaluation changes nothing of training.",
        {"before": moved[0], "after": moved[1], "off": moved[2]},
        at=step,
    )


AS_FAST = 2.0
"""Times the fall over the records before, that over the same number after. Chosen: a loss falls ever more slowly."""
SAME_PASS = 0.05
"""Passes over the data by which an evaluation is at the end of the first at most. Chosen."""
MADE_HARDER = 1.1
"""Times the first evaluation loss that the training loss is before, where dropout makes it harder. Chosen."""
_EASIER = {-1.0: Quantity.GRADIENT_NORM, 1.0: Quantity.ACCURACY}
"""What goes down, or up, where training gets easier at once."""


@given_losses(RECORDS_BEFORE_EVENT + RECORDS_AFTER_EVENT, not_of=NOT_BY_LOSS)
def easier_after_evaluation(run: Run, losses: Losses) -> Facts:
    """Yield that dropout made training harder up to the first evaluation, and no longer from there on.

    Then the loss is at that of evaluation at once, and the gradient norm or a score leaves its line. Not this where the
    learning rate changes there, or where a model of language begins its second pass.
    """
    dropout, loss, step, evaluated = run.setting("dropout"), losses[0], losses[1].step[0], losses[1].value[0]
    before, after = _before(loss, step).value[-RECORDS_BEFORE_EVENT:], _after(loss, step).value[:RECORDS_AFTER_EVENT]
    if not dropout or dropout < MUCH_DROPOUT or step in run.resumes or _rate_moves(run, step):
        return
    passes = passes_at(run, np.array([step])) if run.kind in LANGUAGE_MODELS else None
    begins_pass = passes is not None and abs(float(passes[0]) - 1) < SAME_PASS
    if len(before) < RECORDS_BEFORE_EVENT or len(after) < RECORDS_AFTER_EVENT or begins_pass:
        return
    earlier, high, low = (part.mean() for part in (before[:-RECORDS_AFTER_EVENT], before[-RECORDS_AFTER_EVENT:], after))
    falls_at_once = high - low >= AS_FAST * (earlier - high) and before.min() > after.max()
    if high < MADE_HARDER * evaluated or low > evaluated or not falls_at_once:
        return
    others = ((way, other) for way, quantity in _EASIER.items() for other in columns_of(run, quantity, phase="train"))
    moves = ((way, other, _parts_from_line(_before(other, step), _after(other, step))) for way, other in others)
    for other, moved in ((other, moved) for way, other, moved in moves if moved is not None and way * moved[2] > 0):
        yield derived_fact(
            "easier_after_evaluation",
            f"{named(loss)} is {figure(high)} in the {RECORDS_AFTER_EVENT} records before the first evaluation, which "
            f"has {figure(evaluated)} at {run.place(step)}, and {figure(low)} in the {RECORDS_AFTER_EVENT} after it. "
            f"{named(other)} goes from {figure(moved[0])} to {figure(moved[1])} there. Dropout of {figure(dropout)} "
            "makes training harder than evaluation; from there on it does not.",
            {"before": high, "evaluated": evaluated, "after": low},
            at=step,
        )


def _before(series: Series, step: float) -> Series:
    return series.where(series.step <= step)


def _after(series: Series, step: float) -> Series:
    return series.where(series.step > step)


def _rate_moves(run: Run, step: float) -> bool:
    if (rate := logged(run, "learning_rate")) is None:
        return False
    before, after = rate.where(rate.step <= step).value[-1:], rate.where(rate.step > step).value[:RECORDS_AFTER_EVENT]
    both = np.concatenate([before, after])
    return len(both) > 1 and float(both.max()) > MAX_STEADY_RATIO * float(both.min())


def _parts_from_line(before: Series, after: Series) -> tuple[float, float, float] | None:
    """Return the means before and after, and how far the line through the records before is missed, if it is."""
    if len(before) < RECORDS_BEFORE_EVENT or len(after) < RECORDS_AFTER_EVENT:
        return None
    step, value = before.step[-RECORDS_BEFORE_EVENT:], before.value[-RECORDS_BEFORE_EVENT:]
    later, then = after.step[:RECORDS_AFTER_EVENT], after.value[:RECORDS_AFTER_EVENT]
    slope, start, noise = _line_through(step, value)
    spread = float(np.sum((step - step.mean()) ** 2))
    error = noise * math.sqrt(
        1 / RECORDS_AFTER_EVENT + 1 / RECORDS_BEFORE_EVENT + float(later.mean() - step.mean()) ** 2 / spread
    )
    off, least = float(np.mean(then - (start + slope * later))), LEAST_MOVE * abs(value.mean())
    if abs(off) <= max(MIN_PARTING_ERRORS * error, least) or abs(then.mean() - value.mean()) <= least:
        return None
    return float(value.mean()), float(then.mean()), off


def _line_through(step: Floats, value: Floats) -> tuple[float, float, float]:
    """Return the slope and the start of a straight line, and the standard deviation of what is left of the values."""
    slope, start = np.polyfit(step, value, 1)
    return float(slope), float(start), float(np.std(value - (start + slope * step), ddof=2))


# A loss that stands still from a spike of the gradient norm on.


TIMES_LEVEL = 30.0
"""Times its median that a gradient norm has in a spike. Chosen: no batch of a level has it."""
MOST_SPIKES = 3
"""Such records up to which they are single spikes. Chosen: by hand."""
RECORDS_BEFORE_SPIKE = 10
"""Records before the spike in which the loss falls. Chosen: a line through fewer is noise."""
RECORDS_AFTER_SPIKE = 30
"""Records after it in which the loss stands still. Chosen: three times as many."""
FALL_IN_NOISES = 10.0
"""Times its scatter around the line by which the loss falls before the spike. Chosen: by hand."""
STILL_FALLING = 0.5
"""Of its fall in the first half of these records, what it has in the second: it has not slowed down. Chosen."""
MAX_STANDING_FALL_SHARE = 0.1
"""Of that fall, by which the loss differs later from where the spike met it. Chosen: it goes on by none of it."""


@given_loss(RECORDS_BEFORE_SPIKE + RECORDS_AFTER_SPIKE, not_of=NOT_BY_LOSS)
def stops_at_spike(run: Run, loss: Series) -> Facts:
    """Yield that a loss that fell without slowing down stands still for good from a spike of the gradient norm on."""
    norm = next(iter(columns_of(run, Quantity.GRADIENT_NORM, phase="train")), None)
    if norm is None or len(norm) < RECORDS_BEFORE_SPIKE + RECORDS_AFTER_SPIKE:
        return
    usual = median(norm.value)
    high = np.flatnonzero(norm.value > TIMES_LEVEL * usual)
    for at in high.tolist() if len(high) <= MOST_SPIKES else ():
        step = norm.step[at]
        before, after = _before(loss, step), _after(loss, step)
        if _stops_between(before, after) and not _rate_is_cut_at(run, step):
            yield derived_fact(
                "stops_at_spike",
                f"{named(norm)} is {figure(norm.value[at])} at {run.place(step)}, with a median of {figure(usual)}. In "
                f"the {RECORDS_BEFORE_SPIKE} records up to there {named(loss)} falls "
                f"from {figure(before.value[-RECORDS_BEFORE_SPIKE])} to {figure(before.value[-1])}, "
                f"and it is {figure(median(after.value))} in the {len(after)} records after them. A single "
                "spike ends no fall, unless the optimizer keeps it: its second moment in bf16 never comes down.",
                {"norm": norm.value[at], "level": median(after.value)},
                at=step,
            )


def _stops_between(before: Series, after: Series) -> bool:
    """Say whether a loss falls in a line up to a place and stands still at that level for good behind it."""
    if len(before) < RECORDS_BEFORE_SPIKE or len(after) < RECORDS_AFTER_SPIKE:
        return False
    step, value = before.step[-RECORDS_BEFORE_SPIKE:], before.value[-RECORDS_BEFORE_SPIKE:]
    slope, start, scatter = _line_through(step, value)
    fall, half = -slope * float(step[-1] - step[0]), RECORDS_BEFORE_SPIKE // 2
    slows_down = value[half] - value[-1] < STILL_FALLING * (value[0] - value[half])
    if fall < FALL_IN_NOISES * scatter or slows_down:
        return False
    met, thirds = start + slope * float(step[-1]), [median(part) for part in np.array_split(after.value, 3)]
    return all(abs(level - met) <= MAX_STANDING_FALL_SHARE * fall for level in thirds)


def _rate_is_cut_at(run: Run, step: float) -> bool:
    """Say whether the learning rate is much lower after a step than before it."""
    if (rate := rate_of(run)) is None:
        return False
    before, after = _before(rate, step), _after(rate, step)
    return bool(len(before) and len(after) and median(after.value) < NO_FLOOR * float(before.value[-1]))


# Saw-teeth: what recurs with a period, and which setting has it.


MIN_EXPLAINED_SHARE = 0.5
"""Share of the variance without trend that the place in the period explains. Chosen: of noise a quarter at most."""
LEAST_PERIOD = 3
"""Records of the shortest period. Chosen."""
MOST_OF_PERIODS = 4000
"""Records at the end that are looked at: a bound on what it costs."""
_COPIES = ("num_workers", "world_size")
"""Settings of how many read the data: where each reads all of it, each batch comes so many times in turn."""
MOST_COPIES = 32.0
"""The most of them that is looked for. Chosen: more leave too few groups."""
FALLS_IN_GROUP = 0.8
"""Share of the steps on one batch at which the loss falls, and of the new batches at which it rises. Chosen."""
LEAST_GROUPS = 12
"""Groups of records that show it. Chosen: by chance a half of the steps falls."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def batch_comes_again(run: Run, loss: Series) -> Facts:
    """Yield that the loss falls for as many steps as processes read the data and leaps up after, to the end."""
    moves, numbers = np.diff(loss.value), [run.setting(name) for name in _COPIES]
    for name, copies in zip(_COPIES, numbers, strict=True) if not (np.diff(loss.step) != 1).any() else ():
        if copies is None or not 2 <= copies <= MOST_COPIES or len(loss) < LEAST_GROUPS * copies:
            continue
        is_new = np.arange(1, len(loss)) % int(copies) == 0
        falls, leaps = np.mean(moves[~is_new] < 0), np.mean(moves[is_new] > 0)
        if min(falls, leaps) >= FALLS_IN_GROUP:
            yield derived_fact(
                "batch_comes_again",
                f"{named(loss)} falls at {percent(falls)} of the steps within groups of {int(copies)} and rises at "
                f"{percent(leaps)} of their ends; {name} is {int(copies)}. So does the loss where each batch comes "
                f"{int(copies)} times in turn: each of {int(copies)} processes reads all rows.",
                {"copies": copies, "falls": falls, "rises": leaps},
                at=loss.step[0],
            )


LONGEST_PERIOD = 200
"""Records of the longest period: a bound on what it costs."""
_PERIODS = (
    "steps_per_epoch", "eval_steps", "save_steps", "gradient_accumulation_steps", "n_steps", "num_iterations",
    "sync_steps", "update_interval",
)  # fmt: skip
_SAWS = (
    *LOSSES, Quantity.GRADIENT_NORM, Quantity.KL, Quantity.APPROXIMATE_KL, Quantity.CLIP_FRACTION,
    Quantity.POLICY_RATIO, Quantity.ENTROPY, Quantity.REWARD, Quantity.COMPLETION_LENGTH,
)  # fmt: skip


def periods(run: Run) -> Facts:
    """Yield columns that go up and down with a period, with the setting of that period; or two curves in one."""
    loss = training_loss(run, LEVEL_WINDOW_RECORDS)
    if loss is not None and (levels := curves_in_turn(loss.value)) is not None:
        yield derived_fact(
            "two_curves_in_turn",
            f"the records of {named(loss)} lie on two smooth curves in turn, which end at {figure(levels[0])} and "
            f"{figure(levels[1])}. So do the records of two runs that share a log, or of two kinds of batches.",
            {"first": levels[0], "second": levels[1]},
            at=loss.step[0],
        )
    columns = columns_of(run, *_SAWS, phase="train")
    found = [(series, period) for series in columns if (period := _period(series)) is not None]
    if not found or any(zeros_end_passes(run)):
        return
    series, (records, explained) = max(found, key=lambda item: item[1][1])
    interval = median_gap(series.step)
    steps = records * interval
    known = {name: run.setting(name) for name in _PERIODS} | {"a pass over the data": run.facts.steps_per_pass}
    same = [name for name, value in known.items() if value and abs(value - steps) <= 0.5 * interval]
    as_long = f"; {same[0]} is as long" if same else ""
    others = [named(other) for other, (length, _) in found if other is not series and length == records][:2]
    yield derived_fact(
        "recurs_with_period",
        f"{named(series)}{''.join(f' and {other}' for other in others)} goes up and down every {figure(steps)} "
        f"{run.step_name}s (the place in that period explains {percent(explained)} of what it varies by){as_long}. "
        "Rows in a new order each time leave no period.",
        {"period": steps, "explained": explained},
    )


FAR_ABOVE_OTHERS = 3.0
"""Times the median of all places of a period that a few have. Chosen: rows in an order by kind have less."""
FEW_PLACES = 0.2
"""Share of the places of a period that these are, at most. Chosen: blocks of like rows are most of a pass."""


@given_loss(LEVEL_WINDOW_RECORDS, not_of=POLICIES)
def few_places_of_period(run: Run, loss: Series) -> Facts:
    """Yield that of a period of the loss a few places alone are far above all others, in each cycle.

    Not this where the learning rate comes back with it.
    """
    found = _period(loss)
    if found is None or not positive(loss.value) or len(rate_comes_back(run)):
        return
    period, _ = found
    cycles = min(len(loss), MOST_OF_PERIODS) // period
    values = loss.value[-cycles * period :].reshape(cycles, period)
    places = row_medians((values / row_medians(values)[:, None]).T)
    high, at = places >= FAR_ABOVE_OTHERS, int(np.argmax(places))
    if high.any() and high.mean() <= FEW_PLACES:
        yield derived_fact(
            "few_places_of_period",
            f"{named(loss)} goes up and down every {figure(period * median_gap(loss.step))} {run.step_name}s, and "
            f"{int(high.sum())} of the {period} records of that period are far above the others: the highest has "
            f"{figure(places[at])} times the median of its cycle (median of {cycles} cycles), "
            f"{figure(median(values[:, at]))} or so. A few rows that come at the same place of each pass are unlike "
            "all others.",
            {"times": places[at], "cycles": cycles},
            at=loss.step[-cycles * period + at],
        )


@given_loss(LEVEL_WINDOW_RECORDS, not_of=POLICIES)
def norm_high_at_one_place(run: Run, loss: Series) -> Facts:
    """Yield that the gradient norm is far up at one place in the midst of each pass, and the loss jumps there alone.

    Not this where a pass begins there, or the loss jumps anywhere else, as it does at the ends of blocks of like rows.
    """
    norm, epoch = whole_column(run, Quantity.GRADIENT_NORM, phase="train"), logged(run, "epoch")
    if norm is None or epoch is None or not positive(loss.value) or not positive(norm.value):
        return
    own = distinct(epoch.value)
    period, left = divmod(len(epoch), len(own))
    are_together = all(np.array_equal(other.step, loss.step) for other in (norm, epoch))
    if not are_together or len(own) < MIN_RECURRENCES or period < LEAST_PERIOD or left:
        return
    passes = np.argsort(epoch.value, kind="stable").reshape(-1, period)
    norms, losses = norm.value[passes], loss.value[passes]
    places, rises = row_medians((norms / row_medians(norms)[:, None]).T), losses[:, 1:] / losses[:, :-1]
    high = np.flatnonzero(places >= FAR_ABOVE_OTHERS)
    jumps = 1 + np.flatnonzero(row_medians(rises.T) >= LEAST_JUMP)
    if not (epoch.value[passes] == own[:, None]).all() or len(jumps) != 1 or not len(high):
        return
    at = int(jumps[0])
    is_one = (rises >= LEAST_JUMP).sum() == len(passes) == (rises[:, at - 1] >= LEAST_JUMP).sum()
    if high[0] != at or high[-1] - high[0] >= FEW_PLACES * period or not is_one:
        return
    yield derived_fact(
        "norm_high_at_one_place",
        f"{named(norm)} is about {figure(median(norms[:, at]))} at record {at + 1} of {period} in each of "
        f"{len(passes)} passes, {figure(places[at])} times the median of its pass, and {named(loss)} jumps there to "
        f"{figure(median(losses[:, at]))} from {figure(median(losses[:, at - 1]))}, and nowhere else. Rows that come "
        "at one place of each pass are unlike all others; rows in an order by kind have many kinds.",
        {"times": places[at], "passes": len(passes)},
        at=loss.step[passes[0][at]],
    )


def _period(series: Series) -> tuple[int, float] | None:
    """Return the period in records, and the share of the variance that it explains; None where nothing recurs."""
    count = len(series)
    value, step = series.value[-MOST_OF_PERIODS:], series.step[-MOST_OF_PERIODS:]
    if count < MIN_RECURRENCES * LEAST_PERIOD + MIN_RECORDS_FOR_LEVEL or np.ptp(np.diff(step)) > 0:
        return None
    half = max(2, len(value) // 20)
    trend = np.convolve(np.pad(value, half, mode="edge"), np.ones(2 * half + 1) / (2 * half + 1), mode="valid")
    left = value - trend
    if np.std(left) <= 1e-12 * (1 + np.max(np.abs(value))):
        return None
    best: tuple[int, float] | None = None
    sums, squares = np.cumsum(left), np.cumsum(left * left)  # many columns have many periods: `np.var` takes long
    for period in range(LEAST_PERIOD, min(len(left) // MIN_RECURRENCES, LONGEST_PERIOD) + 1):
        cycles = len(left) // period
        size = cycles * period
        mean = sums[size - 1] / size
        places = left[:size].reshape(cycles, period).sum(axis=0) / cycles
        explained = float((places @ places / period - mean * mean) / (squares[size - 1] / size - mean * mean))
        beyond = explained - 3 * (period / size)
        if beyond > MIN_EXPLAINED_SHARE and (best is None or explained > best[1] + 0.1):
            best = (period, explained)
    return best


MIN_RESTARTS = 2
"""Times that a learning rate comes back, for its cycles to be compared. Chosen: two ends of cycles are no course."""
NO_LOWER = 1.02
"""Times the end of the cycle before, within which evaluation ends. Chosen: what is learnt slowly scatters so much."""
FEW_ROWS = 8
"""Rows of a batch up to which it tells little of the next. Chosen: shares of right answers go in eighths."""
MAX_WELL_LEARNT_SHARE = 0.25
"""Share of its first value at which an evaluation loss ends where much is learnt. Chosen: by hand."""
_RESTARTS = regex(r"restart|cyclic|sgdr|triangular|(?:^|[_/.])t_0$|cycle_(?:len|steps)", re.IGNORECASE)
_SCHEDULE = regex(r"sched|(?:^|[_/.])(?:lr|learning_rate|rate)(?:$|[_/.])|polic", re.IGNORECASE)
"""What settings are called that say how the learning rate goes, and what they say where it comes back."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def cycles_end_lower(run: Run, loss: Series) -> Facts:
    """Yield that each cycle of the learning rate ends with a lower loss than the one before, in evaluation too."""
    back, evaluation = rate_comes_back(run), logged(run, "eval_loss")
    if len(back) < MIN_RESTARTS:
        return
    rate = run["learning_rate"].finite
    at = [*back, run.last_step] if rate.value[-1] < rate.value.max() / 2 else back
    ends, held_out = _ends(loss, at), _ends(evaluation, at) if evaluation is not None else []
    if len(ends) <= MIN_RESTARTS or not _each_within(ends, 1.0) or not _each_within(held_out, NO_LOWER):
        return
    rises = rate.step[np.searchsorted(rate.step, back, side="right")].tolist()
    yield derived_fact(
        "set_cycles_end_lower" if _are_set(run) else "cycles_end_lower",
        f"the learning rate comes back {len(back)} times, first at {run.place(rises[0])}, and {named(loss)} is "
        f"{', '.join(map(figure, ends))} at the ends of its cycles. A loss that rises with the rate and ends each "
        "cycle lower follows its schedule.",
        {"restarts": len(back), "first": ends[0], "last": ends[-1]},
        steps=rises,
    )


def _are_set(run: Run) -> bool:
    """Say whether settings have the learning rate come back: restarts that nobody set are a fault of the schedule."""
    return any(
        _RESTARTS.search(setting.key) or (_RESTARTS.search(str(setting.value)) and _SCHEDULE.search(setting.key))
        for setting in run.settings.values()
        if setting.value
    )


def _ends(series: Series, steps: Sequence[float]) -> list[float]:
    """Return the level of the last records up to each step that has as many."""
    until = [int(at) for at in np.searchsorted(series.step, steps, side="right")]
    return [median(series.value[at - LEAST_PAIRS : at]) for at in until if at >= LEAST_PAIRS]


def _each_within(levels: Sequence[float], times: float) -> bool:
    return all(later < times * before for before, later in pairwise(levels) if before > 0)


@given_losses(MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def few_rows_learn(run: Run, losses: Losses) -> Facts:
    """Yield that evaluation improves steadily to far below its start, though batches are of few rows."""
    rows, value = run.facts.effective_batch, losses[1].value
    is_learnt = 0 < float(value[-1]) <= MAX_WELL_LEARNT_SHARE * float(value[0])
    if rows is not None and rows <= FEW_ROWS and is_learnt and _each_within(value.tolist(), MAX_RETURNED_LEVEL_RATIO):
        yield derived_fact(
            "few_rows_learn",
            f"{named(losses[1])} goes from {figure(value[0])} to {figure(value[-1])} in {len(value)} evaluations and "
            f"never rises by a tenth. So batches of {figure(rows)} rows are enough, and their scatter is that of few "
            "rows.",
            {"rows": rows, "first": value[0], "last": value[-1]},
        )


# A learning rate that is at the end of its schedule from the beginning on.


AT_FLOOR = 1.02
"""Times the last rate of a schedule up to which a rate is there. Chosen: rounding of logs takes less."""
NO_FLOOR = 0.5
"""Share of a learning rate to which it comes down where it is cut, or rests at a floor. Chosen."""
EARLIEST_END = 0.1
"""Share of the plan in which no schedule over all of it has ended. Chosen: warm-ups are as long."""
_FLOOR_SHARE = regex(
    r"lrf|(?:min|final|end)_(?:lr|learning_rate)_(?:ratio|rate|frac(?:tion)?|factor|share)"
    r"|lr_(?:min|final|end)_(?:ratio|frac(?:tion)?|factor|share)",
    re.IGNORECASE,
    needs=("lrf", "min_", "final_", "end_"),
)
_FLOOR = regex(
    r"eta_min|(?:min|final|end)_(?:lr|learning_rate)|(?:lr|learning_rate)_(?:min|final|end)",
    re.IGNORECASE,
    needs=("min_", "final_", "end_", "_min", "_final", "_end"),
)
"""What a setting is called that gives the last rate of a schedule: as a share of the peak, and by itself."""


def rate_at_floor_at_once(run: Run) -> Facts:
    """Yield that the learning rate is at the last value of its schedule from the first part of the plan on.

    Not this where the rate is constant by the settings, or where these let it decay over a part of the plan.
    """
    peak, rate, plan, decay = run.facts.schedule.peak, rate_of(run), plan_of(run), run.setting("lr_decay_steps")
    if not peak or rate is None or plan is None or shape_of(run) is Shape.CONSTANT or run.resumes:
        return
    floor = next((found for found in _floors(run, peak) if 0 < found <= NO_FLOOR * peak), math.nan)
    rests = true_at_end(~(rate.value > AT_FLOOR * floor)) if floor > 0 else 0
    if rests < MIN_RECORDS_FOR_LEVEL or rate.value[-1] < floor / AT_FLOOR:
        return
    step = rate.step[-rests]
    if step > EARLIEST_END * plan.planned or (decay is not None and decay < plan.planned / 2):
        return
    yield derived_fact(
        "rate_at_floor_at_once",
        f"{named(rate)} is {figure(floor)} in all {rests} records from {run.place(step)} on. That is "
        f"the last value that the settings give, and {plan.unit} {figure(plan.planned)} is the end of the plan. A "
        f"schedule that takes the rate there from {figure(peak)} arrives at the end. One that steps for each "
        "batch instead of each epoch arrives at once.",
        {"floor": floor, "peak": peak, "planned": plan.planned},
        at=step,
    )


LEAST_FALLS_TO_FLOOR = 3
"""Records, each with a lower rate, on the way to a floor. Chosen: one that falls in stages keeps each for a while."""
MIN_REST_AT_FLOOR = 0.6
"""Share of the records that a rate rests at its floor. Chosen: a schedule that fits the run comes there at its end."""


def rate_rests_early(run: Run) -> Facts:
    """Yield that the learning rate falls from record to record to its floor, and rests there for most of the run.

    Not this where the rate falls in stages, or the settings let it decay over a part of the plan.
    """
    rate, plan = rate_of(run), plan_of(run)
    if rate is None or run.resumes or len(rate) < MIN_RECORDS_FOR_LEVEL or run.setting("lr_decay_steps") is not None:
        return
    value, floor, top = rate.value, rate.value[-1], int(np.argmax(rate.value))
    rests = true_at_end(value == floor)
    falls, step = np.diff(value[top : len(value) - rests + 1]), rate.step[-rests]
    is_long = rests >= max(MIN_RECORDS_FOR_LEVEL, MIN_REST_AT_FLOOR * len(value))
    is_floor = 0 < floor <= NO_FLOOR * float(value[top])
    if not is_floor or not is_long or len(falls) < LEAST_FALLS_TO_FLOOR or np.any(falls >= 0):
        return
    end = f", and {plan.unit} {figure(plan.planned)} is the end of the plan" if plan is not None else ""
    yield derived_fact(
        "rate_rests_early",
        f"{named(rate)} falls from {figure(value[top])} to {figure(floor)} by "
        f"{run.place(step)} and is {figure(floor)} in all {rests} records from there "
        f"on{end}. A schedule as long as the run comes to its floor at the end; one that is advanced several times "
        "for each update, once for each micro-batch or process, comes there as many times as early.",
        {"floor": floor, "peak": value[top]},
        at=step,
    )


def _floors(run: Run, peak: float) -> Iterator[float]:
    """Yield the last learning rates that settings give: as shares of the peak, by themselves, or by milestones."""
    for setting in run.settings.values():
        if isinstance(setting.value, bool) or not isinstance(setting.value, int | float):
            continue
        if _FLOOR_SHARE.fullmatch(setting.last_part):
            yield float(setting.value) * peak
        elif _FLOOR.fullmatch(setting.last_part):
            yield float(setting.value)
    milestones, factor = run.settings.numbers("lr_milestones"), run.setting("gamma")
    if milestones and factor is not None:
        yield peak * factor ** len(milestones)


def rate_zero_throughout(run: Run) -> Facts:
    """Yield that the learning rate is 0 in all records: no peak was ever reached that could be raised."""
    rate = rate_of(run)
    if rate is None or len(rate) < MIN_RECORDS_FOR_LEVEL or np.any(rate.value != 0):
        return
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
    if loss is not None and last_level(loss) < (1 - MIN_LEARNT_FALL_SHARE) * start_level(loss.value):
        return  # the rate is printed with too few digits
    yield derived_fact(
        "rate_zero_throughout",
        f"Updates at a learning rate of 0 change nothing: the schedule gives 0 for all {len(rate)} records, or the "
        "optimizer gets no learning rate.",
        {"records": len(rate)},
        at=rate.step[0],
    )


# A learning rate that falls elsewhere than at the milestones of the settings.


FALLS_TO = 0.7
"""Times its last value up to which a rate has fallen at once. Chosen: the usual factors are 0.1 to 0.5."""
TOO_EARLY = 0.6
"""Share of its milestone before which a rate falls too early. Chosen: counts of warm-up steps move it less."""


def rate_falls_before_milestones(run: Run) -> Facts:
    """Yield that the rate falls long before the milestones that settings give, each by about the same factor."""
    rate, plan, milestones = rate_of(run), plan_of(run), run.settings.numbers("lr_milestones")
    if rate is None or plan is None or run.resumes or not milestones or rate.step[-1] <= 0:
        return
    plans = (run.setting("num_train_epochs"), run.setting("max_steps"), plan.planned)
    planned = next((known for known in plans if known and milestones[-1] < known), None)
    falls = np.flatnonzero(rate.value[1:] <= FALLS_TO * rate.value[:-1]) + 1
    rises = np.any(np.diff(rate.value)[int(np.argmax(rate.value)) :] > 0)
    if planned is None or len(falls) != len(milestones) or rises:
        return
    steps = rate.step[falls]
    expected = np.array(milestones) / planned / (plan.reached / plan.planned) * rate.step[-1]
    if np.any(steps > TOO_EARLY * expected):
        return
    more = f" and at {', '.join(map(figure, steps[1:].tolist()))}" if len(steps) > 1 else ""
    yield derived_fact(
        "rate_falls_before_milestones",
        f"{named(rate)} falls at {run.place(steps[0])}{more}. The settings have it fall at "
        f"{' and '.join(map(figure, milestones))} of {figure(planned)}: about {ratio(float(expected[0] / steps[0]))} "
        "times later. A scheduler that steps more often than its milestones count arrives early.",
        {"first": steps[0], "expected": expected[0], "planned": planned},
        at=steps[0],
    )


# A loss that is multiplied at one record, and goes on as before: a sum over another number of batches.


MIN_SCALE_CHANGE = 1.8
"""Times by which the scale of a loss changes at once. Chosen: half as many batches make 2."""
MAX_SHARE_OF_CHANGE = 0.1
"""Share of that change, in logarithms, that lines through both sides leave. Chosen: noise hides what is the same."""
MAX_SLOPE_DIFFERENCE = 0.25
"""Share by which the slopes of these lines differ. Chosen: a lower learning rate changes a slope by far more."""


@given_loss(2 * MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def scaled_at_once(run: Run, loss: Series) -> Facts:
    """Yield that the loss is multiplied at one record, and falls by the same share of itself before and after.

    Not this where the learning rate changes there, or an evaluation loss jumps as well.
    """
    if not (loss.value > 0).all():
        return
    logs = np.log(loss.value)
    at = int(np.argmax(np.abs(np.diff(logs)))) + 1
    change, sides = float(logs[at] - logs[at - 1]), (slice(None, at), slice(at, None))
    if not MIN_RECORDS_FOR_LEVEL <= at <= len(loss) - MIN_RECORDS_FOR_LEVEL or abs(change) < math.log(MIN_SCALE_CHANGE):
        return
    lines = [np.polyfit(loss.step[side], logs[side], 1) for side in sides]
    off = max(np.std(logs[side] - np.polyval(line, loss.step[side])) for side, line in zip(sides, lines, strict=True))
    (slope, _), (later_slope, _) = lines
    falls = min(-slope * np.ptp(loss.step[sides[0]]), -later_slope * np.ptp(loss.step[sides[1]]))
    is_alike = abs(slope - later_slope) <= MAX_SLOPE_DIFFERENCE * abs(slope) and falls >= 4 * off
    if off > MAX_SHARE_OF_CHANGE * abs(change) or not is_alike or _moves_there(run, loss, at, change):
        return
    yield derived_fact(
        "scaled_at_once",
        f"{named(loss)} goes from {figure(loss.value[at - 1])} to {figure(loss.value[at])} at "
        f"{run.place(loss.step[at])}, {figure(math.exp(change))} times as much, and falls by the same share "
        "of itself before and after. Learning does not go on so: the scale changes, as that of a sum does with the "
        "number of batches or rows.",
        {"factor": math.exp(change)},
        at=loss.step[at],
    )


def _moves_there(run: Run, loss: Series, at: int, change: float) -> bool:
    """Say whether the learning rate or the evaluation loss changes with the loss of a record, which may explain it."""
    found = (logged(run, name) for name in ("learning_rate", "eval_loss"))
    for series in (series for series in found if series is not None):
        before, later = series.at(loss.step[at - 1]), series.value[series.step >= loss.step[at]]
        times = float(later[0]) / before if before and len(later) else 0.0
        if times > 0 and abs(math.log(times)) > abs(change) / 4:
            return True
    return False


# A task that gets harder by stages: the loss jumps where one begins.


MOST_STAGES = 12
"""Stages of a curriculum. Chosen: what changes more often has no stages."""
JUMPS_AT_STAGE = 1.25
"""Times its level before by which a loss jumps at a stage. Chosen: noise of a mean over a batch has less."""
OF_LARGEST = 0.5
"""Share of the largest jump at a stage that one elsewhere has at most. Chosen: the stages then explain the jumps."""
LEAST_STAGES_UNNAMED = 2
"""Steps of a column whose name says nothing of stages. Chosen: one step may fall together with a fault."""
AS_A_SUM = 0.9
"""Share of the times by which a column grows that a sum over it grows at least. Chosen."""
COMES_DOWN = 0.5
"""Share of the jump that is gone at the end of the stage. Chosen: the harder task is learnt, too."""
_HARDER = frozenset(
    {"curriculum", "stage", "difficulty", "level", "horizon", "rollout", "digits", "length", "len", "seqlen"}
    | {"resolution", "hops", "operands", "lesson"}
)
"""Words of what a curriculum makes larger."""
_PLANNED = frozenset({"curriculum", "schedule", "stages", "lessons", "progressive"})
"""Words of settings that say when: a column that such a setting names may step down as well, as a noise ratio does."""
_AT = frozenset({"until", "from", "at", "start", "begin", "end", "step", "steps", "milestone", "milestones"})
"""Words of the steps in them."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def stages_explain_jumps(run: Run, loss: Series) -> Facts:
    """Yield that the loss jumps where a stage of the task begins, nowhere else as far, and comes down in that stage."""
    yield from _jumps_at_each_step(run, loss)
    rises = np.diff(loss.value, prepend=loss.value[0])
    where, begins = _logged_stages(run, loss) or _configured_stages(run, loss, rises)
    begins = [at for at in begins if LEAST_PAIRS <= at <= len(loss) - LEAST_PAIRS]
    if not begins:
        return
    first = max(begins, key=lambda at: float(rises[at]))
    end_of_stage = next((at for at in begins if at > first), len(loss))
    before, high, step = median(loss.value[first - LEAST_PAIRS : first]), loss.value[first], loss.step[first]
    end = median(loss.value[max(first + 1, end_of_stage - LEAST_PAIRS) : end_of_stage])
    elsewhere = np.delete(rises, begins)[LEAST_PAIRS:].max(initial=-math.inf)
    is_jump = before > 0 and high >= JUMPS_AT_STAGE * before and high - end >= COMES_DOWN * (high - before)
    levels = [JUMPS_AT_STAGE * median(loss.value[at - LEAST_PAIRS : at]) for at in begins]
    if is_jump and elsewhere <= OF_LARGEST * float(rises[first]):
        yield derived_fact(
            "stages_explain_jumps",
            f"{named(loss)} goes from about {figure(before)} to {figure(high)} at {run.place(step)}, where {where}. "
            f"It is about {figure(end)} at the end of that stage, and jumps nowhere else as far. A "
            "harder task begins with a higher loss.",
            {"before": before, "high": high, "end": end},
            at=step,
        )
    elif len(begins) >= LEAST_PAIRS and (loss.value[begins] >= levels).all():
        steps = ", ".join(map(figure, loss.step[begins].tolist()))
        yield derived_fact(
            "jumps_at_stages",
            f"{named(loss)} jumps at {run.step_name}s {steps}, where {where}: jumps at intervals, by plan.",
            {"stages": len(begins)},
            at=loss.step[begins[0]],
        )


def _jumps_at_each_step(run: Run, loss: Series) -> Facts:
    """Yield that the loss jumps at each step of a column, whatever its name, and rises nowhere else.

    Not this where evaluation gets worse, where the column only counts, or where the loss grows as much as a column
    that goes up: it is a sum then.
    """
    rises, evaluation = np.diff(loss.value, prepend=loss.value[0]), logged(run, "eval_loss", LEAST_PAIRS)
    gets_worse = evaluation is not None and (
        median(evaluation.value[-LEAST_PAIRS:]) > JUMPS_AT_STAGE * evaluation.value.min()
    )
    columns = [series.finite for series in run.series.values() if series.quantity in (None, Quantity.BATCH_SIZE)]
    for column in columns if not gets_worse and not (loss.value <= 0).any() else ():
        at = 1 + np.flatnonzero(np.diff(column.value))
        is_long = len(column) >= MIN_RECORDS_FOR_LEVEL and positive(column.value)
        if not is_long or not LEAST_STAGES_UNNAMED <= len(at) < MOST_STAGES:
            continue
        begins = np.searchsorted(loss.step, column.step[at])
        bounds, steps = [0, *begins.tolist(), len(loss)], np.diff(column.value)[at - 1]
        lasts = np.diff(bounds)
        only_counts = not np.ptp(steps) and np.ptp(lasts[:-1]) <= 1
        if lasts.min() < LEAST_PAIRS or not (positive(steps) or positive(-steps)) or only_counts:
            continue
        before = np.array([median(loss.value[end - LEAST_PAIRS : end]) for end in bounds[1:]])
        high, elsewhere = loss.value[begins], np.delete(rises, begins)
        is_sum = steps[0] > 0 and (high / before[:-1] >= AS_A_SUM * column.value[at] / column.value[at - 1]).any()
        jumps = (high >= JUMPS_AT_STAGE * before[:-1]).all() and (before[1:] <= high).all()
        if is_sum or not jumps or elsewhere.max() > OF_LARGEST * rises[begins].min():
            continue
        shown = ", ".join(f"{figure(low)} to {figure(top)}" for low, top in zip(before, high, strict=False))
        yield derived_fact(
            "stages_explain_jumps",
            f"{named(loss)} goes from about {shown} at {run.step_name}s "
            f"{', '.join(map(figure, loss.step[begins].tolist()))}, just where {named(column)} steps "
            f"{'up' if steps[0] > 0 else 'down'} ({from_to(column.value)}). It falls between these steps, and jumps "
            "nowhere else. What is asked changes there, so the loss has another scale from there on.",
            {"stages": len(at)},
            steps=loss.step[begins].tolist(),
        )


def _logged_stages(run: Run, loss: Series) -> tuple[str, list[int]] | None:
    """Return what a column of stages does, and at which records of the loss they begin; None where there is none."""
    settings = [parts for setting in run.settings.values() if _PLANNED & (parts := set(pieces_of(setting.key)))]
    for column in called(run, least=MIN_RECORDS_FOR_LEVEL):
        words = set(pieces_of(column.name)) - PHASES.keys()
        is_planned = bool(words) and any(words <= parts for parts in settings)
        if not words & _HARDER and not is_planned:
            continue
        changes = np.diff(column.value)
        at = np.flatnonzero(changes) + 1
        lasts = np.diff([0, *at.tolist(), len(column)])
        way = "up" if np.all(changes >= 0) else "down" if is_planned and np.all(changes <= 0) else ""
        if 0 < len(at) < MOST_STAGES and int(lasts.min()) >= LEAST_PAIRS and way:
            return f"{named(column)} steps {way}", np.searchsorted(loss.step, column.step[at]).tolist()
    return None


def _configured_stages(run: Run, loss: Series, rises: Floats) -> tuple[str, list[int]]:
    """Return what a setting of stages does, and at which records of the loss they begin; no record where there is none.

    A stage until a step begins behind it: of the two records around it the one that rises more is taken.
    """
    name, begins = "", set[int]()
    for setting in run.settings.values():
        parts = pieces_of(setting.key)
        if not (_PLANNED & set(parts) and (_HARDER | {"stages", "lessons"}) & set(parts)):
            continue
        step = float(parts[-1]) if parts[-1].isdecimal() else setting.value if parts[-1] in _AT else None
        if isinstance(step, bool) or not isinstance(step, int | float) or not loss.step[0] < step < loss.step[-1]:
            continue
        at = np.searchsorted(loss.step, step, side="left"), np.searchsorted(loss.step, step, side="right")
        begins.add(int(max(at, key=lambda index: float(rises[index]))))
        name = name or f"a stage of {setting.key} begins"
    return name, sorted(begins) if len(begins) < MOST_STAGES else []
