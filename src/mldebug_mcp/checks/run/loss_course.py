"""Where does the training loss go? It may rise, fall back, stay where it is, or fall slowly."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.checks.check import NO_PROGRESS, CannotTell, Evidence, ask_in_turn, outcome_of, require_values
from mldebug_mcp.checks.curve import (
    CLEAR_SIGMAS,
    MAX_SAMPLE,
    MEDIAN_ERROR,
    aligned,
    blocks,
    drift,
    edge_width,
    end_level,
    explodes,
    finite_of,
    last_decimal,
    leaves_start_at_once,
    monotone,
    noise,
    positive,
    rise_for_good,
    sample,
    start_in_words,
    start_level,
    true_at_end,
)
from mldebug_mcp.checks.evaluation import (
    ACCURACIES,
    as_share,
    auc_of,
    below_baseline,
    evaluation_stands,
    harder_in_training,
    has_settled,
    is_of_a_guess,
    mixes_labels,
    nothing_right,
    planned_rise,
    refuse_new_terms,
    term_set_in,
)
from mldebug_mcp.checks.progress import LANGUAGE_MODELS, comes_trained, is_late, uniform_loss
from mldebug_mcp.checks.train_eval_gap import evaluation_scores
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series

# How a training loss rises: for good, and back again, slowly after a fall, or throughout the log.


LEAST_OF_RISE = 5
"""Finite records that a rise needs. Chosen: as many as its blocks take."""
LEAST_OF_HUMP = 12
"""Finite records that a hump needs. Chosen: as many as its blocks take."""
LEAST_OF_TREND = 10
"""Finite records that a trend needs. Chosen: as many as its blocks take."""
LEAST_OF_TURN = 60
"""Finite records that a turn needs. Chosen: as many as its blocks take."""
MIN_STEP_TIME_RECORDS = 8
"""Records in which the time of steps rises with the loss. Chosen: by hand."""
MIN_STEP_TIME_RATIO = 1.5
"""Times the first step time that the last is, at least. Chosen: longer batches cost more of both."""
MIN_STEP_TIME_CORRELATION = 0.8
"""Rank correlation of the loss with the time of a step. Chosen: longer batches cost more of both."""
MIN_HUMP_START_RATIO = 1.4
"""Times the start that a hump reaches. Fitted: runs at 10 to 400 times a good learning rate."""
WAY_BACK = 0.5
"""Share of a hump that is lost again. Fitted: runs at 10 to 400 times a good learning rate."""
LOSS_TREND_STRETCHES = 20
"""Stretches of a log. Chosen: by hand."""
LOSS_RISING_LONG = 5
"""How many of them it climbs. Chosen: the last quarter."""
OF_LOWEST = 0.03
"""Share of the lowest level by which a loss rises. Chosen: by hand."""
LOSS_RISING_STEADY = 0.85
"""Rank correlation of a loss that rises with time. Chosen: by hand."""
AT_ONCE = 0.6
"""Share of a rise that a single step may make. Chosen: other data are a step."""
LOSS_RISING_LEAST = 0.005
"""Share of the level that a loss rises by. Fitted: 400 healthy runs of benchmarks/faults, none of them rising."""
MIN_TREND_CORRELATION = 0.5
"""Rank correlation of the trend with time. Fitted: 400 healthy runs of benchmarks/faults, none of them rising."""
MIN_RECORDS_FOR_STRETCHES = 40
"""Records from which stretches are compared; fewer go up in order one by one. Chosen: by chance hardly ever."""
ALIKE_OF_FEW = 0.9
"""Rank correlation with time of fewer records. Chosen: by chance hardly ever."""


def _every_score_rises(run: Run) -> bool:
    """Say whether all scores of evaluation rise and end at their best, as no run does that diverges."""
    scores = [score.value for score in evaluation_scores(run) if len(score) >= LEAST_OF_RISE]
    return bool(scores) and all(value[-1] >= value.max() and value[-1] > value[0] for value in scores)


FALLS_MEANWHILE = 0.9
"""Share of the lowest evaluation loss before a rise to which evaluation falls during it. Chosen: noise has less."""
LEAST_MEANWHILE = 3
"""Evaluations before a rise, and after it began, that show that. Chosen: two may agree by chance."""


def _evaluation_falls_meanwhile(run: Run, onset: float) -> bool:
    """Say whether the evaluation loss falls to its lowest, well below all before, while the training loss rises."""
    evaluation = finite_of(run, "eval_loss")
    before, after = evaluation.value[evaluation.step <= onset], evaluation.value[evaluation.step > onset]
    if min(len(before), len(after)) < LEAST_MEANWHILE:
        return False
    return 0 < float(after[-1]) <= min(float(after.min()), FALLS_MEANWHILE * float(before.min()))


def loss_divergence(run: Run) -> Evidence | None:
    """The training loss rises well above its best level and is still there at the end of the log.

    Not this when: it comes back; steps take longer just as it rises, a term sets in there, or evaluation falls
    meanwhile, as where later rows are harder. Those are unknown.
    """
    loss = run["loss"].finite
    exploding = explodes(loss)
    if not exploding:
        require_values(loss, LEAST_OF_RISE)
    rise = rise_for_good(run)
    if rise is None:
        return None
    if _takes_longer(run, loss):
        raise CannotTell("the steps take longer just as the loss rises: their batches may be longer")
    if _every_score_rises(run):
        raise CannotTell(
            "every score of evaluation rises to its best as the loss does: the loss may be a sum that grows"
        )
    onset = float(loss.step[rise.at])
    start = rise.lowest if exploding else start_level(loss.value)
    _refuse_planned(run, onset)
    began = f" ({start_in_words(loss.value)})" if figure(start) != figure(rise.lowest) else ""
    return Evidence(
        f"loss rises from about {figure(rise.lowest)} to about {figure(rise.end)} from {run.place(onset)} on and "
        f"stays up to the end{began}{_rate(run, onset)}",
        steps=(onset,),
        values={"best": rise.lowest, "end": rise.end, "start": start, "rise": rise.end - rise.lowest},
    )


def _takes_longer(run: Run, loss: Series) -> bool:
    _, time, value = aligned(finite_of(run, "step_time"), loss)
    if len(value) < MIN_STEP_TIME_RECORDS or end_level(time) < MIN_STEP_TIME_RATIO * start_level(time):
        return False
    return monotone(value[np.argsort(time, kind="stable")]) >= MIN_STEP_TIME_CORRELATION


def _rate(run: Run, step: float) -> str:
    rate = run["learning_rate"].at(step) if "learning_rate" in run else None
    return "" if rate is None else f"; the learning rate at that {run.step_name} is {figure(rate)}"


def loss_hump(run: Run) -> Evidence | None:
    """The training loss climbs far above the level at which it began, for a stretch, and comes back down.

    Not this when: it stays up; it rose from a good level, and not above the start; one or two records stand out.
    """
    loss = require_values(run["loss"].finite, LEAST_OF_HUMP)
    refuse_new_terms(run)
    cut = blocks(loss.value)
    first = loss.value[: max(3, len(loss) // 50)]
    top, start, end = int(cut.level.argmax()), start_level(first), end_level(loss.value)
    peak = float(cut.level[top])
    climb, doubt = peak - start, 1.25 * float(np.std(first)) / math.sqrt(len(first))  # of a median
    least = CLEAR_SIGMAS * max(cut.wobble, doubt)
    still = max(end, median(loss.value[-3:]))  # a loss that climbs to its last record has an end level below that
    if start <= 0 or peak < MIN_HUMP_START_RATIO * start or climb < least or peak - still < WAY_BACK * climb:
        return None
    if positive(loss.value) and math.log(peak / start) < CLEAR_SIGMAS * blocks(np.log(loss.value)).wobble:
        return None  # noise that multiplies reaches far up
    onset = float(loss.step[int((loss.value > start + climb / 5).argmax())])
    return Evidence(
        f"loss climbs from about {figure(start)} in the first {edge_width(len(first))} records to about "
        f"{figure(peak)} around "
        f"{run.place(loss.step[cut.first[top]])} and is about {figure(end)} at the end{_rate(run, onset)}",
        steps=(onset,),
        values={"start": start, "peak": peak, "end": end, "factor": peak / start},
    )


def loss_rises(run: Run) -> Evidence | None:
    """The training loss rises slowly over the whole log, or turns after a fall and climbs over its last quarter.

    Not this when: the rise is within the noise, or one step, as with other data; it rises far (`loss_divergence`).
    """
    loss = require_values(run["loss"].finite, LEAST_OF_TREND)
    if len(loss) < len(run["loss"]) or rise_for_good(run) is not None:
        raise CannotTell("the loss diverges or is not finite, which says more")
    rises = _throughout(run, loss) or _after_a_fall(run, loss)
    if rises is not None:
        _refuse_planned(run, rises.steps[0])
    return rises


def _refuse_planned(run: Run, onset: float) -> None:
    """Raise CannotTell if a plan raises a term of the loss, or one sets in, where the loss begins to rise.

    So it does where evaluation says that the model gets better meanwhile.
    """
    if (plan := planned_rise(run, onset, float(run["loss"].finite.step[-1]))) is not None:
        raise CannotTell(
            f"{plan.name} is raised by plan to {figure(plan.finite.value[-1])}, and the loss rises with it"
        )
    if (term := term_set_in(run, onset)) is not None:
        raise CannotTell(f"{term.name} sets in at {run.place(term.step)}, and the loss rises with it")
    if _evaluation_falls_meanwhile(run, onset):
        raise CannotTell("the evaluation loss falls to its lowest meanwhile: later rows of training may be harder")


def _throughout(run: Run, loss: Series) -> Evidence | None:
    left_out = len(loss) // 20
    values, since = loss.value[left_out:], float(loss.step[left_out])
    (change, error), level = drift(values), abs(median(sample(values)))
    start, end = start_level(values), end_level(values)
    rises = change > CLEAR_SIGMAS * error and change > LOSS_RISING_LEAST * level and end > start
    alike, stretches = (
        (MIN_TREND_CORRELATION, blocks(values, LOSS_TREND_STRETCHES).level)
        if len(loss) >= MIN_RECORDS_FOR_STRETCHES
        else (ALIKE_OF_FEW, values)
    )
    if not rises or monotone(stretches) < alike:
        return None
    return Evidence(
        f"loss rises from about {figure(start)} around {run.place(since)} to about {figure(end)} at the end, its trend "
        f"by {figure(change)} ± {figure(error)} from there on",
        steps=(since,),
        values={"start": start, "end": end, "rise": change, "error": error},
    )


def _after_a_fall(run: Run, loss: Series) -> Evidence | None:
    if len(loss) < LEAST_OF_TURN or run.kind in ("preference", "boosting"):
        return None
    cut = blocks(loss.value, LOSS_TREND_STRETCHES)
    best = int(np.argmin(cut.level))
    after = cut.level[best:]
    rise = float(after[-1] - after[0])
    clear = rise >= max(OF_LOWEST * abs(float(after[0])), CLEAR_SIGMAS * cut.wobble)
    if best == 0 or len(after) <= LOSS_RISING_LONG or not clear:
        return None
    if monotone(after) < LOSS_RISING_STEADY or float(np.diff(after).max()) > AT_ONCE * rise:
        return None
    onset = float(loss.step[int(cut.first[best])])
    summary = (
        f"loss turns at {run.place(onset)} and climbs from {figure(after[0])} to {figure(after[-1])} up to the end"
    )
    return Evidence(summary, steps=(onset,), values={"lowest": float(after[0]), "end": float(after[-1])})


# Progress that is slower than usual, and evaluations that creep below the loss of a guess.


LOSS_SLOW_LEAST = 0.005
"""Progress as a share of the first level. Chosen: below there is none (`loss_plateau`)."""
MAX_SLOW_PROGRESS = 0.4
"""The most progress that is slow. Chosen: above it is not."""
MIN_LATER_FALL_SHARE = 0.35
"""Share of progress in the later half. Chosen: an exponential or power law has a quarter, a straight line a half."""
LATER_SHARE_PER_PROGRESS = 0.3
"""How much more of the fall comes in the later half for each part of progress beyond `MAX_CLEARLY_SLOW_PROGRESS`.
Chosen: much progress is hardly slow."""
MAX_CLEARLY_SLOW_PROGRESS = 0.1
"""Progress from which on more is asked of the later half. Chosen: much progress is hardly slow."""
LEAST_STEPS = 100
"""Steps of a run. Chosen: a warmup bends a curve up."""
PACE = 1 / 1000
"""Share of the first level per step where no rate is logged. Chosen: by hand."""
MIN_RECORDS_FOR_LINE = 20
"""Records. Chosen: as many as tell a line from a curve."""
MIN_EPOCHS_FOR_LINE = 12
"""Means of epochs, which have little noise. Chosen: as many as tell a line from a curve."""
MOST_BY_EPOCHS = 0.15
"""The most progress of a loss over few epochs. Chosen: by hand."""
MAX_LATER_FALL_SHARE = 0.6
"""Share of the progress that comes in the later half, of few epochs. Chosen: a straight line has half of it there."""
MIN_FALLING_EPOCH_SHARE = 0.7
"""Share of the few epochs in which the loss goes down. Chosen: by hand."""
MIN_CREEPING_EVALUATIONS = 8
"""Evaluations of a loss or score that creeps. Chosen: a fixed set has no noise of sampling."""
MIN_CREEPING_GAIN_SHARE = 0.004
"""Share below a guess that a creeping loss comes to. Chosen: a fixed set has no noise of sampling."""
LOSS_SLOW_STEADY = -0.8
"""Rank correlation with time of a loss that creeps down. Chosen: a fixed set has no noise of sampling."""
MAX_DROPPED_RATE_RATIO = 0.6
"""Times the rate of the record before. Chosen: no smooth decay falls so before its last steps."""
MAX_LOG_START_SHARE = 0.05
"""Share of the run within which the log begins. Chosen: later on every curve is straight."""
LOSS_SLOW_FIRST = 20.0
"""Steps within which the log begins. Chosen: later on every curve is straight."""
NEAR_MEAN = 0.05
"""R² of answers that say hardly more than the mean of the targets. Chosen: by hand."""
MAX_CREEPING_SCORE = 0.25
"""The most that is learnt by the end where learning is slow. Chosen: what learns at its pace is done, or beyond."""
MIN_LATER_GAIN_SHARE = 0.15
"""Share of its whole gain that a score makes in the later half. Chosen: what learns well is nearly done by then."""
MIN_RATE_SPENT = 1e-30
"""Learning rate, summed over steps, that is spent at least. Chosen: a rate of zero cannot be divided by."""


def loss_slow(run: Run) -> Evidence | None:
    """The training loss falls by little and, by the learning rate spent, as fast at the end as at the beginning.

    Not this when: the curve bends; the model knows something already; the log is an excerpt; the run makes no progress.
    """
    refuse_new_terms(run)
    if (by_score := _by_score(run)) is not None:
        return by_score
    loss = _before_decay(run)
    few = len(loss) < MIN_RECORDS_FOR_LINE
    _refuse_short(run, loss, few=few)
    cut = blocks(loss.value, 20)
    start, end = max(start_level(loss.value), float(cut.level[0])), float(cut.level[-2:].mean())
    fall = start - end
    if (
        start <= 0
        or fall < max(LOSS_SLOW_LEAST * start, CLEAR_SIGMAS * cut.wobble)
        or fall > _most_slow_progress(run, loss, few=few) * start
    ):
        return None
    if float(loss.value[0]) - start > fall:
        return None  # most of the progress was made before the first records had a level: the curve has bent
    if comes_trained(run, start):
        raise CannotTell(
            f"the loss begins at {figure(start)}, far below that of a uniform guess: a model that knows something "
            "already may learn the rest slowly"
        )
    stride = -(-len(loss) // MAX_SAMPLE)
    spent = _spent(run, loss.step[::stride])
    at = spent[np.minimum(cut.first + len(loss) // (2 * len(cut.level)), len(loss) - 1) // stride]
    later = (float(np.interp(spent[-1] / 2, at, cut.level)) - end) / fall
    if later < MIN_LATER_FALL_SHARE + LATER_SHARE_PER_PROGRESS * max(
        0.0, fall / start - MAX_CLEARLY_SLOW_PROGRESS
    ) or later > (MAX_LATER_FALL_SHARE if few else 1.0):
        return None
    return Evidence(
        f"loss falls from about {figure(start)} at the start to about {figure(end)} around "
        f"{run.place(loss.step[int(cut.first[-1])])} ({fall / start:.1%}), {later:.0%} of it "
        "in the later half of the training",
        steps=(float(loss.step[0]),),
        values={"start": start, "end": end, "progress": fall / start, "share_in_later_half": later},
    )


def _by_score(run: Run) -> Evidence | None:
    """Return what R² says that begins at that of the mean of the targets and rises step by step, not far."""
    for logged in run.with_role(Quantity.R2, phase="eval"):
        score = logged.finite
        value = score.value
        if (
            len(value) < MIN_CREEPING_EVALUATIONS
            or value[0] > NEAR_MEAN
            or not value[0] + MIN_CREEPING_GAIN_SHARE < value[-1] <= MAX_CREEPING_SCORE
        ):
            continue
        if monotone(value) >= -LOSS_SLOW_STEADY and value[-1] - value[len(value) // 2] > MIN_LATER_GAIN_SHARE * (
            value[-1] - value[0]
        ):
            return Evidence(
                f"{logged.name} rises from {figure(value[0])} to {figure(value[-1])} over "
                f"{len(value)} evaluations, step by step to the end at {run.place(score.step[-1])}",
                steps=(float(score.step[0]),),
                values={"start": float(value[0]), "end": float(value[-1])},
            )
    return None


def _refuse_short(run: Run, loss: Series, *, few: bool) -> None:
    if few and run.step_name != "epoch":
        raise CannotTell(
            f"loss has {len(loss)} values here; {MIN_RECORDS_FOR_LINE} are needed where they are not means over epochs"
        )
    if loss.step[0] > max(LOSS_SLOW_FIRST, MAX_LOG_START_SHARE * run.last_step):
        raise CannotTell(f"the log begins at {run.place(loss.step[0])}: the start is not known")
    if run.step_name == "step" and run.last_step < LEAST_STEPS:
        raise CannotTell(f"the run has {figure(run.last_step)} steps; {LEAST_STEPS} are needed to call it slow")


def _most_slow_progress(run: Run, loss: Series, *, few: bool) -> float:
    """Return the most progress that is slow, as a share of the first level."""
    if few:
        return MOST_BY_EPOCHS if float((np.diff(loss.value) < 0).mean()) >= MIN_FALLING_EPOCH_SHARE else 0.0
    if run.step_name == "step" and "learning_rate" not in run:
        return min(MAX_SLOW_PROGRESS, PACE * (float(loss.step[-1]) - float(loss.step[0])))
    return MAX_SLOW_PROGRESS


def creeps_below(run: Run, chance: float) -> bool:
    """Say whether evaluation comes below the loss of a guess, step by step, while training falls along a straight line.

    Rows without a signal do not bring that about: their evaluation loss stays above, or comes to rest.
    """
    evaluation = finite_of(run, "eval_loss").value
    if (
        len(evaluation) < MIN_CREEPING_EVALUATIONS
        or float(evaluation[-1]) >= (1 - MIN_CREEPING_GAIN_SHARE) * chance
        or monotone(evaluation) > LOSS_SLOW_STEADY
    ):
        return False
    try:
        return len(run["loss"].finite) >= MIN_EPOCHS_FOR_LINE and loss_slow(run) is not None
    except CannotTell:
        return False


def _before_decay(run: Run) -> Series:
    """Return the loss up to where the rate has fallen in steps: what a drop of the rate brings is not slow progress."""
    loss = run["loss"].finite
    rate = finite_of(run, "learning_rate")
    if len(rate) < 3 or not len(loss):
        return loss
    drops = rate.value[1:] < MAX_DROPPED_RATE_RATIO * rate.value[:-1]
    if not drops.any():
        return loss
    before = loss.step < rate.step[1 + int(np.argmax(drops))]
    least = MIN_EPOCHS_FOR_LINE if run.step_name == "epoch" else MIN_RECORDS_FOR_LINE
    if before.sum() < least:
        raise CannotTell(f"the rate drops after {int(before.sum())} records; {least} are needed")
    return loss.where(before)


def _spent(run: Run, step: Floats) -> Floats:
    """Return the learning rate summed up to each of these steps, or their number where it is not logged, (n,)."""
    rate = finite_of(run, "learning_rate")
    if len(rate) < 3 or float(rate.value.max()) <= 0:
        return np.arange(1, len(step) + 1, dtype=np.float64)
    return np.cumsum(np.maximum(rate.interpolated(step), 0.0)) + MIN_RATE_SPENT


# A loss that falls at first and then stands, at whatever level.


MAX_STALLED_CHANGE_SHARE = 0.02
"""Of its level: the loss of a stalled run moves by less over the second half of the log. Chosen: by hand."""
KEPT_UP = 0.9
"""Share of the training loss below which evaluation shows that dropout keeps it up. Chosen: noise does less."""
HIGH_SHARE = 0.5
"""A loss above this share of ln(classes or vocabulary) shows that little more than frequencies was learned.

