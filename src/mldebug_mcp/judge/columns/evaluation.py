"""Training next to evaluation, and scores next to one another: can both be right?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import aligned, at_common_steps, mad, median_of_three, true_at_end
from mldebug_mcp.checks.evaluation import (
    KNOWN_PERPLEXITY,
    ROWS_AT_ONCE,
    as_shares,
    begins_late,
    beside_training,
    harder_in_training,
    held_out_losses,
    is_auc,
    mixes_labels,
    next_token_known,
    refuse_another_scale,
)
from mldebug_mcp.checks.progress import passes_at, uniform_loss
from mldebug_mcp.checks.run.classification import PAIRS
from mldebug_mcp.checks.run.loss_level import OVERLAP
from mldebug_mcp.checks.run.loss_start import is_past_start
from mldebug_mcp.checks.run.settings import prompts_counted
from mldebug_mcp.checks.train_eval_gap import MAX_CHANCE_OF_MULTIPLES, rows_behind
from mldebug_mcp.core.arrays import distinct, median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, percent, shorten
from mldebug_mcp.judge.columns import (
    HALVED,
    LEAST_PAIRS,
    LOSSES,
    MIN_LEARNING_FALL_SHARE,
    MIN_RECORDS_FOR_LEVEL,
    NOT_BY_LOSS,
    POLICIES,
    Facts,
    Losses,
    both_losses,
    by_key,
    called,
    columns_of,
    derived_fact,
    from_to,
    given_loss,
    given_losses,
    last_level,
    last_third,
    learns,
    logged,
    named,
    set_scores,
    tail,
    training_loss,
    whole_columns,
)
from mldebug_mcp.judge.columns.guesses import AT_CHANCE, OF_CONSTANT, loss_of_guess, share_of_ones
from mldebug_mcp.judge.columns.printed import MIN_OFF_AGAIN, inputs_measured_apart, scored_again
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PHASES, STATISTICS
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.settings.settings import Setting
from mldebug_mcp.models.diagnosis import DerivedFact

# One column is a multiple of another: training and evaluation of the same loss.


LEAST_MULTIPLE = 1.8
"""Factor between two losses that are the same elsewhere. Chosen: dropout and augmentation raise a loss by less."""
MOST_SPREAD = 0.2
"""How far the logarithm of that factor varies at most. Chosen: a gap changes while it opens."""
NEAR_SETTING = 0.25
"""How near to a setting the logarithm of the factor must be. Chosen."""
SAME_SHARES = 0.05
"""By how much accuracies of training and evaluation differ at most to be the same. Chosen: the error of 400 rows."""
HARDLY_WRONG = 0.01
"""Share of wrong answers that counts at least, next to more. Chosen: fewer are chance."""
_SUMMED = ("gradient_accumulation_steps", "world_size")
_FACTORS = ("gradient_accumulation_steps", "world_size", "per_device_train_batch_size", "sequence_length")
"""Settings by which a loss is multiplied where it is summed instead of averaged."""


@given_losses(MIN_RECORDS_FOR_LEVEL)
def multiples(run: Run, losses: Losses) -> Facts:
    """Yield that the training loss is a multiple of the evaluation loss all the way, though their accuracies agree."""
    loss, evaluation = losses
    evaluation = evaluation.where(
        (evaluation.step >= loss.step[0]) & (evaluation.step <= loss.step[-1]) & (evaluation.value > 0)
    )
    train = _around(loss, evaluation.step)
    if len(train) < LEAST_PAIRS or not (train > 0).all():
        return
    times = train / evaluation.value
    factor, logs = median(times), np.log(times)
    far = factor if factor > 1 else 1 / factor
    known = ((name, run.setting(name)) for name in _FACTORS)
    near = [(n, v) for n, v in known if v is not None and v > 1 and abs(math.log(far / v)) < NEAR_SETTING]
    steady = mad(logs) <= MOST_SPREAD and np.ptp(logs) <= 3 * MOST_SPREAD
    # Below 1 it may be a gap that stays as it is, but for accuracies that agree, or a first loss that is too low.
    # A first loss that is that of a guess divided by a number is a mean that is divided again.
    uniform = None if is_past_start(run, loss.step[0]) else uniform_loss(run)
    parts = float(loss.value[0]) / uniform if uniform is not None else math.inf
    began_low = next((setting for setting in near if abs(parts * setting[1] - 1) <= AT_CHANCE), None)
    agreed = _accuracies_agree(run, factor)
    if far < LEAST_MULTIPLE or not steady or not (began_low or agreed or (near and factor >= 1)):
        return
    near = [began_low] if began_low else near
    set_to = f"; {near[0][0]} is {figure(near[0][1])}" if near else ""
    if began_low:
        set_to += f", and so many times the first loss, {figure(loss.value[0])}, is the loss of a guess"
    agree = ", and accuracies of training and evaluation agree" if agreed else ""
    yield derived_fact(
        "loss_multiple" if near and near[0][0] in _SUMMED else "loss_on_another_scale",
        f"{named(loss)} is {figure(times.min())} to {figure(times.max())} times {named(evaluation)} at {len(times)} "
        f"evaluations{set_to}{agree}. About 1 is expected where both are the same mean.",
        {"factor": factor, "low": times.min(), "high": times.max()},
        at=evaluation.step[0],
    )


BEYOND_START = 5.0
"""Times the highest training loss above which every evaluation lies. Chosen: rows that nobody learnt from have about
the first training loss, and rows known by heart make held-out ones dearer by less."""


@given_losses(not_of=NOT_BY_LOSS)
def evaluation_beyond_start(_: Run, losses: Losses) -> Facts:
    """Yield that each evaluation loss is many times what the training loss ever was, and not by one factor."""
    loss = losses[0]
    steps, train, evaluation = beside_training(*losses)
    if len(train) < LEAST_PAIRS or not (train > 0).all() or begins_late(loss):
        return
    try:
        refuse_another_scale(train, evaluation)
    except CannotTell:
        return
    highest, lowest = max(train.max(), loss.value[0]), evaluation.min()
    if lowest >= BEYOND_START * highest and train[-1] <= train[0]:
        yield derived_fact(
            "evaluation_beyond_start",
            f"{named(losses[1])} is {figure(lowest)} or more at all {len(evaluation)} evaluations, at least "
            f"{figure(lowest / highest)} times the highest {named(loss)}. A model that has learnt nothing has "
            "about the first training loss on held-out rows.",
            {"lowest": lowest, "highest_train": highest},
            at=steps[0],
        )


BELOW_ALL_TRAINING = 0.3
"""Of the lowest training loss, below which each evaluation lies. Chosen: dropout and augmentation cost less."""
IN_STEP = 2.0
"""Times by which the ratio of two losses that fall together changes at most. Chosen: two scales keep one ratio."""


@given_losses(not_of=NOT_BY_LOSS)
def evaluation_good_at_once(run: Run, losses: Losses) -> Facts:
    """Yield that evaluation was far below all that training ever comes to from its first time on, and not in step."""
    steps, train, evaluation = beside_training(*losses)
    if len(steps) <= LEAST_PAIRS or min(train.min(), evaluation.min()) <= 0:
        return
    is_learnt, times = median(train[-LEAST_PAIRS:]) < (1 - MIN_LEARNING_FALL_SHARE) * train[0], train / evaluation
    in_step = times.max() < IN_STEP * times.min()  # a sum over more rows, or another unit
    if is_learnt and not in_step and evaluation.max() <= BELOW_ALL_TRAINING * train.min():
        loss, evaluated = map(named, losses)
        yield derived_fact(
            "evaluation_good_at_once",
            f"{evaluated} is {figure(evaluation[0])} at its first time, {run.place(steps[0])}, where {loss} is "
            f"{figure(train[0])}. That is far below {figure(train.min())}, the lowest that {loss} comes "
            "to. A model that has yet to learn serves no held-out rows like that.",
            {"first": evaluation[0], "first_train": train[0], "lowest_train": train.min()},
            at=steps[0],
        )


MAX_STILL_EVALUATION_SPREAD = 0.02
"""Of its first value, by which an evaluation loss varies at most while it stands still. Chosen: twice the scatter of
a few hundred rows, and less than a model that overfits, or answers that change, move by."""
MIN_STILL_EVALUATIONS = 5
"""Evaluations at which a number stands still. Chosen: a model comes late to what is held out by one or two."""


@given_losses(not_of=NOT_BY_LOSS)
def evaluation_stands_still(run: Run, losses: Losses) -> Facts:
    """Yield that evaluation stands still, at first or all along, while training learns half of its loss or more.

    What overfits, or is learnt by heart and understood late, moves meanwhile. Not this where it still may follow, or is
    good from the first on, as where the model comes trained.
    """
    steps, train, evaluation = beside_training(*losses)
    off = np.abs(evaluation - evaluation[:1]) > MAX_STILL_EVALUATION_SPREAD * np.abs(evaluation[:1])
    still = int(np.argmax(off)) if off.any() else len(off)
    if still < MIN_STILL_EVALUATIONS or evaluation[0] < HALVED * train[0]:
        return
    learnt, falls = train[still - 1] / train[0], last_level(losses[1]) <= HALVED * evaluation[0]
    never = still == len(off) and np.ptp(evaluation) > 0 and run.kind != "sft"
    if not (falls or never) or not 0 < learnt <= HALVED * (1 if falls else 0.5):
        return
    loss, evaluated = map(named, losses)
    later = f"; later it falls to {figure(evaluation[-1])}" if falls else ""
    yield derived_fact(
        "evaluation_follows_late" if falls else "evaluation_stands_still",
        f"{evaluated} stays at {figure(evaluation[0])} in {'its first' if falls else 'all'} {still} evaluations, up to "
        f"{run.place(steps[still - 1])}, while {loss} goes from {figure(train[0])} to {figure(train[still - 1])}"
        f"{later}. The first things that a model learns serve held-out rows too: what is evaluated lags behind what is "
        "trained, as running statistics and averaged weights do, or its rows are prepared otherwise.",
        {"still": still, "first": evaluation[0], "train": train[still - 1]},
        at=steps[still - 1],
    )


MIN_LEARNT_LOSS_SHARE = 0.1
"""Share of its first level that a loss has lost at least where something is learnt. Chosen."""
MAX_ALIKE_GAP_SHARE = 0.1
"""Of that loss, by which evaluation lies above training at most to be served alike. Chosen."""
MIN_OPENED_GAP_SHARE = 0.2
"""Of the first training loss, by which the gap has opened in the last third. Chosen: less needs no reason."""


@given_losses(not_of=NOT_BY_LOSS)
def evaluation_began_alike(run: Run, losses: Losses) -> Facts:
    """Yield that evaluation was served as training rows were at first, where a gap opens later.

    Rows that are prepared in another way, or evaluated in the wrong mode, are served worse from the start.
    """
    steps, train, evaluation = beside_training(*losses)
    start, gap = median(losses[0].value[:LEAST_PAIRS]), evaluation - train
    if len(train) < LEAST_PAIRS or start <= 0 or median(last_third(gap)) < MIN_OPENED_GAP_SHARE * start:
        return
    fell = start - float(train[0])
    if fell >= MIN_LEARNT_LOSS_SHARE * start and gap[0] <= MAX_ALIKE_GAP_SHARE * fell:
        yield derived_fact(
            "evaluation_began_alike",
            f"at the first evaluation ({run.place(steps[0])}) {named(losses[1])} is {figure(evaluation[0])} and "
            f"{named(losses[0])} {figure(train[0])}, down from {figure(start)}. Evaluation came down with training "
            "there, and the gap opened later.",
            {"evaluation": evaluation[0], "train": train[0], "start": start},
            at=steps[0],
        )


AS_IN_TRAINING = 0.1
"""Of the first training loss, by which an evaluation that is as training rows differs at most. Chosen."""
ANOTHER_SCALE = 30.0
"""Times the first training loss, beyond which another set is measured by another loss. Chosen."""
FAR_APART = 0.3
"""Of the first training loss, by which another set lies above it. Chosen: where much is learnt other rows do too."""


def held_out_sets_disagree(run: Run) -> Facts:
    """Yield that one set of evaluation is served as training rows are, or ever better, and another far worse."""
    losses = both_losses(run, LEAST_PAIRS, not_of=NOT_BY_LOSS)
    stated = None if losses is None else _served_as_training(run, losses)
    stated = stated or _parted_sets(run) or (None if losses is None else _closing_set(run, losses))
    if stated is not None:
        yield stated


def _served_as_training(run: Run, losses: Losses) -> DerivedFact | None:
    scored = (series for series in _scored_sets(run, losses[0]) if len(series.finite) >= LEAST_PAIRS)
    sets = [*held_out_losses(run, LEAST_PAIRS), *scored]
    start, train = losses[0].value[0], last_level(losses[0])
    ends = sorted((last_level(series.finite), series.name) for series in sets)
    if len(ends) < 2 or not 0 <= train < start:
        return None
    (low, near), (high, far) = ends[0], ends[-1]
    if abs(low - train) > AS_IN_TRAINING * start or not FAR_APART * start <= high - low <= ANOTHER_SCALE * start:
        return None
    if (parted := _were_alike(run, losses[0], near, far, (low, high))) is not None:
        return parted
    return derived_fact(
        "held_out_sets_disagree",
        f"{named(run[near])} ends at about {figure(low)}, as {named(losses[0])} at {figure(train)}, and "
        f"{named(run[far])} at about {figure(high)}. Either rows of the first set are in the training data, or "
        "the second set is of another kind.",
        {"train": train, "near": low, "far": high},
        at=run[far].finite.step[-1],
    )


_SCORES_OF_SETS = (Quantity.ACCURACY, Quantity.AUC, Quantity.HIT_RATE, Quantity.F1)
MIN_CLOSING_SCORE_GAP = 0.15
"""Share of right answers, or area under the curve, by which a set that is evaluated at the end lies below. Chosen."""
_OF_ROWS_AT_ONCE = regex(r"\b(?:bs|again)\b|train")


def _closing_set(run: Run, losses: Losses) -> DerivedFact | None:
    """Return that a set which is evaluated at the end alone scores far below one that is served as training is."""
    start, (train, evaluated) = median(losses[0].value[:LEAST_PAIRS]), map(last_level, losses)
    if not 0 <= train < start or abs(evaluated - train) > AS_IN_TRAINING * start:
        return None
    for near in whole_columns(run, Quantity.AUC, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        level = median(as_shares(tail(near)))
        for far in columns_of(run, near.role.quantity) if near.role else ():
            is_set = len(far) < LEAST_PAIRS and far.role is not None and (far.role.part or far.role.namespace)
            low = float(as_shares(far.value)[-1])
            if not is_set or _OF_ROWS_AT_ONCE.search(far.name.lower()) or level - low < MIN_CLOSING_SCORE_GAP:
                continue
            return derived_fact(
                "held_out_sets_disagree",
                f"{named(near)} ends at about {figure(level)}, with {named(losses[1])} at {figure(evaluated)} as "
                f"{named(losses[0])} at {figure(train)}, and {named(far)} is {figure(low)}. Either rows of the "
                "first set are in the training data, or the second set is of another kind.",
                {"train": train, "near": level, "far": low},
                at=far.step[-1],
            )
    return None


def _were_alike(run: Run, training: Series, near: str, far: str, ends: tuple[float, float]) -> DerivedFact | None:
    """Return that two sets which part were alike where training had learnt something: they are of one kind."""
    steps, first, second = at_common_steps(run[near].finite, run[far].finite)
    start = median(training.value[:LEAST_PAIRS])
    if len(steps) < LEAST_PAIRS:
        return None
    before = training.where(training.step <= steps[0]).value[-LEAST_PAIRS:]
    learnt = median(before) if len(before) else start
    if learnt > (1 - MIN_LEARNT_LOSS_SHARE) * start or abs(second[0] - first[0]) > AS_IN_TRAINING * start:
        return None
    return derived_fact(
        "alike_sets_part",
        f"{named(run[near])} and {named(run[far])} are alike at {run.place(steps[0])}, "
        f"{figure(first[0])} and {figure(second[0])}, and end at about {figure(ends[0])} and "
        f"{figure(ends[1])}. Sets of one kind stay together, unless rows of one are in the training data.",
        {"near": ends[0], "far": ends[1]},
        at=steps[-1],
    )


GETS_WORSE = 1.15
"""Times its first loss to which a set gets worse. Chosen: sets that are drawn alike get better together."""


def _parted_sets(run: Run) -> DerivedFact | None:
    """Return that one set gets far better by an error that gets worse on another, as far as both are logged."""
    errors = (Quantity.LOSS, Quantity.SQUARED_ERROR, Quantity.ABSOLUTE_ERROR)
    columns = columns_of(run, *errors, phase="eval", least=2 * LEAST_PAIRS) if run.kind not in NOT_BY_LOSS else []
    sets = by_key(
        (tuple(piece for piece in pieces_of(named(series)) if piece not in PHASES), series)
        for series in columns
        if series.value.min() > 0
    )
    for alike in sets.values():
        near, far = (of(alike, key=_left_of_first) for of in (min, max))
        is_apart = _left_of_first(near) <= 1 - MIN_LEARNING_FALL_SHARE and _left_of_first(far) >= GETS_WORSE
        if not is_apart or not np.array_equal(near.step, far.step):
            continue
        falls, rises = ((figure(each.value[0]), figure(last_level(each))) for each in (near, far))
        return derived_fact(
            "held_out_set_gets_worse",
            f"{named(near)} falls from {falls[0]} to {falls[1]}, and {named(far)} rises from {rises[0]} to "
            f"{rises[1]}. What is learnt serves rows of the first set alone. Either these resemble training rows, "
            "as neighbours in time or of one group do, or the second set is of another kind.",
            {"near": last_level(near), "far": last_level(far)},
            at=far.step[-1],
        )
    return None


def _left_of_first(series: Series) -> float:
    return last_level(series) / float(series.value[0])


def _scored_sets(run: Run, training: Series) -> list[Series]:
    """Return the losses of sets that have a score at the same steps, though no name says evaluation: `march bce`."""
    scored = columns_of(run, *_SCORES_OF_SETS)
    scores = {tuple(score.role.part.split()): score.step for score in scored if score.role and score.role.part}
    measure = {*pieces_of(named(training)), "loss"}
    return [
        loss
        for loss in columns_of(run, Quantity.LOSS, phase="train")
        if loss.role and len(loss) < len(training)
        for of_set in [tuple(word for word in loss.role.part.split() if word not in measure)]
        if of_set in scores and np.array_equal(loss.step, scores[of_set])
    ]


# Rows of evaluation that are longer than those of training, by positions in the row or by sets of one length.


_PLACES = regex(
    r"\b(?P<of>pos(?:ition)?s?|tok(?:en)?s?|len(?:gth)?s?|ctx|context|seq(?:uence)?)(?: len(?:gth)?s?)?(?: [a-z]+)?"
    r" ?(?P<start>\d+)(?P<kilo> ?k\b)?(?: (?:to )?(?P<end>\d+)(?P<kilos> ?k\b)?)?$"
)
"""How the name of a loss ends that is of some positions of a row, or of rows of some length."""
_EVALUATED = frozenset({"eval", "evaluation", "val", "valid", "validation", "test"})
_LENGTHS = frozenset({"len", "length", "ctx", "context", "block", "seq", "sequence", "seqlen"})
_OF_OTHERS = frozenset({"new", "gen", "generation", "completion", "response", "episode", "stride", "batch", "overlap"})
"""Words of settings: for the rows of evaluation, for their length, and for lengths of something else."""


@given_losses(LEAST_PAIRS, not_of=NOT_BY_LOSS)
def worse_beyond_length(run: Run, losses: Losses) -> Facts:
    """Yield that evaluation is as training up to the length of its rows, and far worse beyond it.

    Where no loss is split by positions or lengths, a longer row in the settings and a wide gap are stated.
    """
    length, start, train = run.setting("sequence_length"), median(losses[0].value[:LEAST_PAIRS]), last_level(losses[0])
    if not length or not 0 <= train < start:
        return
    evaluated = columns_of(run, Quantity.LOSS, phase="eval", least=LEAST_PAIRS)
    placed = [(*places, series) for series in evaluated if (places := _places_of(series)) is not None]
    near = max((each for each in placed if each[1] <= length), key=lambda each: each[1], default=None)
    beyond = min((each for each in placed if each[0] >= length < each[1]), key=lambda each: each[0], default=None)
    longer = next(iter(_longer_rows(run, length)), "")
    if near is not None and beyond is not None:
        low, high = last_level(near[2]), last_level(beyond[2])
        if low - train <= AS_IN_TRAINING * start and high - low >= FAR_APART * start:
            yield derived_fact(
                "worse_beyond_length",
                f"{named(near[2])} ends at about {figure(low)}, as {named(losses[0])} at {figure(train)}, and "
                f"{named(beyond[2])} at {figure(high)}. Training rows have {figure(length)} tokens"
                f"{longer and f', and {longer}'}: what lies beyond was never trained.",
                {"train": train, "near": low, "far": high, "length": length},
            )
    elif longer and (high := last_level(losses[1])) - train >= FAR_APART * start:
        yield derived_fact(
            "evaluated_on_longer",
            f"training rows have {figure(length)} tokens, and {longer}. {named(losses[1])} ends at about "
            f"{figure(high)} and {named(losses[0])} at {figure(train)}. Positions beyond the rows of training were "
            "never trained.",
            {"train": train, "far": high, "length": length},
        )


def _places_of(series: Series) -> tuple[float, float] | None:
    """Return the first position and the end of those that a loss is of; a single length is of all up to it."""
    if (match := _PLACES.search(" ".join(pieces_of(named(series))))) is None:
        return None
    first = float(match["start"]) * (1024 if match["kilo"] else 1)
    return first, float(match["end"]) * (1024 if match["kilos"] else 1) if match["end"] else first


def _longer_rows(run: Run, length: float) -> Iterator[str]:
    """Yield the settings that give rows of evaluation a greater length, with their values."""
    for setting in run.settings.values():
        words = set(pieces_of(setting.key))
        is_length = words & _EVALUATED and words & _LENGTHS and not words & _OF_OTHERS
        if is_length and isinstance(setting.value, int | float) and setting.value >= LEAST_MULTIPLE * length:
            yield f"{setting.key} is {figure(setting.value)}"


FEW_ROWS = 8
"""Rows at once that are few next to an unknown number. Chosen: with more, statistics come near those of a set."""
FAR_FROM_ALL = 0.1
"""By how much a share of right answers is lower with few rows at once. Chosen: padding and rounding take less."""
MIN_FEWER_RIGHT = 0.02
"""Share of right answers that is lower where the loss is as high. Chosen: one row of fifty."""
TIMES_AS_HIGH = 1.5
"""Times as high as with many rows at once that a loss is with few. Chosen: means of unequal batches differ less."""


def evaluation_by_rows_at_once(run: Run) -> Facts:
    """Yield that evaluation is far worse where few rows are evaluated at once: rows then depend on one another."""
    quantities = (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.ERROR_RATE)
    scores = columns_of(run, *quantities, phase="eval")
    measured = [*scores, *columns_of(run, Quantity.LOSS, phase="eval")]
    for few in measured:
        rows, part = _rows_at_once(few)
        alike = [many for many in measured if many.quantity is few.quantity and _rows_at_once(many)[1] == part]
        many = max((many for many in alike if not 0 < _rows_at_once(many)[0] <= rows), key=_right, default=None)
        if not rows or many is None or (rows > FEW_ROWS and not _rows_at_once(many)[0]):
            continue
        is_loss = few.quantity is Quantity.LOSS
        low, high = (median(tail(series) if is_loss else as_shares(tail(series))) for series in (few, many))
        if is_loss:
            is_far = low > TIMES_AS_HIGH * high > 0 and _fewer_right(scores, rows)
        else:
            is_far = _right(many) - _right(few) >= FAR_FROM_ALL
        if is_far:
            yield derived_fact(
                "evaluation_by_rows_at_once",
                f"{named(few)} ends at about {figure(low)} and {named(many)} at {figure(high)}: the same rows, "
                f"{rows} at a time and more. In evaluation mode the answer to a row depends on no other row. "
                "Statistics of the batch make it depend on all of them.",
                {"few": low, "many": high},
            )


def _fewer_right(scores: Sequence[Series], rows: int) -> bool:
    """Say whether fewer answers are right with so many rows at once than with any other number, if that is logged."""
    right = [_right(score) for score in scores if _rows_at_once(score)[0] == rows]
    return not right or max(map(_right, scores)) - max(right) >= MIN_FEWER_RIGHT


def _rows_at_once(score: Series) -> tuple[int, str]:
    """Return how many rows at once a score of evaluation is named for, 0 for none, and its part without that."""
    part = score.role.part if score.role else ""
    rows = ROWS_AT_ONCE.search(part)
    return int(rows[1] or 1) if rows else 0, ROWS_AT_ONCE.sub("", part)


def _right(score: Series) -> float:
    """Return the share of right answers at the end, or a loss below zero."""
    if score.quantity is Quantity.LOSS:
        return -last_level(score)
    share = median(as_shares(tail(score)))
    return 1 - share if score.quantity is Quantity.ERROR_RATE else share


def _around(series: Series, steps: Floats) -> Floats:
    """Return the median of the three values around each step, shape (n,)."""
    at = np.clip(np.searchsorted(series.step, steps), 1, len(series) - 2)
    return median_of_three(series.value)[at]


def _accuracies_agree(run: Run, factor: float) -> bool:
    """Say whether as many answers are right in training, and not as many times wrong as its loss is higher."""
    shares = [columns_of(run, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, phase=phase) for phase in ("train", "eval")]
    if not all(shares):
        return False
    train, evaluation = (median(as_shares(tail(share[0]))) for share in shares)
    times_as_wrong = max(1 - train, HARDLY_WRONG) / max(1 - evaluation, HARDLY_WRONG)
    return abs(train - evaluation) < SAME_SHARES and (factor < 1 or times_as_wrong < LEAST_MULTIPLE)


# Two scores of one evaluation that cannot both be right.


MIN_GOOD_SCORE = 0.9
"""Share of right answers of a good model. Chosen."""
MAX_HOPELESS_SCORE = 0.05
"""Share of right answers of a hopeless model. Chosen."""
_SCORES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.IOU, Quantity.DICE, Quantity.AVERAGE_PRECISION,
)  # fmt: skip


def _is_of_one_class(series: Series) -> bool:
    """Say whether a score measures one class, which answers of another class alone leave at 0."""
    is_of_part = series.role is not None and bool(series.role.part)
    return series.quantity in _OF_CLASSES or (series.quantity is Quantity.IOU and is_of_part)


_OF_CLASSES = (Quantity.F1, Quantity.DICE, Quantity.AVERAGE_PRECISION)


def contradictions(run: Run) -> Facts:
    """Yield a score near 1 next to another of the same evaluation near 0 that does not rise with it.

    Where the first never moves while the loss falls, and the other is 0, all rows get one answer. That holds for
    scores whose phase is not known, too.
    """
    loss = training_loss(run, LEAST_PAIRS)
    for pair in combinations(columns_of(run, *_SCORES, least=LEAST_PAIRS), 2):
        good, bad = sorted(pair, key=lambda series: -series.value[-1])
        if good.value[-1] < MIN_GOOD_SCORE or not 0 <= bad.value.max() < MAX_HOPELESS_SCORE:
            continue
        if not np.array_equal(good.step, bad.step) or bad.value[-1] > bad.value[0]:
            continue
        phases = {series.role.phase for series in (good, bad) if series.role}
        is_learnt = loss is not None and learns(loss)
        is_one_answer = _is_of_one_class(bad) and not bad.value.any() and not np.ptp(good.value) and is_learnt
        if phases != {"eval"} and not (len(phases) == 1 and is_one_answer):
            continue
        fact, expected = "scores_contradict", "Both measure the same answers and are expected to rise together."
        if is_one_answer:
            fact = "one_answer_of_majority"
            expected = "Neither ever moves while the loss falls: all rows get one answer, that of the common class."
        elif not np.ptp(bad.value) or _is_of_one_class(bad):
            fact, expected = "majority_alone", "Where one class is rare, answers of the other alone give both."
        yield derived_fact(
            fact,
            f"{named(good)} is {figure(good.value[-1])} at the end while {named(bad)} is "
            f"{figure(bad.value[0])} at first and {figure(bad.value[-1])} at the end. {expected}",
            {"good": good.value[-1], "bad": bad.value[-1]},
        )


# A ranking by chance next to a loss that has learnt to rank.


BY_CHANCE = 1.5
"""Times the share of hits by chance up to which hits are by chance. Chosen: the error of some hundred queries."""
MOST_RANKED = 0.5
"""Share of the candidates that are looked at. Chosen: beyond, the first k are most of them, and hits by chance many."""
FEWEST_RANKED = 20
"""Candidates of a ranking. Chosen: among a few, hits by chance are many."""
_CANDIDATES = regex(
    r"corpus|candidate|catalog|(?:^|[/_.])(?:docs?|documents|passages|pool)(?:$|[/_.])",
    re.IGNORECASE,
    needs=("corpus", "candidate", "catalog", "doc", "passages", "pool"),
)
"""What a setting is called that says how many candidates are ranked."""
_AT_RANK = regex(r"(?:^| )(\d{1,4})$")
"""How the part of a hit rate or a recall ends that says how far down the ranking is looked."""


@given_losses(MIN_RECORDS_FOR_LEVEL)
def ranking_by_chance(run: Run, losses: Losses) -> Facts:
    """Yield hits among the first few candidates that are as many as by chance, where the loss has learnt to rank.

    The loss is that of picking one of a batch, so that a guess has the logarithm of its rows.
    """
    counts = [
        float(setting.value)
        for setting in run.settings.values()
        if _CANDIDATES.search(setting.key) and isinstance(setting.value, int | float) and setting.value >= FEWEST_RANKED
    ]
    rows, lows = run.setting("per_device_train_batch_size"), list(map(last_level, losses))
    if len(counts) != 1 or not rows or rows < 2:
        return
    if not 0 <= max(lows) < HALVED * math.log(rows) < losses[0].value[0]:
        return
    hits = ((rank / counts[0], score) for rank, score in _hits(run))
    share, score = max(hits, key=lambda hit: hit[0], default=(1.0, losses[1]))
    if share > MOST_RANKED or score.value.max() > BY_CHANCE * share:
        return
    yield derived_fact(
        "ranking_by_chance",
        f"{named(score)} is about {figure(last_level(score))}, and hits by chance among {figure(counts[0])} "
        f"candidates are {figure(share)}. {named(losses[1])} is {figure(lows[1])}, where a guess among "
        f"{figure(rows)} rows has {figure(math.log(rows))}. A model that picks its pair in a batch ranks better "
        "than by chance: the two are not of the same answers.",
        {"hits": last_level(score), "by_chance": share, "loss": lows[1]},
    )


_OF_ORDER = (Quantity.AUC, Quantity.AVERAGE_PRECISION, Quantity.NDCG, Quantity.MRR)
"""Scores that nearly any change of the answers moves, unlike a share of right ones."""
_OF_LABELS = (Quantity.AUC, Quantity.AVERAGE_PRECISION)
"""Those of a classifier, whose loss a bias alone moves: the order of rows is then the same."""


def ranking_stands_still(run: Run) -> Facts:
    """Yield that a score of the order of rows is the same number at all evaluations, whose loss moves.

    The loss of a classifier ends below that of a constant guess. Not this where the score is round, as that of equal
    answers is, or printed with two digits; nor of a named part, such as a baseline, or where another such score moves.
    """
    loss = next(iter(columns_of(run, Quantity.LOSS, phase="eval", least=MIN_STILL_EVALUATIONS)), None)
    least = 0.0 if loss is None else MAX_STILL_EVALUATION_SPREAD * abs(median(loss.value))
    if loss is None or run.kind in POLICIES or np.ptp(loss.value) < least:
        return
    share = share_of_ones(run)[0]
    is_learnt = share is not None and last_level(loss) < OF_CONSTANT * loss_of_guess(share)
    scores = columns_of(run, *_OF_ORDER, phase="eval", least=MIN_STILL_EVALUATIONS)
    for score in scores if not any(np.ptp(score.value) for score in scores) else ():
        value, is_of_labels = score.value[0], score.quantity in _OF_LABELS
        is_of_part = any(word.isalpha() and word != "pr" for word in _parts(score))
        if is_of_part or (is_of_labels and not is_learnt) or float(f"{value:.2g}") == value:
            continue
        constant = f", and a constant guess has {figure(loss_of_guess(share))}" if share and is_of_labels else ""
        yield derived_fact(
            "ranking_stands_still",
            f"{named(score)} is {figure(value)} to the last digit at all {len(score)} evaluations, in which "
            f"{named(loss)} is {from_to(loss.value)}{constant}. Other answers rank rows in another order: the "
            "score is not of these answers.",
            {"score": value, "evaluations": len(score)},
            at=score.step[0],
        )


FAR_BACKWARDS = -0.4
"""How far rows are ranked backwards, where -1 is the exact reverse and 0 is by chance. Chosen: few rows come nearer."""


def ranked_backwards(run: Run) -> Facts:
    """Yield that answers are ranked backwards by a score, though the loss of the same rows says that they are right.

    Not this where the loss is that of a constant guess, or above: the labels may be the other way round then.
    """
    evaluation = next(iter(columns_of(run, *LOSSES, phase="eval", least=LEAST_PAIRS)), None)
    if evaluation is None or run.kind in NOT_BY_LOSS:
        return
    share = share_of_ones(run)[0] if evaluation.quantity is Quantity.LOSS else None
    first, last = evaluation.value[0], last_level(evaluation)
    for score in columns_of(run, Quantity.AUC, Quantity.CORRELATION, phase="eval", least=LEAST_PAIRS):
        is_area, middle, constant = score.quantity is Quantity.AUC, "0", ""
        order, least = score.value, (1 - MIN_LEARNT_LOSS_SHARE) * first
        if is_area:
            order, middle = 2 * as_shares(score.value) - 1, "0.5"
        if is_area and share:
            least = loss_of_guess(share) * OF_CONSTANT
            constant = f", below {figure(loss_of_guess(share))}, that of a constant guess"
        is_backwards = -1 <= order.min() <= order.max() <= FAR_BACKWARDS and order[-1] <= order[0]
        if is_backwards and 0 < last < least and (is_auc(score) or not is_area):
            yield derived_fact(
                "ranked_backwards",
                f"{named(score)} goes from {figure(score.value[0])} to {figure(score.value[-1])}, the "
                f"wrong side of {middle}, while {named(evaluation)} goes from {figure(first)} to "
                f"{figure(last)}{constant}. Answers that the loss finds right rank rows well: the score has the wrong "
                "sign, or is of the other class.",
                {"score": score.value[-1], "loss": last},
                at=score.step[0],
            )


def score_of_last_batch(run: Run) -> Facts:
    """Yield a score in steps of one over the rows of the last batch, where a set has many more."""
    rows, batch = (run.setting(name) for name in ("eval_rows", "per_device_eval_batch_size"))
    batch = batch or run.setting("per_device_train_batch_size")
    if not rows or not batch or rows <= batch:
        return
    rest = rows % batch or batch
    for series in columns_of(run, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, phase="eval", least=LEAST_PAIRS):
        shares = as_shares(series.value)
        between = distinct(shares[(shares > 0) & (shares < 1)])
        few = rows_behind(shares) if len(between) > 1 else None
        if few is not None and not rest % few and (few / rows) ** len(between) <= MAX_CHANCE_OF_MULTIPLES:
            yield derived_fact(
                "score_of_last_batch",
                f"{named(series)} is a multiple of 1/{few} at all {len(series)} evaluations: "
                f"{', '.join(map(figure, between[:LEAST_PAIRS].tolist()))}. There are {figure(rows)} rows in batches "
                f"of {figure(batch)}, and {figure(rest)} in the last. So it is the score of the last batch alone.",
                {"rows": rows, "counted": few},
            )


_MIDDLES = frozenset({"median", "med", "md", "medr", "mdr"})
_RANKS = frozenset({"rank", "place", "position", "medr", "mdr"})
"""The words that name a median rank: one of each."""
LEFT_OF_HITS = 0.5
"""Share of the hits that such a rank has at least, below which they are not of it. Chosen: a median is rounded."""


def hits_contradict_ranks(run: Run) -> Facts:
    """Yield next to no hits among the first few, where the median rank or MRR puts right answers among them.

    Where the median rank falls to R, more than k / 2R of the answers are among the first k: the higher a place, the
    more right answers it has.
    """
    stated = _hopeless_hits(run) or _hits_stand_while_ranks_fall(run)
    if stated is not None:
        yield stated


def _hopeless_hits(run: Run) -> DerivedFact | None:
    hits = [(rank, score) for rank, score in _hits(run) if score.value.max() < MAX_HOPELESS_SCORE]
    far_down, score = max(hits, key=lambda hit: hit[0], default=(0, None))
    # What is not among the first k adds 1 / (k + 1) at most.
    least = 0.5 + 0.5 / (far_down + 1)
    ranks = [series for series in _median_ranks(run) if 0 <= last_level(series) <= far_down]
    ranks += [series for series in columns_of(run, Quantity.MRR, phase="eval") if least <= last_level(series) <= 1]
    ranks = [series for series in ranks if score is not None and np.array_equal(series.step, score.step)]
    if score is None or not ranks:
        return None
    return derived_fact(
        "hits_contradict_ranks",
        f"{named(score)} is {figure(score.value.max())} at most, and {named(ranks[0])} about "
        f"{figure(last_level(ranks[0]))}: half of the right answers and more are among the first {far_down}. "
        "The two are not of the same ranking.",
        {"hits": score.value.max(), "rank": last_level(ranks[0])},
    )


def _hits_stand_while_ranks_fall(run: Run) -> DerivedFact | None:
    ranks = [rank for rank in _median_ranks(run) if len(rank) >= 2 * LEAST_PAIRS]
    fallen = [rank for rank in ranks if 0 < last_level(rank) <= HALVED * median(rank.value[:LEAST_PAIRS])]
    for rank, (far_down, score) in product(fallen, _hits(run)):
        shares, end = as_shares(score.value), last_level(rank)
        first, last, least = median(shares[:LEAST_PAIRS]), median(last_third(shares)), min(1.0, far_down / end) / 2
        if np.array_equal(rank.step, score.step) and last <= min(first * GETS_WORSE, LEFT_OF_HITS * least):
            return derived_fact(
                "hits_contradict_ranks",
                f"{named(rank)} falls from {figure(rank.value[0])} to about {figure(end)}, and {named(score)} is "
                f"{figure(first)} at first and {figure(last)} at the end. With such a median rank {percent(least)} of "
                f"the right answers or more are among the first {far_down}. The two are not of the same ranking: "
                "answers are counted one off, for instance, or looked up by another number.",
                {"hits": last, "rank": end, "least": least},
                at=score.step[-1],
            )
    return None


def _median_ranks(run: Run) -> list[Series]:
    names = {name: set(pieces_of(name)) for name in run.series}
    return [run[name].finite for name, of in names.items() if of & _MIDDLES and of & _RANKS and len(run[name].finite)]


def _hits(run: Run) -> Iterator[tuple[int, Series]]:
    """Yield the hit rates and recalls of evaluation, each with how far down the ranking is looked."""
    for score in columns_of(run, Quantity.RECALL, Quantity.HIT_RATE, least=LEAST_PAIRS):
        if score.role and (rank := _AT_RANK.search(score.role.part)):
            yield int(rank[1]), score


# Scores that no model has: perfect before anything is learnt, or two of different things that are one.


MIN_EVALUATIONS = 4
"""Evaluations that are perfect or equal at least. Chosen: three may be so by chance."""
LARGEST_GUESS = 20.0
"""A first loss above this is that of no guess. Chosen: far above ln of any vocabulary."""
_OF_ANSWERS = (Quantity.ACCURACY, Quantity.HIT_RATE, Quantity.RECALL)
"""Shares of right answers, or of those among the first k."""
_MAY_BE_EQUAL = frozenset({*_OF_ANSWERS, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.PRECISION})
"""Scores that are equal where they are means over all answers."""
_AMONG_FIRST = regex(
    r"(?:@|_at_|top[_-]?|hits?[_-]|hr[_-]|hit_rate[_-]|acc(?:uracy)?(?=5(?!\d)))(\d{1,4})(?!\d)", re.IGNORECASE
)
"""What names a score of the first k: `recall_0` is that of a class, and `acc2` of another head."""
_OF_RANKINGS_AND_ERRORS = (Quantity.AUC, Quantity.MRR, Quantity.ROOT_SQUARED_ERROR, Quantity.ABSOLUTE_ERROR)


@given_losses(not_of=NOT_BY_LOSS)
def perfect_at_once(run: Run, losses: Losses) -> Facts:
    """Yield that every answer is right from the first evaluation on, though the loss shows that much is yet to learn.

    Not this where the first k are most of as many candidates as the first loss tells, or a recall is of one class.
    """
    start, evaluation = losses[0].value[0], losses[1]
    first, last = evaluation.value[0], last_level(evaluation)
    if not first > HALVED * start > 0 or last > (1 - MIN_LEARNING_FALL_SHARE) * first:
        return
    for score in columns_of(run, *_OF_ANSWERS, phase="eval", least=MIN_EVALUATIONS):
        is_of_all = score.role is not None and score.role.is_whole and score.quantity is not Quantity.RECALL
        ranked = _AMONG_FIRST.search(named(score))
        is_few = ranked is not None and int(ranked[1]) < MOST_RANKED * math.exp(min(start, LARGEST_GUESS))
        is_asked = is_few or (is_of_all and ranked is None)
        if is_asked and (as_shares(score.value) == 1).all() and score.step[0] <= evaluation.step[0]:
            yield derived_fact(
                "perfect_at_once",
                f"{named(score)} is {figure(score.value[0])} at all {len(score)} evaluations, from "
                f"{run.place(score.step[0])} on, where {named(evaluation)} is {figure(first)}; it falls to "
                f"{figure(last)}. What is yet to be learnt is wrong at times.",
                {"score": score.value[0], "first": first, "last": last},
                at=score.step[0],
            )


def scores_equal(run: Run) -> Facts:
    """Yield two scores of different things that have the same value at each evaluation."""
    scores = columns_of(run, *_MAY_BE_EQUAL, *_OF_RANKINGS_AND_ERRORS, phase="eval", least=MIN_EVALUATIONS)
    for one, other in combinations(scores, 2):
        are_same = np.array_equal(one.step, other.step) and np.array_equal(one.value, other.value)
        if are_same and len(distinct(one.value)) >= LEAST_PAIRS and _differ(one, other):
            yield derived_fact(
                "scores_equal",
                f"{named(one)} and {named(other)} are equal at all {len(one)} evaluations, from "
                f"{figure(one.value[0])} to {figure(one.value[-1])}. They are of different things: one is computed or "
                "logged as the other.",
                {"first": one.value[0], "last": one.value[-1]},
            )


def _differ(one: Series, other: Series) -> bool:
    """Say whether two scores are of different things, such as those among the first 1 and 10, that never are equal."""
    if one.quantity is other.quantity:
        first, second = (_AMONG_FIRST.search(named(each)) for each in (one, other))
        return first is not None and second is not None and first[1] != second[1]
    return not {one.quantity, other.quantity} <= _MAY_BE_EQUAL


# Scores of the same answers that stand in an order, whatever the answers are.


_GROWS_WITH_RANK = (Quantity.ACCURACY, Quantity.RECALL, Quantity.HIT_RATE, Quantity.SUCCESS_RATE)
"""Shares of right answers among the first k of a ranking, or of k samples."""
_AT_MOST = (
    (Quantity.ABSOLUTE_ERROR, Quantity.ROOT_SQUARED_ERROR, "The root of a mean square is never below the mean"),
    (Quantity.NDCG, Quantity.HIT_RATE, "A hit counts in full, and at most so by its rank"),
    (Quantity.MRR, Quantity.HIT_RATE, "A hit counts in full, and at most so by its rank"),
)
"""Quantities of the same rows, the first of them never above the second, with the reason."""
OUT_OF_ORDER = 0.01
"""Share of the larger by which scores are out of order. Chosen: rounding takes less."""


def scores_out_of_order(run: Run) -> Facts:
    """Yield two scores of the same answers in an order that no answers have: fewer right among five than in one."""
    for low, high, why in _ordered(run):
        if len(low) < LEAST_PAIRS or not np.array_equal(low.step, high.step):
            continue
        lows, highs = low.value[-LEAST_PAIRS:], high.value[-LEAST_PAIRS:]
        if highs.min() >= 0 and (highs < (1 - OUT_OF_ORDER) * lows).all():
            yield derived_fact(
                "scores_out_of_order",
                f"{named(high)} is {figure(high.value[-1])} at the end, and {named(low)} "
                f"{figure(low.value[-1])}. {why}: one of them is computed or logged as something else.",
                {"low": low.value[-1], "high": high.value[-1]},
            )


def _ordered(run: Run) -> Iterator[tuple[Series, Series, str]]:
    """Yield pairs of columns, the first of them never above the second, with the reason."""
    ranked: dict[tuple[Quantity, str, str], dict[int, Series]] = {}
    for series in columns_of(run, *_GROWS_WITH_RANK, Quantity.ERROR_RATE):
        if (role := series.role) is not None:
            rank = _AMONG_FIRST.search(named(series))
            is_first = role.is_whole and role.quantity in (Quantity.ACCURACY, Quantity.ERROR_RATE)
            count = int(rank[1]) if rank else int(is_first)
            rest = " ".join(word for word in role.part.split() if word != str(count))
            ranked.setdefault((role.quantity, role.phase, rest), {})[count] = series
    for (quantity, *_), by_rank in ranked.items():
        for few, many in combinations(sorted(by_rank.keys() - {0}), 2):
            low, high = (many, few) if quantity is Quantity.ERROR_RATE else (few, many)
            yield by_rank[low], by_rank[high], f"What is right among the first {few} is right among the first {many}"
    for low_quantity, high_quantity, why in _AT_MOST:
        pairs = product(columns_of(run, low_quantity), columns_of(run, high_quantity))
        yield from ((one, other, why) for one, other in pairs if _same_rows(one, other))


def _same_rows(one: Series, other: Series) -> bool:
    """Say whether two scores are of the same rows, and of as many of a ranking, by their names.

    A score of a ranking without its number may be of all ranks, next to a hit rate among the first alone.
    """
    is_counted = one.quantity is Quantity.ABSOLUTE_ERROR or _AMONG_FIRST.search(named(one)) is not None
    sides = [(each.role.phase, each.role.part) for each in (one, other) if each.role]
    return is_counted and sides[0] == sides[1]


# Shares of targets below a prediction, next to the quantile that it is of.


_COVERS = regex(
    r"cover|(?:share|frac(?:tion)?|ratio|pct|rate)_(?:of_)?(?:targets?_)?(?:below|under)|"
    r"(?:below|under)_(?:share|frac(?:tion)?|ratio|pct|rate)",
    re.IGNORECASE,
    needs=("cover", "below", "under"),
)
"""What the name of a share of targets below a prediction holds."""
_OF_QUANTILE = regex(
    r"(?<![a-z])(?:p|q|quantile|pct|percentile)[_@]?(?:0?\.(?P<share>\d{1,3})|0_(?P<spelt>\d{1,3})|(?P<percent>\d{2}))"
    r"(?![\d.])",
    re.IGNORECASE,
)
_QUANTILE = regex(
    r"(?:target_)?quantile(?:_level)?|(?:pinball|quantile)_(?:tau|alpha|q)", needs=("quantile", "pinball")
)
"""Settings that give the quantile of a loss."""
EXTREME_QUANTILE = 0.2
"""How far from the median a quantile is that has another side. Chosen."""


def quantiles_mirrored(run: Run) -> Facts:
    """Yield shares of targets below a prediction that are those of the quantile on the other side of the median."""
    set_to = [
        float(setting.value)
        for setting in run.settings.values()
        if _QUANTILE.fullmatch(setting.last_part) and isinstance(setting.value, int | float)
    ]
    parts = []
    for series in (each.finite for name, each in run.series.items() if each is run[name]):
        name = named(series)
        if not _COVERS.search(name) or len(series) < LEAST_PAIRS:
            continue
        late = tail(series) - 0.5
        of_name = [match["share"] or match["spelt"] or match["percent"] for match in _OF_QUANTILE.finditer(name)]
        asked = next(iter([*(float(f"0.{digits}") for digits in of_name[-1:]), *set_to]), 0.5)
        off = asked - 0.5
        is_mirrored = (late * math.copysign(1.0, off)).max() <= -abs(off) / 2 and np.abs(late).max() <= 0.5
        if EXTREME_QUANTILE <= abs(off) < 0.5 and is_mirrored:
            parts.append(f"{name} ends at about {figure(median(late) + 0.5)}, and {figure(asked)} is asked")
    if parts:
        yield derived_fact(
            "quantiles_mirrored",
            f"{'; '.join(parts[:LEAST_PAIRS])}. A quantile loss brings the share of targets below the prediction "
            "to the quantile; this is the other side of the median, as where its residual has the wrong sign.",
        )


# Texts that the model writes itself, next to the tokens that it knows where the right ones before are given.


NO_TEXT_RIGHT = 0.01
"""Score of written texts up to which none is right, whether it is a share or in per cent. Chosen."""
MOST_WRONG = 0.5
"""Share of words or characters of a text that is mostly wrong. Chosen: one wrong token in ten takes few along."""
KNOWN_LOSS = 0.1
"""Cross-entropy of a token from which on a third and more of all answers of ten tokens is right. Chosen: by hand."""
_EXACT = frozenset({"exact", "em", "seq", "sequence", "sentence", "whole"})
"""Words of a score of answers that are right in all tokens."""
_OF_TEXTS = (Quantity.BLEU, Quantity.CHRF, Quantity.ROUGE, Quantity.METEOR)


def known_but_not_written(run: Run) -> Facts:
    """Yield that the texts that the model writes are wrong, though it knows nearly each next token that it is given."""
    scores = columns_of(run, *_OF_TEXTS, Quantity.WORD_ERROR_RATE, phase="eval", least=LEAST_PAIRS)
    perplexity, bound = next_token_known(run), KNOWN_PERPLEXITY
    if perplexity is None:
        perplexity, bound = logged(run, "eval_loss"), KNOWN_LOSS
        exact = columns_of(run, Quantity.ACCURACY, least=LEAST_PAIRS)
        scores = [score for score in exact if not _EXACT.isdisjoint(pieces_of(named(score)))]
    known = 0 if perplexity is None else true_at_end(perplexity.value <= bound)
    for score in scores if known and run.kind not in NOT_BY_LOSS else ():
        if perplexity is None:
            return
        later = score.where(score.step >= perplexity.step[-known])
        is_error = score.quantity is Quantity.WORD_ERROR_RATE
        is_wrong = as_shares(score.value).min() >= MOST_WRONG if is_error else score.value.max() <= NO_TEXT_RIGHT
        if len(later) >= LEAST_PAIRS and is_wrong:
            yield derived_fact(
                "known_but_not_written" if bound == KNOWN_PERPLEXITY else "known_but_never_exact",
                f"{named(score)} is {from_to(score.value)} at all {len(score)} evaluations, while {named(perplexity)} "
                f"ends at {figure(perplexity.value[-1])}. With the right tokens before it, the model knows the "
                f"next one; on its own it writes {'little' if is_error else 'nothing'} right. Either it sees the token "
                "that it is to predict, or the texts are written or scored in a wrong way.",
                {"score": score.value.max(), "perplexity": perplexity.value[-1]},
                at=later.step[0],
            )


_REFERENCE = regex(
    r"\W{0,8}(?:ref(?:erence)?|target|tgt|gold|truth|expected|want(?:ed)?|label)s?\s?[:=>]+\s{0,8}(?P<text>\S.*)",
    re.IGNORECASE,
)
_HYPOTHESIS = regex(
    r"\W{0,8}(?:hyp(?:othesis)?|pred(?:icted|iction)?|out(?:put)?|got|gen(?:erated)?|decoded|greedy|model)s?"
    r"\s?[:=>]+\s{0,8}(?P<text>\S.*)",
    re.IGNORECASE,
)
"""A line of a right answer, and one of what the model writes in its place."""
LEAST_TOKENS = 4
"""Tokens of a right answer whose second one tells something. Chosen: by hand."""


def answers_begin_later(run: Run) -> Facts:
    """Yield that the last answers which the log prints begin with the second token of the right ones, not the first."""
    refs = [match["text"] for line in run.text_lines if (match := _REFERENCE.match(line.text))]
    hyps = [(line.step, match["text"]) for line in run.text_lines if (match := _HYPOTHESIS.match(line.text))]
    last = [text for step, text in hyps if step == hyps[-1][0]]
    if not refs or len(last) != len(refs):  # lines that come again are kept once
        return
    pairs = [(_tokens_of(ref), _tokens_of(hyp)) for ref, hyp in zip(refs, last, strict=True)]
    pairs = [(ref, hyp) for ref, hyp in pairs if len(ref) >= LEAST_TOKENS and hyp and ref[0] != ref[1]]
    later = [(ref, hyp) for ref, hyp in pairs if hyp[0] == ref[1] and hyp[: len(ref)] != ref]
    if not later or len(later) < len(pairs):
        return
    step, (ref, hyp) = hyps[-1][0], (" ".join(tokens[:SHOWN_TOKENS]) for tokens in later[0])
    yield derived_fact(
        "answers_begin_later",
        f"at {run.place(step)} the model writes {shorten(hyp, 60)!r} where {shorten(ref, 60)!r} is "
        f"right. In {len(later)} of {len(pairs)} such samples its first token is the second one of the right. "
        "A model that learns the token after the next one writes so.",
        {"samples": len(later)},
        at=step,
    )


SHOWN_TOKENS = 8
"""Tokens of an answer that are shown. Chosen: what a line has room for."""


def _tokens_of(text: str) -> list[str]:
    words = text.strip("'\"").split()
    return words if len(words) >= LEAST_TOKENS else list("".join(words))


# A cross-entropy that the accuracy of the same answers contradicts.


OF_LEAST = 0.5
"""Share of the least cross-entropy below which a loss lies. Chosen: of 650 healthy runs none does."""
MIN_WRONG = 0.05
"""Share of wrong answers. Chosen, as the others."""
SHARE_OF_RECORDS_BELOW = 0.8
"""Share of the later records that lie below. Chosen, as the others."""
_OF_WHOLES = regex(r"exact|subset|seq(?:uence)?_|sentence|joint|all_", re.IGNORECASE)
"""What a score of several answers at once is called: its loss is a mean over single ones."""


def _named_pairs(run: Run) -> Iterator[tuple[Series, Series]]:
    """Yield losses with the accuracy of the same rows: its name says that it is of training, or evaluation has one."""
    is_evaluated = any(columns_of(run, Quantity.ACCURACY, Quantity.LOSS, phase="eval", least=LEAST_PAIRS))
    for loss, score in PAIRS:
        if loss not in run or score not in run or _OF_WHOLES.search(named(run[score])):
            continue
        if score != "accuracy" or is_evaluated or _OF_TRAINING.search(named(run[score])):
            yield run[loss], run[score]


def _pairs_of_sets(run: Run) -> Iterator[tuple[Series, Series]]:
    """Yield losses with the score that is called by the same set alone, where no such score moves in the end.

    A score that moves may be of a ranking, and one that has fallen an error.
    """
    scores = [score for score in set_scores(run) if len(score) >= MIN_RECORDS_FOR_LEVEL]
    if len(scores) < 2 or any(np.ptp(tail(score)) or score.value[-1] < score.value[0] for score in scores):
        return
    for loss in columns_of(run, Quantity.LOSS, phase="eval"):
        for score in scores:
            if {*pieces_of(named(score)), "loss"} == set(pieces_of(named(loss))):
                yield loss, score


def below_accuracy(run: Run) -> Facts:
    """Yield a cross-entropy below what so many wrong answers cost at least: -ln(1/2) each."""
    for of_loss, score in (*_named_pairs(run), *_pairs_of_sets(run)) if run.kind not in NOT_BY_LOSS else ():
        steps, accuracy, loss = aligned(score.finite, of_loss.finite)
        later = slice(len(steps) // 2, None)
        right, level = as_shares(accuracy)[later], loss[later]
        wrong = 1 - median(right)
        if len(steps) < LEAST_PAIRS + 1 or median(level) <= 0 or wrong < MIN_WRONG:
            continue
        if np.mean(level < OF_LEAST * (1 - right) * math.log(2)) < SHARE_OF_RECORDS_BELOW:
            continue
        least = wrong * math.log(2)
        yield derived_fact(
            "loss_contradicts_accuracy",
            f"{named(of_loss)} is about {figure(median(level))} and {named(score)} about "
            f"{figure(median(right))} in the later half of {len(steps)} records. Where "
            "an answer is wrong, the right class has a probability of 1/2 at most, which costs -ln(1/2) = 0.6931. "
            f"So a mean over the same answers is at least {figure(wrong)} x 0.6931 = {figure(least)}.",
            {"loss": median(level), "accuracy": median(right), "least": least},
            at=steps[0],
        )


MIN_ACCURACY_LEAD = 0.3
"""Share of right answers that training is ahead of evaluation. Chosen: by hand."""
MIN_LOSS_EXCESS = 1.1
"""Times the evaluation loss that the training loss is. Chosen: batches and rounding make less."""


def losses_and_accuracies_disagree(run: Run) -> Facts:
    """Yield that training answers far more than evaluation all the way, and its loss is higher all the way.

    Not this where labels are mixed or smoothed, which keeps up the training loss alone.
    """
    needed = [name for pair in PAIRS for name in pair]
    if run.kind in NOT_BY_LOSS or mixes_labels(run) or not all(name in run for name in needed):
        return
    evaluation, *others = (run[name].finite for name in needed)
    answered, loss, trained = (aligned(series, evaluation)[1] for series in others)
    if len(evaluation) < MIN_RECORDS_FOR_LEVEL or not len(answered) == len(loss) == len(trained) > 0:
        return
    ahead, excess = as_shares(trained) - as_shares(answered), loss / evaluation.value[-len(loss) :]
    if ahead.min() < MIN_ACCURACY_LEAD or excess.min() < MIN_LOSS_EXCESS:
        return
    yield derived_fact(
        "losses_and_accuracies_disagree",
        f"{named(run['accuracy'])} is {from_to(trained)} and {named(run['eval_accuracy'])} {from_to(answered)}, while "
        f"{named(run['loss'])} is {from_to(loss)} and {named(evaluation)} {from_to(evaluation.value)}. More right "
        "answers make a lower loss, so one of these means is wrong. Weights that stand still answer both sets alike.",
        {"ahead": ahead.min(), "excess": excess.min()},
        at=evaluation.step[0],
    )


AS_MUCH = 0.15
"""Difference of a mean probability of the right class and the share of right answers. Chosen: calibration has less."""
MIN_MIRRORED_CORRELATION = 0.8
"""Correlation of the two. Chosen: by hand."""


def negated_probability(run: Run) -> Facts:
    """Yield a loss between -1 and 0 that follows the share of right answers, negated: a probability without logarithm.

    Not this where an overlap of masks is measured, whose negation is a loss.
    """
    is_asked = run.kind not in NOT_BY_LOSS and not any(OVERLAP.search(name) for name in run.series)
    for of_loss, score in ((run.series.get(loss), run.series.get(score)) for loss, score in PAIRS if is_asked):
        if of_loss is None or score is None or _OF_A_PROBE.search(named(score)):
            continue
        steps, accuracy, loss = aligned(score.finite, of_loss.finite)
        right, later = as_shares(accuracy), slice(len(steps) // 2, None)
        if len(steps) < MIN_RECORDS_FOR_LEVEL or loss.max() >= 0 or loss.min() < -1:
            continue
        off = np.abs(loss[later] + right[later]).max()
        if off > AS_MUCH or not np.corrcoef(loss, right)[0, 1] <= -MIN_MIRRORED_CORRELATION:
            continue
        yield derived_fact(
            "negated_probability",
            f"{named(of_loss)} is {from_to(loss)}, never above 0, and -1 x {named(of_loss)} stays within "
            f"{figure(off)} of {named(score)} in the later half of {len(steps)} records. A cross-entropy is the "
            "mean of -ln p and above 0; the mean of -p is between -1 and 0, and follows what is right: the "
            "logarithm is missing.",
            {"loss": median(loss[later]), "accuracy": median(right[later])},
            at=steps[0],
        )


# A loss that rises on the rows that are trained on, while it orders them better.


ORDERS_BETTER = 0.01
"""Rise of an area under the ROC curve of training rows. Chosen: by hand."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def loss_rises_with_order(run: Run, loss: Series) -> Facts:
    """Yield a training loss that rises while the area under the ROC curve of the same rows does too.

    What is minimised orders the rows ever better; the loss that is printed is computed of something else, such as the
    raw scores of an objective of one's own in boosting.
    """
    for area in columns_of(run, Quantity.AUC, phase="train", least=MIN_RECORDS_FOR_LEVEL):
        steps, order, level = aligned(area, loss)
        few = max(1, len(steps) // 5)
        (start, end), (low, high) = ((median(column[:few]), median(column[-few:])) for column in (level, order))
        if is_auc(area) and 0 < MIN_RISEN_LOSS_RATIO * start <= end and high >= low + ORDERS_BETTER:
            yield derived_fact(
                "loss_rises_with_order",
                f"{named(loss)} rises from about {figure(start)} to {figure(end)}, while {named(area)} of the training "
                f"rows rises from {figure(low)} to {figure(high)}. Training orders them better. So it minimises "
                "another loss than the one that is printed, which may be computed of raw scores.",
                {"start": start, "end": end, "order": high},
                at=steps[0],
            )


# Training that does worse than evaluation at the same: accuracies on one scale.


MIN_LEAD_OVER_TRAINING = 0.2
"""By how much a share of right answers is above that of training. Chosen: dropout and augmentation cost less."""
DISTURBED_AHEAD = 0.1
"""The same difference where settings make training harder, whatever share is right. Chosen: chance is less."""
_OF_A_PROBE = regex(r"k_?nn|nearest|linear|probe|retriev", re.IGNORECASE)
"""Scores of another classifier on a model's features: what the model is trained on may be far harder."""


def training_behind(run: Run) -> Facts:
    """Yield that evaluation answers nearly all while training answers far fewer at the same time.

    Where settings make training harder, evaluation need not answer nearly all. Not this where training counts the
    tokens of prompts as well, or answers are counted against labels of two rows.
    """
    fact, expected = _asked_alike(run)
    is_disturbed = fact == "disturbed_training_behind"
    least, lead = (0.0, DISTURBED_AHEAD) if is_disturbed else (MIN_GOOD_SCORE, MIN_LEAD_OVER_TRAINING)
    for quantity in (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY) if not mixes_labels(run) else ():
        train, evaluation = (
            next((each for each in columns_of(run, quantity, phase=phase) if not _OF_A_PROBE.search(named(each))), None)
            for phase in ("train", "eval")
        )
        if train is None or len(train) < MIN_RECORDS_FOR_LEVEL or evaluation is None or len(evaluation) < LEAST_PAIRS:
            continue
        low, high = last_level(train), last_level(evaluation)
        if high - low >= lead and least <= high <= 1 and prompts_counted(run) is None:
            yield derived_fact(
                fact,
                f"{named(evaluation)} is {figure(high)} and {named(train)} {figure(low)} (medians of the last "
                f"third). {expected}.",
                {"train": low, "eval": high},
            )


def _asked_alike(run: Run) -> tuple[str, str]:
    """Return a fact by what settings say of dropout and augmentation, and what is expected with these."""
    makes_harder, expected = harder_in_training(run), "The same model answers training rows at least as well where both"
    if makes_harder:
        names = " and ".join(makes_harder[:2])
        return "disturbed_training_behind", f"By the settings training has {names}, which evaluation goes without"
    if makes_harder is None:
        return "training_behind", f"{expected} are asked and scored alike"
    alike = "are asked and scored alike, and there is neither dropout nor augmentation"
    return "undisturbed_training_behind", f"{expected} {alike}"


# Rows of training that are evaluated as well: they tell what was learnt by heart from what evaluation does otherwise.


_OF_TRAINING = regex(r"train", re.IGNORECASE)
_TRAINING_ROWS = regex(
    r"train(?:ing)?(?:[_/-]?(?:(?:sub_?)?set|split|data|examples|rows|seen|probe)|[_-]eval)",
    re.IGNORECASE,
    needs="train",
)
"""What an evaluation of training rows is called."""
AS_NEAR = 0.25
"""Share of the way from training to evaluation within which a level counts as one of the two. Chosen."""
LEAST_GAP = 0.15
"""Gap of training and evaluation, as a share of the larger, from which on it is worth telling what makes it. Chosen."""


def training_rows_evaluated(run: Run) -> Facts:
    """Yield how rows of training do in evaluation: as in training, or no better than rows that were held out.

    All three are of one part, such as the cross-entropy in a sum of losses. Not this where they do as in training and
    dropout makes that harder: evaluation without it does better on them.
    """
    for quantity in (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.LOSS):
        again = next(filter(_is_of_training_rows, columns_of(run, quantity, least=LEAST_PAIRS)), None)
        held_out, train = (
            [each for each in columns_of(run, quantity, phase=of, least=LEAST_PAIRS) if not _is_of_training_rows(each)]
            for of in ("eval", "train")
        )
        held_out = [series for series in held_out if again and _parts(series) <= _parts(again)]
        train = [series for series in train if held_out and _parts(held_out[0]) <= _parts(series)]
        if again is None or not train:
            continue
        learnt = min(train, key=lambda series: len(_parts(series)))
        low, middle, high = map(last_level, (learnt, again, held_out[0]))
        gap = high - low if quantity is Quantity.LOSS else low - high
        way = (middle - low) / (high - low) if gap >= LEAST_GAP * max(abs(high), abs(low)) else 0.5
        if AS_NEAR < way < 1 - AS_NEAR or (abs(way) <= AS_NEAR and harder_in_training(run)):
            continue
        fact, expected = "gap_between_rows", "They do as well as in training, so the gap is one between rows."
        if way >= 1 - AS_NEAR:
            fact = "evaluation_differs"
            expected = "They do no better than rows held out, so evaluation treats rows otherwise than training."
        yield derived_fact(
            fact,
            f"{named(learnt)} is {figure(low)}, {named(again)} {figure(middle)} and {named(held_out[0])} "
            f"{figure(high)} (medians of the last third). The second is of rows that training has seen. {expected}",
            {"train": low, "train_rows": middle, "eval": high},
        )


def _is_of_training_rows(series: Series) -> bool:
    """Say whether an evaluation is of rows that training sees, by its name."""
    role = series.role
    is_part = role is not None and role.is_evaluation and _OF_TRAINING.search(role.part) is not None
    return is_part or _TRAINING_ROWS.search(named(series)) is not None


def _parts(series: Series) -> frozenset[str]:
    return frozenset(series.role.part.split()) if series.role else frozenset()


# An evaluation that is made twice of the same weights.


_AGAIN = regex(
    r"(?:re_?(?:run|eval(?:uated)?|scored?|check(?:ed)?|test(?:ed)?)|again|repeat(?:ed)?|twice|"
    r"(?:second|2nd)(?:_(?:pass|run))?|(?:pass|run|take|round)_?2|same[_ ](?:rows|data|samples|examples|set))",
    re.IGNORECASE,
    needs=("re", "again", "twice", "second", "2nd", "pass", "run", "take", "round", "same"),
)
"""What the name of an evaluation holds that was made again."""
_OF_OTHER_WEIGHTS = regex(
    r"ema|swa|avg|average|train|quant|int\d|fp\d|bf16|before|after|old|base|ref|teacher|best|prev|last|aug|nois|shuffl",
    re.IGNORECASE,
)
"""What the name of a second measure of the same rows holds where other weights, or changed rows, explain it."""
_NUMBERED = regex(r"_?[12](?=$|[_/.])")
"""What it ends with where a setting repeats evaluations: without such a setting a number may be that of another set."""
_REPEATED = regex(
    r"(?:eval|val|valid|validation|test)(?:uation)?_(?:repeats?|repetitions|passes|reruns|runs|rounds|times)"
    r"|(?:n|num|repeat)_(?:eval|val|valid|validation)s?(?:_(?:repeats|passes|runs|rounds))?",
    re.IGNORECASE,
    needs=("eval", "val", "test"),
)
"""A setting that gives how many times the same rows are evaluated."""
_DRAW_SAMPLES = (*POLICIES, "diffusion")
"""Kinds of runs whose evaluations draw samples or noise, so that they differ each time."""
_TURN = regex(
    r"_again\d{1,2}$|^(?:[\w .:-]{1,40}[ _])?(?:pass|repeat|repetition|again|turn)[ _]?#?\d{1,2}"
    r"(?: ?(?:of|/) ?\d{1,2})?/"
)
"""What the name of an evaluation holds that is one of several of the same weights, at its end or as its label."""


def evaluated_twice(run: Run) -> Facts:
    """Yield that an evaluation which is made again of the same weights gives other values each time."""
    times = [each.value for each in run.settings.values() if _REPEATED.fullmatch(each.last_part)]
    is_repeated = any(isinstance(value, int | float) and value > 1 for value in times)
    found = [pair for name in run.series if (pair := _made_twice(run, name, is_repeated=is_repeated)) is not None]
    if found:
        off, name, again, (steps, first, second) = max(found, key=lambda pair: pair[0])
        yield derived_fact(
            "evaluated_twice",
            f"{named(run[again])} is {figure(100 * off)} % off {named(run[name])} (median of {len(steps)} "
            f"evaluations), {figure(second[-1])} and {figure(first[-1])} at the end. The same weights give equal "
            "values on the same rows, unless dropout or statistics of batches are still on.",
            {"off": off, "first": first[-1], "second": second[-1]},
        )
    yield from _evaluated_in_turn(run)
    yield from scored_again(run)


def _evaluated_in_turn(run: Run) -> Facts:
    """Yield the values that several evaluations of the last weights give, where they differ.

    Not this where an evaluation draws samples.
    """
    evaluations = columns_of(run, Quantity.LOSS, *_SCORES, phase="eval") if run.kind not in _DRAW_SAMPLES else []
    turns = by_key(
        ((_TURN.sub("", series.name), series.step[0]), series.value[0])
        for series in sorted(evaluations, key=lambda series: series.name)
        if _TURN.search(series.name) is not None and len(series) == 1
    )
    off = {
        place: np.ptp(values) / max(values) for place, values in turns.items() if len(values) > 1 and min(values) > 0
    }
    place = max(off, key=lambda each: off[each], default=None)
    if place is not None and off[place] >= MIN_OFF_AGAIN:
        yield derived_fact(
            "evaluated_twice",
            f"{place[0]} is {', '.join(map(figure, turns[place]))} in {len(turns[place])} evaluations of the same "
            "weights. They give equal values on the same rows, unless dropout or statistics of batches are still on.",
            {"off": off[place], "times": len(turns[place])},
        )


def _made_twice(
    run: Run, again: str, *, is_repeated: bool
) -> tuple[float, str, str, tuple[Floats, Floats, Floats]] | None:
    """Return how far an evaluation that was made again is off the first, if it is, with both names and their values."""
    word, role = _AGAIN.search(again), run[again].role
    if word is None and role is not None and role.is_evaluation and is_repeated:
        word = _NUMBERED.search(again)
    if word is None:
        return None
    before, after = again[: word.start()], again[word.end() :]
    names = [f"{before}{word[0].replace('2', '1')}{after}", f"{before.rstrip('_/')}{after}", pieces_of(again)[-1]]
    known = [each for name in names for each in (name, canonical(name), canonical(f"eval_{name}"))]
    if word[0].lower().startswith("same") and _OF_OTHER_WEIGHTS.search(again) is None:
        known += [series.name for series in columns_of(run, Quantity.LOSS, phase="eval", least=LEAST_PAIRS)]
    once = next((name for name in known if name != again and name in run), None)
    if once is None:
        return None
    steps, first, second = at_common_steps(run[once].finite, run[again].finite)
    if len(steps) and float(np.max(first)) <= 1 < float(np.min(second)) and float(np.max(second)) <= 100:
        second = second / 100  # the unit of a name that is not known stays
    off = median(np.abs(first - second) / np.maximum(np.abs(first), 1e-12)) if len(steps) >= LEAST_PAIRS else 0.0
    return (off, once, again, (steps, first, second)) if off >= MIN_OFF_AGAIN else None


# What the inputs of training and of evaluation are like, by statistics that no update moves.


_OF_INPUTS = frozenset({
    "input", "inputs", "batch", "pixel", "pixels", "pix", "px", "image", "images", "img", "features", "data", "x", "in",
    "feat", "feats", "wave", "waveform", "audio", "signal", "frame", "frames",
})  # fmt: skip
"""Words for what goes into a model."""
_SPREADS = frozenset({"std", "var", "max", "norm", "rms", "absmax", "amax", "maxabs"})
"""Words for statistics that tell a scale."""
_SIZES = frozenset({"len", "length", "lengths", "size", "tokens", "rows", "time"})
"""Words for what is larger in evaluation with no harm."""
_EMPTY = frozenset({"zero", "zeros", "nan", "nans", "missing", "blank", "black", "silence"})
_SHARE = frozenset({"frac", "fraction", "share", "ratio", "rate"})
"""Words for a share of the inputs that holds nothing. Dropout and masks make more of it in training."""
OFF_A_CONSTANT = 0.1
"""By how much evaluation is off a statistic that is one number in training. Chosen: rounding hides less."""
FAR_OFF = 3.0
"""Times the whole range of a statistic over training batches, by which evaluation is off. Chosen: other rows of one
source lie within it, and augmentation moves it by less."""
OTHER_SCALE = 1.5
"""Times by which a scale differs. Chosen: augmentation changes it by less."""
FAR_OTHER_SCALE = 2.5
"""... where its range over training batches is wide. Chosen: by hand."""


def inputs_differ(run: Run) -> Facts:
    """Yield that a statistic of the inputs is far off in evaluation from what it is in all batches of training."""
    unread: dict[tuple[str, ...], dict[bool, Series]] = {}
    for name, series in run.series.items():
        pieces = pieces_of(name)
        key = tuple(piece for piece in pieces if piece not in PHASES)
        is_statistic = not _OF_INPUTS.isdisjoint(key) and not (STATISTICS.keys() | _SPREADS).isdisjoint(key)
        is_empty = _is_empty_share(key) and run.kind not in NOT_BY_LOSS
        if series.role is None and (is_statistic or is_empty) and _SIZES.isdisjoint(key):
            unread.setdefault(key, {})[any(PHASES.get(piece) == "eval" for piece in pieces)] = series.finite
    at_evaluations = run["eval_loss"].finite.step if "eval_loss" in run else np.zeros(0)
    parts = []
    for key, sides in unread.items():
        train, evaluated = sides.get(False), sides.get(True)
        if train is not None and evaluated is None:  # one name in records of both
            of_evaluation = np.isin(train.step, at_evaluations)
            train, evaluated = train.where(~of_evaluation), train.where(of_evaluation)
        if train is None or len(train) < MIN_RECORDS_FOR_LEVEL or evaluated is None or len(evaluated) < LEAST_PAIRS:
            continue
        level, other, spread = median(train.value), median(evaluated.value), np.ptp(train.value)
        low, high = sorted((abs(level), abs(other)))
        off, is_spread = np.abs(evaluated.value - level).min(), not _SPREADS.isdisjoint(key)
        is_far = off > FAR_OFF * spread if spread else off >= OFF_A_CONSTANT
        is_far |= is_spread and high >= FAR_OTHER_SCALE * low and off > spread > 0
        is_odd = other > level if _is_empty_share(key) else not is_spread or high >= OTHER_SCALE * low
        if is_far and is_odd:
            parts.append(
                f"{named(train)} is {from_to(train.value)} in training, and {named(evaluated)} {figure(other)} in "
                "evaluation"
            )
    if parts:
        yield derived_fact(
            "inputs_differ",
            f"{'; '.join(parts)}. The inputs of evaluation are prepared in another way, or of another source.",
        )
    yield from inputs_measured_apart(run)


def _is_empty_share(key: Sequence[str]) -> bool:
    """Say whether a name is that of the share of the inputs that holds nothing."""
    return not (_EMPTY.isdisjoint(key) or _SHARE.isdisjoint(key)) and set(key) <= _EMPTY | _SHARE | _OF_INPUTS


# What passes over the data do not allow: evaluation as low as rows known by heart, or training ahead on new ones.


MANY_PASSES = 10.0
"""Passes over the data after which rows are known by heart. Chosen."""
AS_LOW = 1.15
"""Evaluation over training that is as low. Chosen."""
KNOWN_BY_HEART = 0.05
"""Share of its start that training has come down to. Chosen."""
ONE_PASS = 0.99
"""Passes by which no row came twice. Chosen."""
MAX_START_DIFFERENCE_SHARE = 0.15
"""Share of the evaluation loss by which training is off it while both are one. Chosen: fresh rows differ by noise."""
MAX_PARTED_LOSS_SHARE = 0.6
"""Share of the evaluation loss that training is of it once they part. Chosen."""


@given_losses(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def within_first_pass(run: Run, losses: Losses) -> Facts:
    """Yield that training parts from evaluation before a pass is over, as if it had seen its rows before."""
    steps, train, evaluated = beside_training(*losses)
    passes = passes_at(run, steps) if len(steps) else None
    if passes is None:
        return
    early = np.flatnonzero((evaluated > 0) & (passes <= ONE_PASS))
    apart = early[(train[early] >= 0) & (train[early] < MAX_PARTED_LOSS_SHARE * evaluated[early])]
    if len(apart) < 2 or abs(train[early[0]] / evaluated[early[0]] - 1) > MAX_START_DIFFERENCE_SHARE:
        return
    first, at = early[0], apart[int(np.argmin(train[apart] / evaluated[apart]))]
    yield derived_fact(
        "apart_within_first_pass",
        f"at {run.place(steps[at])}, after {figure(passes[at])} passes over the data, {named(losses[0])} is about "
        f"{figure(train[at])} and {named(losses[1])} {figure(evaluated[at])}; at {run.place(steps[first])} they were "
        f"{figure(train[first])} and {figure(evaluated[first])}. Rows that are met for the first time are no easier "
        "than those of evaluation: rows come again, or resemble those just before.",
        {"train": train[at], "eval": evaluated[at], "passes": passes[at]},
        at=steps[at],
    )


_DISTINCT = frozenset({"distinct", "unique", "uniq"})
_OF_ROWS = frozenset(
    {"row", "rows", "sample", "samples", "example", "examples", "pair", "pairs", "sequence", "sequences"}
    | {"record", "records", "id", "ids", "index", "indices"}
)
_OF_COUNTS = frozenset({"n", "num", "number", "count", "seen", "so", "far", "total", "cumulative", "data", "train"})
"""Words of a count of distinct rows, and those that say nothing. Of one document or user there are many rows."""
OF_EXPECTED = 0.5
"""Share of the rows that are expected to be distinct, below which rows come several times. Chosen."""


def few_distinct_rows(run: Run) -> Facts:
    """Yield that far fewer rows are distinct than there are, or than were drawn of so many, even if by chance."""
    if run.kind in POLICIES:
        return
    rows, known = run.setting("train_rows") or 0.0, run.setting("distinct_rows") or 0.0
    if 1 < known < OF_EXPECTED * rows:
        yield derived_fact(
            "few_distinct_rows",
            f"by the log {figure(known)} of {figure(rows)} training rows are distinct: each of these comes "
            f"about {figure(rows / known)} times in a pass.",
            {"distinct": known, "rows": rows},
        )
    batch = run.facts.effective_batch or 0
    for count in called(run, _DISTINCT, _OF_ROWS, least=MIN_RECORDS_FOR_LEVEL, any_quantity=True):
        passes = passes_at(run, count.step[-1:])
        made = 0.0 if passes is None else float(passes[-1])
        if not made or not set(pieces_of(count.logged_as or count.name)) <= _DISTINCT | _OF_ROWS | _OF_COUNTS:
            continue
        of_rows = rows or (batch * count.step[-1] / made if run.step_name == "step" else 0.0)
        last, expected = count.value[-1], of_rows * (1 - math.exp(-made))
        if not max(1.0, batch) < last < OF_EXPECTED * expected or (np.diff(count.value) < 0).any():
            continue
        yield derived_fact(
            "few_distinct_rows",
            f"{named(count)} is {figure(last)} at {run.place(count.step[-1])}, after {figure(made)} "
            f"passes over {figure(of_rows)} rows. Rows that differ are {figure(expected)} and more by then: each of "
            f"these comes about {figure(of_rows / last)} times in a pass.",
            {"distinct": last, "rows": of_rows, "passes": made},
        )


_OF_FILES = frozenset(
    {"file", "files", "path", "paths", "data", "dataset", "set", "shard", "shards", "split", "dir", "list", "source"}
)
"""Words of settings that say where rows come from, next to the word for training or evaluation."""
_HELD_BACK = regex(
    r"(?:val|valid|validation|eval|test|held_?out|dev)[_-]?(?:frac|fraction|ratio|size|share|split)|fold"
)
"""A setting by which rows of one file are split."""
_FILE_NAME = r"[\w./-]*?"
_RANGE = regex(
    rf"(?P<stem>{_FILE_NAME})(?P<first>\d{{1,6}})(?P<end>\.\w{{1,8}})?\s?(?:\.\.\.?|to|-|…)\s?(?:(?P=stem))?"
    r"(?P<last>\d{1,6})(?![\d-])"
)
_FILE = regex(
    r"[\w./-]*(?:(?:shard|part|chunk|fold|file|split)[_-]?\d+|"
    r"\.(?:jsonl?|csv|tsv|parquet|arrow|bin|npy|npz|txt|tar|h5|tfrecords?|pt))(?![\w-])[\w.]*",
    re.IGNORECASE,
)
"""A name of a file or a part: sets of one name may be split by the program."""
MOST_FILES = 10_000
"""Files of a range. Chosen: more are a range of something else."""


def _files_of(value: object) -> frozenset[str]:
    """Return the names of files that a value holds, those of ranges each: `shard-00 .. shard-09`."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    found = set[str]()
    for match in _RANGE.finditer(text):
        first, last, width = int(match["first"]), int(match["last"]), len(match["first"])
        if match["stem"] and first < last < first + MOST_FILES:
            found |= {f"{match['stem']}{at:0{width}d}{match['end'] or ''}" for at in range(first, last + 1)}
    return frozenset(found | {name.strip(".") for name in _FILE.findall(_RANGE.sub(" ", text))})


@given_losses(not_of=POLICIES)
def files_shared(run: Run, losses: Losses) -> Facts:
    """Yield that training and evaluation read the same file, where evaluation is as low as training.

    Not this where a setting splits the rows of one file.
    """
    train, held_out = map(last_level, losses)
    if not 0 < held_out <= AS_LOW * train or any(_HELD_BACK.search(each.key) for each in run.settings.values()):
        return
    sides = dict[bool, list[Setting]]()
    for setting in run.settings.values():
        words = set(pieces_of(setting.key.rpartition("/")[2]))
        phases = {PHASES[word] for word in words if word in PHASES}
        if len(phases) == 1 and words - PHASES.keys() and words - PHASES.keys() <= _OF_FILES:
            sides.setdefault(phases == {"eval"}, []).append(setting)
    for ours, theirs in product(sides.get(False, ()), sides.get(True, ())):
        shared = sorted(_files_of(ours.value) & _files_of(theirs.value))
        if shared:
            yield derived_fact(
                "files_shared",
                f"{ours.key} is {shorten(str(ours.value), LONGEST_VALUE)} and {theirs.key} "
                f"{shorten(str(theirs.value), LONGEST_VALUE)}: both hold {shared[0]}. {named(losses[1])} ends at "
                f"{figure(held_out)} and {named(losses[0])} at {figure(train)}. Rows that are trained on say "
                "nothing of new ones.",
                {"files": len(shared), "train": train, "eval": held_out},
            )


LONGEST_VALUE = 80
"""Characters of a setting that a fact shows. Chosen: a line of a terminal."""
FEW_PASSES = 4.0
"""Passes over the data after which rows are hardly known by heart. Chosen: of 39 overfitted runs none knows them."""
STILL_UNKNOWN = 0.3
"""Share of the first training loss that evaluation keeps. Chosen: rows that repeat by plan serve others too."""
MIN_RISEN_LOSS_RATIO = 1.2
"""Times its lowest value, or its start, to which a loss has risen. Chosen: noise is less."""


@given_losses(LEAST_PAIRS, not_of=NOT_BY_LOSS)
def where_the_gap_opens(run: Run, losses: Losses) -> Facts:
    """Yield after how few passes rows are known by heart, or after how many evaluation turns, where it rises later."""
    steps, train, evaluated = beside_training(*losses)
    passes, start = passes_at(run, steps) if len(steps) else None, median(losses[0].value[:LEAST_PAIRS])
    if passes is None or not start > 0:
        return
    lowest, (loss, evaluation) = np.minimum.accumulate(evaluated), map(named, losses)
    risen, turn = evaluated > MIN_RISEN_LOSS_RATIO * lowest, int(np.argmin(evaluated))
    by_heart = (train >= 0) & (train < KNOWN_BY_HEART * start) & (passes <= FEW_PASSES)
    known = by_heart & risen & (evaluated >= STILL_UNKNOWN * start)
    if known.any():
        at = int(np.argmax(known))
        yield derived_fact(
            "by_heart_in_few_passes",
            f"at {run.place(steps[at])}, after {figure(passes[at])} passes over the data, {loss} is "
            f"{figure(train[at])}, {percent(float(train[at]) / start)} of its start, and {evaluation} has "
            f"risen from {figure(lowest[at])} to {figure(evaluated[at])}. Rows take more passes "
            "to be known by heart: they come several times in each.",
            {"passes": passes[at], "train": train[at], "eval": evaluated[at]},
            at=steps[at],
        )
    elif risen[-1] and train[-1] < train[turn] and passes[turn] >= MANY_PASSES:
        yield derived_fact(
            "turns_after_many_passes",
            f"{evaluation} is lowest at {run.place(steps[turn])}, after {figure(passes[turn])} passes over "
            "the data. Rows that come several times in each pass are known by heart far sooner.",
            {"passes": passes[turn], "lowest": lowest[-1]},
            at=steps[turn],
        )


@given_losses(MIN_RECORDS_FOR_LEVEL)
def evaluation_after_passes(run: Run, losses: Losses) -> Facts:
    """Yield that evaluation is as low as training after so many passes that rows are known by heart."""
    steps, train, evaluated = beside_training(*losses)
    passes = passes_at(run, steps[-1:]) if len(steps) else None
    if passes is None or float(passes[0]) < MANY_PASSES:
        return
    low, late, start = median(train[-LEAST_PAIRS:]), median(evaluated[-LEAST_PAIRS:]), median(losses[0].value[:3])
    if 0 < low < KNOWN_BY_HEART * start and late <= AS_LOW * low:
        yield derived_fact(
            "evaluation_as_low",
            f"after {figure(passes[0])} passes over the data the training loss is {figure(low)} and the "
            f"evaluation loss {figure(late)}. Rows that were seen so often are known better than new ones, so "
            "evaluation is expected above.",
            {"passes": passes[0], "train": low, "eval": late},
            at=steps[-1],
        )