Unigram statistics of text lie near 0.6."""
LEAST_TO_STALL = 12
"""Records of a loss that tell of standing still. Chosen: of a dozen epochs a model that learns shows half."""


# A training loss that makes no progress, or stops too high: constant, flat from the start, stuck after a fall.


LEAST_MOVES = 2
"""Moves of an evaluation loss, all one way, that are no noise of the last digit. Chosen: by hand."""
MIN_EQUAL_RECORDS = 5
"""Records of the same loss. Chosen: rounding at rest is shorter."""
MAX_LOG_TAIL_RATIO = 3
"""Part of the log that they are. Chosen: rounding at rest is shorter."""
MAX_EQUAL_DIFFERENCE_SHARE = 1e-9
"""Share by which they differ. Chosen: by hand."""
MAX_ROUNDED_DIFFERENCE_SHARE = 3e-4
"""The same where the accuracy stands too. Chosen: a unit of the fourth digit."""
LAST_DIGITS = 1.5
"""Units of the last decimal by which a loss comes to rest that goes on falling unseen. Chosen: one, and rounding."""
MIN_SATURATED_ACCURACY = 0.85
"""Accuracy from which on little is left to learn. Chosen: as in `eval_metric_constant`."""
LEAST_PROGRESS = 0.03
"""Share of the first level that a run gains that learns. Chosen: slow pretraining passes."""
PROGRESS_OF_TRAINED = 0.015
"""The same of one that comes trained. Chosen: slow pretraining passes."""
MIN_SURE_STANDARD_ERRORS = 3.0
"""Standard errors from which on progress is sure. Chosen: 1 in 700."""
MIN_LIKELY_STANDARD_ERRORS = 2.0
"""Standard errors from which on progress is likely. Chosen: 1 in 40."""
LOSS_RESTING_FIRST = 5
"""Records that stand for the beginning of a long log. Chosen: a small model is done soon."""
FEW_POINTS = 4
"""Records that prove it where evaluation stands, too. Chosen: two witnesses of few points each."""
LEAST_POINTS = 12
"""Records that prove a flat curve. Chosen: a run that learns shows it."""
LOSS_RESTING_LONG = 100
"""Records from which a log is long. Chosen: by hand."""
MIN_LATE_START_SHARE = 0.2
"""Share of the run after which a log begins late. Chosen: by hand."""
MOST_NOISE = 0.12
"""Share of the level that `MIN_SURE_STANDARD_ERRORS` errors may be. Chosen: more could hide what runs gain."""
MOST_NOISE_LONG = 0.3
"""The same in a long log. Chosen: more could hide what runs gain."""
NEAR_CHANCE = 0.02
"""Within this share of ln(classes) the model guesses. Chosen: as noise goes."""
MAX_UNTRAINED_LOSS_RATIO = 1.5
"""Times ln(classes) from which a new classifier falls without learning. Chosen: usual initialisations."""
SETTLING_OF_TWO = 1.15
"""The same where two classes are taken for granted. Chosen: a loss that falls from far may pass by."""
FROM_SCRATCH = 0.1
"""Share of its first loss that a new language model gains from frequencies. Chosen: by hand."""
MAX_STUCK_CHANGE_SHARE = 0.01
"""Share of it that such a model moves later. Chosen: less is stuck."""
MIN_TRAINED_ACCURACY = 0.75
"""Accuracy at the first evaluation from which on a flat loss may be done. Chosen: far above a guess."""
LEAST_EVALUATIONS = 4
"""Evaluations whose losses show a trend. Chosen: fewer show none."""
MAX_PLATEAU_RISE_RATIO = 1.1
"""Times the first level: no level above it is one of standing still. Chosen: as wide as the noise of short logs."""
SCATTER_OF_DRAWN = 0.2
"""Share of the level by which single records scatter where each is of another amount of drawn noise. Chosen: of the
labelled runs of unknown kind whose loss is rightly called flat none scatters by more than 0.05."""


def loss_constant(run: Run) -> Evidence | None:
    """The training loss is the same number in every record, or from some step on to the end.

    Not this when: it is zero (`loss_zero`), or moves within its noise; it comes to rest by the last printed decimal;
    the evaluation loss goes one way meanwhile, so that something is trained and what is printed is not its loss.
    """
    loss = run["loss"].finite
    last = float(loss.value[-1])
    same = np.abs(loss.value - last) <= (
        MAX_ROUNDED_DIFFERENCE_SHARE if _accuracy_stands(run) else MAX_EQUAL_DIFFERENCE_SHARE
    ) * abs(last)
    tail = true_at_end(same)
    if last == 0 or tail < MIN_EQUAL_RECORDS or tail * MAX_LOG_TAIL_RATIO < len(same):
        return None
    if tail < len(same) and abs(float(loss.value[-tail - 1]) - last) < LAST_DIGITS * last_decimal(loss.value):
        return None
    first = float(loss.step[len(same) - tail])
    if _evaluation_moves_from(run, first):
        return None
    summary = f"loss is {figure(last)} in all {tail} records from {run.place(first)} to the end"
    return Evidence(summary, steps=(first,), values={"value": last, "records": tail, "share": tail / len(same)})


def _evaluation_moves_from(run: Run, step: float) -> bool:
    """Say whether the evaluation loss goes one way from a step on: parameters that rest give the same loss again."""
    loss = finite_of(run, "eval_loss")
    later = loss.value[loss.step >= step]
    moves = np.diff(later)
    one_way = bool(np.all(moves >= 0) or np.all(moves <= 0))
    return one_way and len(later) >= MIN_EQUAL_RECORDS and int(np.count_nonzero(moves)) >= LEAST_MOVES


def _accuracy_stands(run: Run) -> bool:
    """Say whether the training accuracy is the same number throughout, and not that of a model that is done."""
    accuracy = finite_of(run, "accuracy").value
    return (
        len(accuracy) >= MIN_EQUAL_RECORDS
        and float(np.ptp(accuracy)) == 0
        and as_share(float(accuracy[0])) < MIN_SATURATED_ACCURACY
    )


def loss_plateau(run: Run) -> Evidence | None:
    """The training loss makes no progress from the start of the log to its end, or none beyond a uniform guess.

    Not this when: it fell before the log began; the noise could hide progress; evaluation learns, or is right already,
    or is better than a baseline in the settings; the first record is far below all others.
    """
    if reason := below_baseline(run) or _left_at_once(run):
        raise CannotTell(reason)
    loss = run["loss"].finite
    cut = blocks(loss.value, 10)
    start, best = _first_level(loss.value), float(cut.level[1:].min(initial=np.inf))
    if (
        start <= 0
        or math.isinf(best)
        or best > start * MAX_PLATEAU_RISE_RATIO
        or float(np.ptp(loss.value)) <= MAX_EQUAL_DIFFERENCE_SHARE * abs(start)
    ):
        return None
    stands = evaluation_stands(run) or _evaluation_gains_nothing(run)
    gained = start - (end_level(loss.value) if stands else best)
    error = math.hypot(cut.wobble, MEDIAN_ERROR * noise(loss.value) / math.sqrt(edge_width(len(loss))))
    least, chance = max(LEAST_PROGRESS * start, MIN_SURE_STANDARD_ERRORS * error), _chance(run, best)
    rises = end_level(loss.value) - start > least and not stands
    if rises or (chance is not None and creeps_below(run, chance)):
        return None
    if gained > least:
        if not _ends_at(run, chance, start, loss) and not _stuck_from_scratch(run, loss, start, gained):
            if nothing_right(run) is not None and has_settled(loss):
                raise CannotTell("the loss falls and comes to rest where no answer is right (`loss_at_chance`)")
            return None
    elif chance is None:
        if MIN_SURE_STANDARD_ERRORS * error > LEAST_PROGRESS * start and _evaluation_falls(run):
            return None
        _refuse_to_judge(run, loss, start, gained, error, stands=stands)
    chance_clause = f"; a uniform guess has {figure(chance)} = ln({math.exp(chance):.0f})" if chance is not None else ""
    auc = auc_of(run)
    if auc is not None and is_of_a_guess(auc):
        chance_clause += f"; {auc.name} ends at {figure(auc.value[-1])}, and a guess has 0.5"
    fell = float(loss.value[0]) - start > max(LEAST_PROGRESS * start, MIN_SURE_STANDARD_ERRORS * noise(loss.value))
    first = f" (the first record is {figure(loss.value[0])})" if fell else ""
    return Evidence(
        f"the level of the loss is about {figure(start)} at the start{first} and about {figure(best)} at its lowest "
        f"after that, up to {run.place(loss.step[-1])}{chance_clause}",
        steps=(float(loss.step[0]),),
        values={"start": start, "best": best, "gained": gained, "noise": error}
        | ({"uniform_guess": chance} if chance is not None else {}),
    )


def _left_at_once(run: Run) -> str:
    """Return, in words, that the first loss is far below all others; "" where it is not."""
    loss = run["loss"].finite
    if not leaves_start_at_once(loss):
        return ""
    return f"the first loss, {figure(loss.value[0])}, is far below all others: training does not begin at their level"


def _first_level(values: Floats) -> float:
    """Return the level of the first twentieth, or of the first records where a long log falls clearly from there."""
    level, first = start_level(values), median(values[:LOSS_RESTING_FIRST])
    if edge_width(len(values)) < 4 * LOSS_RESTING_FIRST:
        return level
    doubt = MIN_SURE_STANDARD_ERRORS * MEDIAN_ERROR * noise(values) / math.sqrt(LOSS_RESTING_FIRST)
    return first if first - level > max(LEAST_PROGRESS * abs(level), doubt) else level


def _ends_at(run: Run, chance: float | None, start: float, loss: Series) -> bool:
    """Say whether a fall ends at the loss of a guess, and began no farther above than new models do."""
    if chance is None or abs(end_level(loss.value) - chance) > NEAR_CHANCE * chance:
        return False
    return start <= chance * (MAX_UNTRAINED_LOSS_RATIO if uniform_loss(run) is not None else SETTLING_OF_TWO)


def _refuse_to_judge(run: Run, loss: Series, start: float, gained: float, error: float, *, stands: bool) -> None:
    """Raise CannotTell if a flat curve proves nothing: noisy, short, from the middle of a run, or done already."""
    doubt = MIN_SURE_STANDARD_ERRORS * error / start
    if doubt > (MOST_NOISE_LONG if len(loss) >= LOSS_RESTING_LONG else MOST_NOISE) and not stands:
        raise CannotTell(f"the noise could hide progress by {doubt:.0%}")
    scatter, scored = noise(loss.value) / start, stands or bool(_first_accuracies(run))
    if run.kind in ("unknown", "diffusion") and scatter > SCATTER_OF_DRAWN and not scored:
        raise CannotTell(
            f"single records scatter by {scatter:.0%} around one level, as those of diffusion and flow matching do: "
            "their loss hardly falls in fine-tuning"
        )
    if len(loss) < LEAST_POINTS and not (len(loss) >= FEW_POINTS and stands):
        raise CannotTell(f"{len(loss)} records are flat; {LEAST_POINTS} are needed")
    if _begins_late(run):
        raise CannotTell(f"the log begins at step {figure(loss.step[0])}: a fall before it would not show")
    trained = run.kind in LANGUAGE_MODELS and comes_trained(run, start)
    if gained > max((PROGRESS_OF_TRAINED if trained else LEAST_PROGRESS) * start, MIN_LIKELY_STANDARD_ERRORS * error):
        raise CannotTell(f"progress of {gained / start:.1%} is likely, but not beyond the noise")
    if run.kind == "pretraining" and trained:
        raise CannotTell(f"the loss begins at {figure(start)}, that of a model that comes trained: it may be done")
    auc = auc_of(run)
    guesses = auc is not None and is_of_a_guess(auc)  # then the accuracy is that of the commonest class
    if not guesses and any(MIN_TRAINED_ACCURACY <= accuracy <= 1 for accuracy in _first_accuracies(run)):
        raise CannotTell("the first evaluations are right already: there may be nothing left to learn")


def _stuck_from_scratch(run: Run, loss: Series, start: float, gained: float) -> bool:
    """Say whether a new language model has learnt less than the frequencies of tokens, and no longer learns."""
    if run.kind != "pretraining" or comes_trained(run, start) or _begins_late(run) or len(loss) < LEAST_POINTS:
        return False
    later = blocks(loss.value[len(loss) // 2 :], 5).level
    return gained < FROM_SCRATCH * start and float(np.ptp(later)) <= MAX_STUCK_CHANGE_SHARE * start


def _begins_late(run: Run) -> bool:
    return is_late(run, float(run["loss"].finite.step[0]), MIN_LATE_START_SHARE, 0)


def _first_accuracies(run: Run) -> list[float]:
    logged = [run[name].finite.value for name in ACCURACIES if name in run]
    return [float(array[0]) for array in logged if len(array)]


def _evaluation_gains_nothing(run: Run) -> bool:
    """Say whether evaluation, from early on, has come no lower than a run that learns does, in all that time."""
    evaluation = finite_of(run, "eval_loss")
    if len(evaluation) < LEAST_EVALUATIONS or evaluation.step[0] > MIN_LATE_START_SHARE * run.last_step:
        return False
    first, trained = float(evaluation.value[0]), run.kind in LANGUAGE_MODELS
    least = PROGRESS_OF_TRAINED if trained else LEAST_PROGRESS
    return (
        first - float(evaluation.value.min()) <= least * first
        and end_level(evaluation.value) <= MAX_PLATEAU_RISE_RATIO * first
    )


def _evaluation_falls(run: Run) -> bool:
    evaluation = finite_of(run, "eval_loss").value
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

    Not this when: it is low already; it never fell (`loss_plateau`); settings mix labels or make training harder, and
    evaluation learns. Needs the number of classes or tokens.
    """
    refuse_new_terms(run)
    loss = run["loss"].finite
    start, end = start_level(loss.value), end_level(loss.value)
    if start <= 0 or end > start * 0.97:
        return None
    cut = blocks(loss.value, 20)
    moved = float(np.ptp(cut.level[len(cut.level) // 2 :]))
    level = end + max(MAX_STALLED_CHANGE_SHARE * abs(end), 3 * cut.wobble)
    # Where the first block is at that level, the fall is within the noise.
    if moved > max(MAX_STALLED_CHANGE_SHARE * abs(end), 4 * cut.wobble) or cut.level[0] <= level:
        return None
    uniform = uniform_loss(run)
    if uniform is None and run.kind not in LANGUAGE_MODELS and end >= HIGH_SHARE:
        raise CannotTell(
            "the loss does not move, but without the number of classes or tokens it is not known where it should be"
        )
    if uniform is None or end < HIGH_SHARE * uniform:
        return None
    evaluated = end_level(run["eval_loss"].finite.value) if "eval_loss" in run else math.inf
    if mixes_labels(run) and evaluated < HIGH_SHARE * uniform:
        raise CannotTell("labels are mixed or smoothed, which keeps the training loss up while evaluation learns")
    if evaluated < KEPT_UP * end and (harder := harder_in_training(run)):
        raise CannotTell(f"training has {' and '.join(harder)}, which evaluation, {figure(evaluated)}, goes without")
    onset = float(loss.step[int(cut.first[int(np.argmax(cut.level <= level))])])
    return Evidence(
        f"loss falls from about {figure(start)} to about {figure(end)} by {run.place(onset)} "
        f"and moves by no more than {figure(moved)} after; a uniform guess has {figure(uniform)} = "
        f"ln({math.exp(uniform):.0f})",
        steps=(onset,),
        values={"start": start, "end": end, "moved_in_second_half": moved, "uniform_guess": uniform},
    )


# How does the training loss go: up, and back, nowhere, or slowly?


LOSS = ("loss",)
ask_in_turn(
    "loss_course",
    outcome_of(
        loss_divergence,
        0.01,
        "bekman_mle",
        follows=("loss_falls_back", "loss_pattern_by_epoch"),
        instead=("logits_grow",),
    ),
    outcome_of(loss_hump, 0.004, follows=("loss_spike_single",)),
    outcome_of(
        loss_constant,
        0.002,
        needs=LOSS,
        points=MIN_EQUAL_RECORDS,
        follows=("loss_negative", "loss_zero"),
        instead=NO_PROGRESS,
    ),
    outcome_of(loss_rises, 0.003, "small_scale_proxies", not_for=("diffusion",), follows=("loss_above_start",)),
    outcome_of(
        loss_slow,
        0.01,
        "axolotl_stability",
        needs=LOSS,
        points=MIN_EPOCHS_FOR_LINE,
        settled=True,
        not_for=("preference",),
        follows=("loss_epoch_steps", "eval_learns_nothing"),
        instead=NO_PROGRESS,
    ),
    outcome_of(
        loss_plateau,
        0.006,
        "axolotl_stability",
        "karpathy_recipe",
        needs=LOSS,
        points=6,
        settled=True,
        follows=("dpo_margin_flat", "eval_loss_constant"),
        instead=NO_PROGRESS,
    ),
    outcome_of(
        loss_stall,
        0.02,
        "axolotl_stability",
        "karpathy_recipe",
        needs=LOSS,
        points=LEAST_TO_STALL,
        settled=True,
        not_for=("diffusion",),
        instead=NO_PROGRESS,
    ),
    needs=LOSS,
    not_for=("grpo", "ppo", "rl"),
)
