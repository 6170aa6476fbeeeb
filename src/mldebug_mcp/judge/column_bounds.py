"""How a column of a run stands to bounds, to passes over the data, to events and to settings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.curve import mad, monotone, sample
from mldebug_mcp.checks.evaluation import ERRORS_OF_VALUES, MOST_BEYOND_ONE, as_shares
from mldebug_mcp.checks.progress import is_late, passes_at, uniform_loss
from mldebug_mcp.checks.run.loss_start import AT_ONCE, LOSS_START_FIRST_STEPS
from mldebug_mcp.checks.run.resume import restart_of_data
from mldebug_mcp.checks.run.settings import prompts_counted
from mldebug_mcp.core.arrays import median, quantile
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.judge.column_pairs import (
    LEAST_PAIRS,
    LOSSES,
    MIN_RECORDS_FOR_LEVEL,
    NOT_BY_LOSS,
    POLICIES,
    columns_of,
    named,
    tail,
    training_loss,
)
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.quantities import THROUGHPUTS
from mldebug_mcp.logs.settings.settings import flag_of
from mldebug_mcp.models.diagnosis import DerivedFact

# Jumps and passes over the data: rows that are bad come once in each pass, in whatever order.


LEAST_JUMPS = 4
"""Jumps of the loss that are compared with its passes. Chosen: as usual."""
MOST_CHANCE = 0.02
"""The chance at most that no two of them fall into one pass. Chosen: as usual."""
AROUND = 11
"""Records whose median is the level of one."""
JUMPS_BY = 20.0
"""Deviations from that level that make a jump. Chosen: noise has none."""
LEAST_JUMP = 3.0
"""Times the size of that level that makes a jump. Chosen: noise has none."""
MOST_RECORDS = 200_000
"""Records that are looked at: a bound on what it costs."""


def one_jump_a_pass(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss jumps once in each pass over the data, or in nearly each, and never twice."""
    loss = training_loss(run, AROUND + 1, not_of=POLICIES)
    ends = passes_at(run, loss.step[[0, -1]]) if loss is not None and len(loss) <= MOST_RECORDS else None
    if loss is None or ends is None:
        return
    at = loss.step[_jumps(loss.value)]
    passes = passes_at(run, at) if len(at) >= LEAST_JUMPS else None
    if passes is None:
        return
    own, (first, last) = np.maximum(1, np.ceil(passes)), np.maximum(1, np.ceil(ends)).tolist()
    count = round(last - first) + 1
    chance = math.prod(1 - number / count for number in range(len(at))) if len(at) <= count else 0.0
    if len(np.unique(own)) < len(at) or not 0 < chance <= MOST_CHANCE:
        return
    yield DerivedFact.model_construct(
        fact="one_jump_a_pass",
        text=(
            f"{named(loss)} jumps {len(at)} times in {count} passes over the data, and never twice in one. At "
            f"random that has a chance of {figure(chance)}; the same rows come once in each pass."
        ),
        values={"jumps": float(len(at)), "passes": float(count), "chance": chance},
        steps=[float(at[0])],
    )


def _jumps(values: Floats) -> NDArray[np.int64]:
    """Return where single records, or a few in a row, begin to lie far above the level around them."""
    padded = np.pad(values, AROUND // 2, mode="edge")
    level = np.median(np.lib.stride_tricks.sliding_window_view(padded, AROUND), axis=1)
    above = (values - level) / np.maximum(np.abs(level), 1e-12)
    far = above > max(JUMPS_BY * mad(above), LEAST_JUMP)
    return np.flatnonzero(far & ~np.concatenate([[False], far[:-1]]))


WORSE = 1.5
"""Times its level before by which an evaluation is worse for a stretch. Chosen: noise of a fixed set has far less."""
BACK = 1.1
"""Times that level to which it comes back. Chosen."""
LEAST_EVALUATIONS = 5
"""Evaluations that show a level, a stretch and a way back. Chosen."""


def worse_for_a_stretch(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation gets far worse where the training loss jumps, and comes back to where it was.

    Not this where the learning rate rises there, or where the loss jumps as far at other times.
    """
    loss = training_loss(run, AROUND, not_of=POLICIES)
    if loss is None or run.step_name == "epoch":  # each epoch has all rows
        return
    for evaluation in columns_of(run, *LOSSES, phase="eval", least=LEAST_EVALUATIONS):
        worst = 1 + int(np.argmax(evaluation.value[1:-1]))
        last = int(np.argmin(evaluation.value[:worst]))
        before, high = evaluation.value[[last, worst]].tolist()
        after = float(evaluation.value[worst + 1 :].min())
        between = (loss.step > evaluation.step[last]) & (loss.step <= evaluation.step[worst])
        earlier = loss.where(loss.step <= evaluation.step[last]).value[-AROUND:]
        if (
            not between.any()
            or between.all()
            or not len(earlier)
            or not 0 < after <= BACK * before
            or high < WORSE * before
        ):
            continue
        at = np.flatnonzero(between)
        highest = int(at[int(np.argmax(loss.value[at]))])
        usual = loss.value[(loss.step > evaluation.step[0]) & ~between]
        least = max(WORSE * quantile(usual, 0.95), float(usual.max()))
        if loss.value[highest] < least or _rate_rises(run, float(loss.step[highest])):
            continue
        yield DerivedFact.model_construct(
            fact="worse_for_a_stretch",
            text=(
                f"{named(evaluation)} is {figure(before)} at {figure(float(evaluation.step[last]))}, {figure(high)} at "
                f"{figure(float(evaluation.step[worst]))} and {figure(after)} again later. {named(loss)} goes from "
                f"about {figure(median(earlier))} to {figure(float(loss.value[highest]))} at "
                f"{run.place(float(loss.step[highest]))}. Rows that contradict the others do that, or an "
                "update that is far too large."
            ),
            values={"before": before, "worst": high, "after": after},
            steps=[float(loss.step[highest])],
        )
        return


def _rate_rises(run: Run, step: float) -> bool:
    """Say whether the learning rate has risen in the tenth of the run before a step, as at a warm restart."""
    if "learning_rate" not in run:
        return False
    rate = run["learning_rate"].finite
    lately = rate.where((rate.step > step - run.last_step / 10) & (rate.step <= step)).value
    return len(lately) > 1 and float(lately.max()) > BACK * float(lately[0])


# Saturation: a column rests at a bound.


EXACT = 0.004
"""Share of a bound within which a loss rests at it. Chosen: the noise of a loss that learns nothing."""
RESTS_FOR = 0.3
"""Share of the records for which it rests. Chosen."""
MOST_ACTIONS = 18
"""Actions of an agent. Chosen: Atari has so many."""
_GUESSED = (2, 3, 4, 5, 10, 100, 1000)
"""Usual numbers of classes."""


def at_bounds(run: Run) -> Iterator[DerivedFact]:
    """Yield losses that rest at the loss of a guess, and shares that are at their ceiling from their first record."""
    uniform = uniform_loss(run)
    bounds = {math.log(2): "ln 2", **({} if uniform is None else {uniform: f"ln {round(math.exp(uniform)):,}"})}
    bounds |= {math.log(guess): f"ln {guess}" for guess in _guesses(run)}
    if any(run.with_role(*ERRORS_OF_VALUES, parts=True)):
        bounds = {}  # values are predicted, and no classes are guessed
    resting: dict[float, list[Series]] = {}
    for series in columns_of(run, *LOSSES):
        for bound in [bound for bound in bounds if _rests_at(series, bound)][:1]:
            resting.setdefault(bound, []).append(series)
    for bound, several in resting.items():
        series = several[0]
        since, off = _since(series, bound), abs(median(tail(series)) / bound - 1)
        text = (
            f"{' and '.join(map(named, several[:2]))} {'rests' if len(several) == 1 else 'rest'} at "
            f"{figure(median(tail(series)))} = {bounds[bound]} to within {100 * off:.2g} % from "
            f"{run.place(since)} on. "
            "That is the loss of equal probabilities for all classes"
        )
        (share, _), fact = _share_of_ones(run), "rests_at_bound"
        if bound == math.log(2) and share is not None:
            entropy = _loss_of_guess(share)
            if entropy < (1 - RESTS_FOR) * bound:
                fact = "worse_than_constant"
                text += f"; with {percent(share)} of the labels 1, the constant guess alone reaches {figure(entropy)}"
        yield DerivedFact.model_construct(
            fact=fact, text=text + ".", values={"bound": bound, "off": off}, steps=[since]
        )
    if run.kind in POLICIES or "loss" not in run:
        return
    for series in columns_of(run, Quantity.AUC, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        if float(series.value.min()) == 1.0:
            first = float(series.step[0])
            yield DerivedFact.model_construct(
                fact="at_ceiling",
                text=(
                    f"{named(series)} is exactly 1 at all {len(series)} evaluations, from {run.place(first)} on. A "
                    "score that is learnt begins below it, and few tasks end there."
                ),
                steps=[first],
            )


_AT_MOST_ONE = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.IOU, Quantity.DICE, Quantity.AUC,
    Quantity.PRECISION, Quantity.RECALL, Quantity.AVERAGE_PRECISION,
)  # fmt: skip
OF_A_SHARE = 0.3
"""What another score reaches below one, so that the log has shares and no per cent. Chosen."""


def beyond_one(run: Run) -> Iterator[DerivedFact]:
    """Yield a score of evaluation above one, the most that it can be, where the other scores are shares."""
    scores = columns_of(run, *_AT_MOST_ONE, phase="eval", least=LEAST_PAIRS)
    shares = [series for series in scores if OF_A_SHARE <= float(series.value.max()) <= 1]
    for series in scores:
        last, most = median(tail(series)), float(series.value.max())
        if shares and last > 1 and 1 + EXACT < most <= MOST_BEYOND_ONE:
            yield DerivedFact.model_construct(
                fact="beyond_one",
                text=(
                    f"{named(series)} goes up to {figure(most)} and is about {figure(last)} at the end. It is at most "
                    f"1, and {named(shares[0])} is a share of one as well ({figure(float(shares[0].value[-1]))})."
                ),
                values={"highest": most, "last": last},
            )
            return


def uniform_policy(run: Run) -> Iterator[DerivedFact]:
    """Yield that the entropy of an agent rests at that of equal probabilities for all actions."""
    if run.kind != "rl":
        return
    for series in columns_of(run, Quantity.ENTROPY, phase="train", least=MIN_RECORDS_FOR_LEVEL):
        actions = next((count for count in range(2, MOST_ACTIONS + 1) if _rests_at(series, math.log(count))), 0)
        if actions:
            level = median(tail(series))
            yield DerivedFact.model_construct(
                fact="uniform_policy",
                text=(
                    f"{named(series)} rests at {figure(level)} = ln {actions}, the entropy of equal probabilities for "
                    f"{actions} actions: the agent acts at random. Where it learns, that falls."
                ),
                values={"actions": float(actions), "entropy": level},
            )
            return


def _guesses(run: Run) -> list[int]:
    """Return numbers of classes that a share which never moves tells: 0.1 of ten, where it is exact."""
    found = []
    for series in columns_of(run, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        level = median(series.value)
        if np.ptp(series.value) <= 0.02 and 0 < level <= 0.5:
            found += [count for count in _GUESSED if abs(level * count - 1) <= 0.05]
    return found


def _rests_at(series: Series, bound: float) -> bool:
    later = tail(series)
    if len(series) < LEAST_PAIRS or abs(median(later) / bound - 1) > EXACT:
        return False
    return bool(np.quantile(np.abs(later / bound - 1), 0.9) <= 3 * EXACT)


def _since(series: Series, bound: float) -> float:
    """Return the step from which a column stays near a bound."""
    away = np.flatnonzero(np.abs(series.value / bound - 1) > 5 * EXACT)
    first = 0 if not len(away) else min(int(away[-1]) + 1, len(series) - 1)
    return float(series.step[first])


def _loss_of_guess(share: float, classes: int = 2) -> float:
    """Return the cross-entropy in nats of a guess that gives one class its share, and the others equal parts."""
    return -share * math.log(share) + (1 - share) * (math.log(classes - 1) - math.log(1 - share))


_ONES_OF_LABELS = regex(
    r"(?:^|[/_.-])(?:gt|labels?|masks?|targets?|truth)[/_.-](?:fg|foreground|ones|pos(?:itives?)?)[/_.-]"
    r"(?:frac(?:tion)?|mean|ratio|share)$",
    re.IGNORECASE,
)
"""A column that says which share of the labels is 1, or of the pixels is of the foreground."""


def _share_of_ones(run: Run) -> tuple[float | None, str]:
    """Return which share of the labels is 1, and what says so: a column of shares that never moves."""
    for name, series in run.series.items():
        is_mean = "label" in name.lower() and "mean" in name.lower()
        if (is_mean or _ONES_OF_LABELS.search(name)) and len(series.finite):
            share = median(series.finite.value)
            return (share, "the mean of the labels" if is_mean else named(series)) if 0 < share < 1 else (None, "")
    return None, ""


_POSITIVE = regex(r"(?:^|[/_.-])(?:pos(?:itives?)?[_-](?:share|rate|frac(?:tion)?|ratio)|prevalence)$", re.IGNORECASE)
"""A setting that says which share of the labels is 1."""
AS_MAJORITY = 0.01
"""How far an accuracy is off the share of the larger class. Chosen: the error of 2,000 rows."""
CLEAR_MAJORITY = 0.6
"""The least share of the larger class. Chosen: answers by chance come near a smaller one."""
RARE = 0.1
"""Share of a class that is rare. Chosen: a model that learns nothing else answers with the other class."""
OF_RARE = 0.1
"""Share of the rare class by which an accuracy is off at most where that class is never answered. Chosen."""


def majority(run: Run) -> Iterator[DerivedFact]:
    """Yield an accuracy that stays at the share of the larger of two classes."""
    share, source = _share_of_ones(run)
    if share is None:
        share, source = _configured_share(run)
    larger = 0.0 if share is None else max(share, 1 - share)
    if share is None or larger < CLEAR_MAJORITY:
        return
    for series in columns_of(run, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        later = as_shares(series.value)[len(series) // 2 :]
        off = float(np.abs(later - larger).max())
        if off > AS_MAJORITY:
            continue
        is_rare = 1 - larger <= RARE and off <= OF_RARE * (1 - larger)
        loss_text = ""
        if "eval_loss" in run and len(evaluation := run["eval_loss"].finite):
            loss_text = f", and {named(evaluation)} ends at {figure(float(evaluation.value[-1]))}"
        yield DerivedFact.model_construct(
            fact="rare_class_unanswered" if is_rare else "accuracy_of_majority",
            text=(
                f"{named(series)} is {_from_to(later)} in the later half of {len(series)} evaluations; {source} is "
                f"{figure(share)}, so one answer for all rows is right in {figure(larger)}. Guessed by that share it "
                f"has a loss of {figure(_loss_of_guess(share))}{loss_text}."
            ),
            values={"larger": larger, "last": float(later[-1])},
        )
        return


def _from_to(values: Floats) -> str:
    low, high = figure(float(values.min())), figure(float(values.max()))
    return low if low == high else f"{low} to {high}"


def _configured_share(run: Run) -> tuple[float | None, str]:
    """Return which share of the labels is 1 by the settings, and the name of the setting."""
    for name in run.settings:
        value = run.setting(name) if _POSITIVE.search(name) else None
        if value is not None and 0 < value < 1:
            return value, name
    return None, ""


# A length that stands at its limit.


NEAR_LIMIT = 0.85
"""Share of the limit that the mean length comes to. Chosen."""
MANY_CUT = 0.3
"""Share of completions that are cut. Chosen."""
ALL_CUT = 0.97
"""Share of completions that are cut from which on hardly one ends by itself, which no limit explains. Chosen."""


def at_limit(run: Run) -> Iterator[DerivedFact]:
    """Yield that completions reach their limit, with the share that is cut."""
    cut = columns_of(run, Quantity.CLIPPED_COMPLETIONS, phase="train")
    lengths = columns_of(run, Quantity.COMPLETION_LENGTH, phase="train")
    limit = run.setting("max_completion_length")
    if not cut or len(cut[0]) < MIN_RECORDS_FOR_LEVEL or median(cut[0].value) < MANY_CUT:
        return
    text = f"{percent(median(cut[0].value))} of the completions are cut at their limit (median of {len(cut[0])} records"
    text += f"; {percent(median(tail(cut[0])))} lately)"
    if lengths:
        text += f"; the mean length is {figure(median(tail(lengths[0])))}" + (
            f" of at most {figure(limit)}" if limit else ""
        )
    longer = columns_of(run, Quantity.COMPLETION_LENGTH, phase="eval")
    if longer and lengths and median(longer[0].value) > median(lengths[0].value) / NEAR_LIMIT:
        text += f", and {figure(median(longer[0].value))} in evaluation"
    yield DerivedFact.model_construct(
        fact="cut_at_limit" if median(cut[0].value) < ALL_CUT else "none_ends",
        text=f"{text}. What is cut before its answer earns nothing; a few per cent are expected.",
        values={"share": median(cut[0].value)},
    )


# How much of a policy's ratios is clipped, against what healthy policies have.


MOST_CLIPPED = 0.15
"""Median share from which on a policy is clipped more than any healthy one of the data set."""
HEALTHY_CLIPPED = (56, 0.044, 0.13)
"""Healthy policies of the data set that log it, the 95 % quantile of their medians, and the highest. Counted."""


def much_clipped(run: Run) -> Iterator[DerivedFact]:
    """Yield a share of clipped ratios that no healthy policy of the data set has."""
    columns = columns_of(run, Quantity.CLIP_FRACTION, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    most = max(columns, key=lambda series: median(series.value), default=None)
    if most is None or median(most.value) < MOST_CLIPPED:
        return
    count, usual, highest = HEALTHY_CLIPPED
    yield DerivedFact.model_construct(
        fact="much_clipped",
        text=(
            f"{named(most)} is about {figure(median(most.value))} (median of {len(most)} records): so many ratios to "
            f"the policy that sampled are clipped. Of {count} healthy policies that were trained for comparison 95 % "
            f"have a median of at most {figure(usual)}, and none above {figure(highest)}."
        ),
        values={"share": median(most.value), "usual": usual},
    )


# What grows all the way: by the same amount at each step, or ever more slowly.


ORDERED = 0.9
"""Rank correlation with the step. Chosen."""
STRAIGHT = 0.95
"""Share of the variance that a straight line explains. Chosen."""
GROWS = 3.0
"""Factor of the growth. Chosen."""


def growing(run: Run) -> Iterator[DerivedFact]:
    """Yield gradient norms that grow all the way while the loss does not rise."""
    if (loss := training_loss(run, MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)) is None:
        return
    began, ends = median(loss.value[:LEAST_PAIRS]), median(loss.value[-LEAST_PAIRS:])
    if ends > began:
        return
    for series in columns_of(run, Quantity.GRADIENT_NORM, least=2 * MIN_RECORDS_FOR_LEVEL):
        if series.role is None or not series.role.is_whole:
            continue
        ordered = monotone(sample(series.value))
        tenth = max(LEAST_PAIRS, len(series) // 10)
        first, last = median(series.value[:tenth]), median(series.value[-tenth:])
        if ordered < ORDERED or first <= 0 or last < GROWS * first:
            continue
        line = np.polyval(np.polyfit(series.step, series.value, 1), series.step)
        explained = 1 - float(np.var(series.value - line) / np.var(series.value))
        how = "in a straight line" if explained >= STRAIGHT else "nearly without a break"
        yield DerivedFact.model_construct(
            fact="norm_grows",
            text=(
                f"{named(series)} grows {how} from {figure(first)} to {figure(last)} (medians of {tenth} records, rank "
                f"correlation with the step {ordered:.2f}) while the loss goes from {figure(began)} to {figure(ends)}. "
                "The gradient of fresh rows keeps its size or shrinks as the loss falls; a sum that is carried from "
                "step to step grows."
            ),
            values={"from": first, "to": last, "order": ordered},
        )


# What a curve does where a run goes on from a checkpoint, and right after the first evaluation.


BEFORE = 8
"""Records before an event. Chosen."""
AFTER = 4
"""Records after an event. Chosen."""
SIGMAS = 5.0
"""Standard errors by which those records part. Chosen."""
LEAST_MOVE = 0.1
"""Share of the level by which those records part. Chosen."""
MOST_RESUMES = 2
"""Resumes that are stated. Chosen: the first one is the purest."""
SHOWN_AFTER = 3
"""Values after a resume that are stated. Chosen."""
JUMPS = 1.5
"""Times the value before by which a rate or a loss scale jumps. Chosen."""
ON_COURSE = 1.25
"""Times the value before by which a rate or a loss scale goes on. Chosen: a schedule does."""
_STATE = (Quantity.LEARNING_RATE, Quantity.LOSS_SCALE)
_COUNTS = (Quantity.EPOCH, Quantity.SAMPLES_SEEN, Quantity.TOKENS_SEEN)
_PACE = (Quantity.STEP_TIME, *sorted(THROUGHPUTS))


def around_resumes(run: Run) -> Iterator[DerivedFact]:
    """Yield what rate, scale, loss, gradient norm, counters and pace are before and after a resume, in one line."""
    restart = restart_of_data(run)
    steps = {*run.resumes, *(segment.first_step for segment in run.segments[1:])}
    steps |= set() if restart is None else {restart[0]}
    for step in sorted(steps)[:MOST_RESUMES]:
        pace = next((quantity for quantity in _PACE if _sides(run, quantity, step)), Quantity.STEP_TIME)
        wanted = (*_STATE, Quantity.LOSS, Quantity.GRADIENT_NORM, *_COUNTS, pace)
        sides = {quantity: pair for quantity in wanted if (pair := _sides(run, quantity, step)) is not None}
        if not sides:
            continue
        off_course = [quantity for quantity, pair in sides.items() if _leaves_course(quantity, *pair)]
        first = sorted(sides, key=lambda quantity: quantity not in off_course)
        lines = [_side_by_side(quantity, *sides[quantity]) for quantity in first]
        moved = [named(sides[quantity][0]) for quantity in off_course]
        off = f" Off course: {', '.join(moved)}." if moved else ""
        rises = Quantity.LOSS in off_course and _is_above(*sides[Quantity.LOSS])
        yield DerivedFact.model_construct(
            fact="rises_at_resume" if rises else "moves_at_resume" if moved else "around_resume",
            text=(
                f"Up to {BEFORE} records before | the first after the resume at {run.place(step)}: {'; '.join(lines)}."
                f"{off} A whole state goes on where it was."
            ),
            values={"moved": float(len(moved))},
            steps=[step],
        )
        if not moved:
            return


def _is_above(before: Series, after: Series) -> bool:
    """Say whether a curve goes on above all of its last values: rows that were seen before would let a loss fall."""
    return float(after.value[0]) > float(before.value[-BEFORE:].max())


def _sides(run: Run, quantity: Quantity, step: float) -> tuple[Series, Series] | None:
    """Return the values of a quantity before a resume and after it; None where it is not logged on both sides."""
    found = next(
        (series for series in columns_of(run, quantity, phase="train") if series.role and series.role.is_whole), None
    )
    if found is None:
        return None
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
    level = figure(float(before.value[-1])) if is_exact else _from_to(before.value[-BEFORE:])
    shown = [figure(value) for value in after.value[:SHOWN_AFTER].tolist()]
    return f"{named(before)} {level} | {', '.join(shown if len(set(shown)) > 1 else shown[:1])}"


def _leaves_course(quantity: Quantity, before: Series, after: Series) -> bool:
    """Say whether a quantity jumps, a counter falls back, or a curve parts from its line."""
    if quantity in _COUNTS:
        return float(after.value[0]) < float(before.value[-2])
    if quantity in _STATE:
        course = np.abs(np.concatenate([before.value[-LEAST_PAIRS:], after.value[:AFTER]]))
        times = np.abs(np.diff(np.log(np.maximum(course, 1e-30))))
        at = LEAST_PAIRS - 1
        return bool(times[:at].max() <= math.log(ON_COURSE) and times[at:].max() >= math.log(JUMPS))
    parted = _parts_from_line(before, after) if quantity in (Quantity.LOSS, Quantity.GRADIENT_NORM) else None
    return parted is not None and (parted[1] - parted[0]) * parted[2] > 0


def at_first_evaluation(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss rises from its line right after the first evaluation."""
    loss = training_loss(run)
    if loss is None or "eval_loss" not in run or len(run["eval_loss"]) < 2:
        return
    step = float(run["eval_loss"].step[0])
    resumes = {*run.resumes, *(segment.first_step for segment in run.segments[1:])}
    moved = _parts_from_line(loss.where(loss.step <= step), loss.where(loss.step > step))
    if step in resumes or moved is None or moved[2] < 0 or moved[1] < moved[0]:
        return  # a fall that quickens, or one that slows down: both are usual
    yield DerivedFact.model_construct(
        fact="moves_at_event",
        text=(
            f"{named(loss)} is {figure(moved[0])} in the {BEFORE} records before the first evaluation at "
            f"{run.place(step)} and {figure(moved[1])} in the {AFTER} after it, {figure(moved[2])} off its line. An "
            "evaluation changes nothing of training."
        ),
        values={"before": moved[0], "after": moved[1], "off": moved[2]},
        steps=[step],
    )


def _parts_from_line(before: Series, after: Series) -> tuple[float, float, float] | None:
    """Return the means before and after, and how far the line through the records before is missed, if it is."""
    if len(before) < BEFORE or len(after) < AFTER:
        return None
    step, value = before.step[-BEFORE:], before.value[-BEFORE:]
    later, value_after = after.step[:AFTER], after.value[:AFTER]
    slope, start = np.polyfit(step, value, 1)
    noise = float(np.std(value - (start + slope * step), ddof=2))
    spread = float(np.sum((step - step.mean()) ** 2))
    error = noise * math.sqrt(1 / AFTER + 1 / BEFORE + float(later.mean() - step.mean()) ** 2 / spread)
    off = float(np.mean(value_after - (start + slope * later)))
    level = abs(float(value.mean()))
    from_level = abs(float(value_after.mean()) - float(value.mean()))
    if abs(off) <= max(SIGMAS * error, LEAST_MOVE * level) or from_level <= LEAST_MOVE * level:
        return None
    return float(value.mean()), float(value_after.mean()), off


# Saw-teeth: what recurs with a period, and which setting has it.


CYCLES = 4
"""Periods in a log. Chosen."""
EXPLAINS = 0.5
"""Share of the variance without the trend that the place in the period explains. Chosen: of noise it explains period /
records, a quarter at most."""
LEAST_PERIOD = 3
"""Records of the shortest period. Chosen."""
MOST_OF_PERIODS = 4000
"""Records at the end that are looked at: a bound on what it costs."""
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


def periods(run: Run) -> Iterator[DerivedFact]:
    """Yield columns that go up and down with a period, with the setting of that period."""
    found = [
        (series, period) for series in columns_of(run, *_SAWS, phase="train") if (period := _period(series)) is not None
    ]
    if not found:
        return
    series, (records, explained) = max(found, key=lambda item: item[1][1])
    interval = median(np.diff(series.step))
    steps = records * interval
    known = {name: run.setting(name) for name in _PERIODS} | {"a pass over the data": run.facts.steps_per_pass}
    same = [name for name, value in known.items() if value and abs(value - steps) <= 0.5 * interval]
    as_long = f"; {same[0]} is as long" if same else ""
    others = [named(other) for other, (length, _) in found if other is not series and length == records][:2]
    yield DerivedFact.model_construct(
        fact="recurs_with_period",
        text=(
            f"{named(series)}{''.join(f' and {other}' for other in others)} goes up and down every {figure(steps)} "
            f"{run.step_name}s (the place in that period explains {percent(explained)} of what it varies by){as_long}. "
            "Rows in a new order each time leave no period."
        ),
        values={"period": steps, "explained": explained},
    )


def _period(series: Series) -> tuple[int, float] | None:
    """Return the period in records, and the share of the variance that it explains; None where nothing recurs."""
    count = len(series)
    value, step = series.value[-MOST_OF_PERIODS:], series.step[-MOST_OF_PERIODS:]
    if count < CYCLES * LEAST_PERIOD + MIN_RECORDS_FOR_LEVEL or np.ptp(np.diff(step)) > 0:
        return None
    half = max(2, len(value) // 20)
    trend = np.convolve(np.pad(value, half, mode="edge"), np.ones(2 * half + 1) / (2 * half + 1), mode="valid")
    left = value - trend
    if float(np.std(left)) <= 1e-12 * (1 + float(np.max(np.abs(value)))):
        return None
    best: tuple[int, float] | None = None
    sums, squares = np.cumsum(left), np.cumsum(left * left)  # many columns have many periods: `np.var` takes long
    for period in range(LEAST_PERIOD, min(len(left) // CYCLES, LONGEST_PERIOD) + 1):
        cycles = len(left) // period
        size = cycles * period
        mean = sums[size - 1] / size
        places = left[:size].reshape(cycles, period).sum(axis=0) / cycles
        explained = float((places @ places / period - mean * mean) / (squares[size - 1] / size - mean * mean))
        beyond = explained - 3 * (period / size)
        if beyond > EXPLAINS and (best is None or explained > best[1] + 0.1):
            best = (period, explained)
    return best


# What passes over the data, guesses and the format of numbers allow.


FAR_BELOW = 0.08
"""Share of ln(vocabulary) that no model of text reaches on new rows. Chosen: good ones keep a sixth."""
MOST_CLASSES = 1000
"""Classes of a classifier, where they are unknown. Chosen: ImageNet's."""
LEAST_RIGHT = 0.5
"""Share of right answers from which the loss of a classifier is compared. Chosen."""
MOST_RIGHT = 0.95
"""Share of right answers up to which it is. Chosen: where nearly all is right, other terms of a loss exceed that of a
guess."""
BEYOND_GUESS = 1.6
"""Times the loss of a guess. Chosen: overfitted models stay below."""
_OF_TWO_CLASSES = ("binary", "logloss", "log_loss")
"""Parts of names of a loss that is a mean over two classes; `bce` often is a sum over pixels or parts."""
_CROSS_ENTROPY = regex(r"cross_?entropy|xent|(?:^|[/_.])(?:ce|nll)(?:$|[/_.])|mlogloss", re.IGNORECASE)
"""What the name of a mean cross-entropy holds."""
TIMES_AS_UNLIKELY = 2.0
"""Times the nats of chosen answers from which on they are lost. Chosen: see the text of the fact."""
LEAST_NATS = 50.0
"""Nats more from which on they are lost. Chosen: see the text of the fact."""
OF_CONSTANT = 0.97
"""Share of the loss of the constant guess that no evaluation goes below where nothing was learnt. Chosen: the error of
the label mean of 500 rows."""


NEAR_FLOOR = 0.05
"""Share of the floor by which a loss that has come near it lies above. Chosen."""
MOST_OF_WAY = 2 / 3
"""Share of the way to the floor that it has come. Chosen."""
BELOW_FLOOR = 0.9
"""Share of the floor below which no evaluation comes by chance. Chosen."""


_BEST = regex(r"(?:^|[_/ (])(?:oracle|bayes|irreducible|floor)(?:[_/ ()]|$)", re.IGNORECASE)
"""What the name of a column holds that says what the best of all models reaches."""


def _floor_of_best(run: Run) -> tuple[float, str]:
    """Return a loss that the log gives for the best of all models, the same at each evaluation, and its name."""
    for name, series in run.series.items():
        of_loss = series.role is None or series.role.quantity in LOSSES
        value = series.finite.value
        if of_loss and _BEST.search(name) and len(value) >= LEAST_PAIRS and np.ptp(value) == 0 and value[0] > 0:
            return float(value[0]), named(series)
    return 0.0, ""


def data_floor(run: Run) -> Iterator[DerivedFact]:
    """Yield how the loss of evaluation ends at the least that the log says any model of the data can have."""
    set_to, loss = run.setting("loss_floor"), training_loss(run, not_of=NOT_BY_LOSS)
    floor, source = (set_to, "the entropy of the data") if set_to else _floor_of_best(run)
    if not floor or loss is None or "eval_loss" not in run or not len(evaluation := run["eval_loss"].finite):
        return
    start, end = float(loss.value[0]), float(evaluation.value[-1])
    text = f"{named(evaluation)} ends at {figure(end)}, and {source} is {figure(floor)} by the log."
    values = {"floor": floor, "end": end, "start": start}
    if end < BELOW_FLOOR * floor and set_to:
        why = " On new rows no model gets below it: the answers are in its input, or the rows in its training data."
        yield DerivedFact.model_construct(fact="below_data_floor", text=text + why, values=values)
    elif end - floor <= NEAR_FLOOR * floor and start - end >= MOST_OF_WAY * (start - floor):
        way = f" That is {percent((start - end) / (start - floor))} of the way from {figure(start)}: little is left."
        yield DerivedFact.model_construct(fact="near_data_floor", text=text + way, values=values)


_ANSWERS_ALONE = regex(
    r"(?:completions?|assistants?|answers?|responses?|repl(?:y|ies))_only(?:_loss)?|mask_(?:prompt|input)s?",
    re.IGNORECASE,
)
"""What a flag is called that leaves all but answers out of the loss."""
_LOSS_ON = regex(r"(?:loss|train|trained)_on", re.IGNORECASE)
_OF_ANSWERS = regex(r"(?:answers?|completions?|responses?|assistants?|repl(?:y|ies))(?:[ _-]?only)?", re.IGNORECASE)
"""The value of a setting that says what the loss is on, where that is answers alone."""


def prompts_count_unmeant(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss counts more tokens than those of answers, though a setting leaves it on answers alone."""
    counts = None if run.kind in POLICIES else prompts_counted(run)
    meant = [
        setting
        for setting in run.settings.values()
        if (_ANSWERS_ALONE.fullmatch(key := setting.key.rpartition("/")[2]) and flag_of(setting.value))
        or (_LOSS_ON.fullmatch(key) and _OF_ANSWERS.fullmatch(str(setting.value)))
    ]
    if counts is not None and meant:
        yield DerivedFact.model_construct(
            fact="prompts_count_unmeant",
            text=f"{counts.summary}. But {meant[0].key} is {str(meant[0].value).lower()}.",
            values=dict(counts.values),
        )


def too_low_for_one_pass(run: Run) -> Iterator[DerivedFact]:
    """Yield a loss on tokens that no model has on rows that it has not seen before."""
    uniform, loss = uniform_loss(run), training_loss(run, MIN_RECORDS_FOR_LEVEL)
    if uniform is None or run.facts.tokens is None or loss is None:
        return
    low, passes = median(tail(loss)), passes_at(run, loss.step[-1:])
    if passes is None or float(passes[0]) > 1 or not 0 < low < FAR_BELOW * uniform:
        return
    yield DerivedFact.model_construct(
        fact="too_low_for_one_pass",
        text=(
            f"{named(loss)} comes down to {figure(low)}, {percent(low / uniform)} of ln {round(math.exp(uniform)):,}, "
            f"within {figure(float(passes[0]))} passes over the data. No row was seen twice, and on new text good "
            "models keep a tenth or more of that."
        ),
        values={"loss": low, "passes": float(passes[0])},
    )


AT_CHANCE = 0.05
"""Share by which a first loss is off that of a guess. Chosen: a new head is so near."""
_LOADED = regex(
    r"(?:^|[/_.-])(?:init_from|(?:fine_?tuned?|load|warm_?start|initiali[sz]ed?)_from|model_name_or_path|"
    r"(?:init|initial|base|pretrained)_(?:checkpoint|weights|ckpt|model))$",
    re.IGNORECASE,
)
"""Settings that name the weights that a model begins with."""
_NOTHING = ("", "scratch", "none", "null", "random", "false", "0")


def untrained(run: Run) -> Iterator[DerivedFact]:
    """Yield that a model which settings say comes trained begins with the loss of a guess."""
    loaded = [setting for name, setting in run.settings.items() if _LOADED.search(name)]
    loading_setting = next((setting for setting in loaded if str(setting.value).lower() not in _NOTHING), None)
    uniform, loss = uniform_loss(run), training_loss(run, not_of=NOT_BY_LOSS)
    if loading_setting is None or uniform is None or loss is None or abs(loss.value[0] / uniform - 1) > AT_CHANCE:
        return
    of_first_pass = run.step_name == "epoch" and float(loss.step[0]) <= 1  # a mean over it is lower yet
    if not of_first_pass and is_late(run, float(loss.step[0]), AT_ONCE, LOSS_START_FIRST_STEPS):
        return
    first, count = float(loss.value[0]), f"{math.exp(uniform):,.0f}"
    head = "" if run.facts.tokens else ", unless its last layer is new"
    yield DerivedFact.model_construct(
        fact="starts_untrained",
        text=(
            f"by the setting {loading_setting.name} the model comes trained, and the first {named(loss)} is "
            f"{figure(first)} at {run.place(float(loss.step[0]))}, that of a guess: ln {count} = {figure(uniform)}. A "
            f"trained model begins below{head}."
        ),
        values={"first": first, "uniform": uniform},
        steps=[float(loss.step[0])],
    )


_LOSS_AS_LOADED = regex(
    r"(?:^|[/_.-])(?:init|initial|ckpt|checkpoint|pretrained)[/_.-](?:[a-z]{1,12}[/_.-]){0,3}(?:loss|nll)$",
    re.IGNORECASE,
)
"""A setting that says what loss the weights have with which a run begins."""
SURER = 1.3
"""Times the loss of a guess beyond which a model is sure of wrong answers. Chosen: weights that were not loaded begin
within it."""


def above_checkpoint(run: Run) -> Iterator[DerivedFact]:
    """Yield that a run whose weights are known to be good begins far above the loss of a guess.

    Weights that were not loaded begin at a guess, which `untrained` states.
    """
    stated = [(name, run.setting(name)) for name in run.settings if _LOSS_AS_LOADED.search(name)]
    name, before = next(((name, loss) for name, loss in stated if loss and loss > 0), ("", 0.0))
    uniform, loss = uniform_loss(run), training_loss(run, not_of=NOT_BY_LOSS)
    if not before or uniform is None or before > uniform or loss is None:
        return
    evaluations = columns_of(run, Quantity.LOSS, phase="eval")
    series = min([loss, *evaluations], key=lambda series: float(series.step[0]))
    first, step = float(series.value[0]), float(series.step[0])
    if is_late(run, step, AT_ONCE, LOSS_START_FIRST_STEPS) or first < SURER * uniform:
        return
    yield DerivedFact.model_construct(
        fact="surer_than_guess_as_loaded",
        text=(
            f"{name} is {figure(before)}, and the first {named(series)} is {figure(first)} at {run.place(step)}. "
            f"Weights that were not loaded begin at that of a guess, {figure(uniform)}. A trained model that is so "
            "sure of wrong tokens is given other ids for them than those it learnt."
        ),
        values={"before": before, "first": first, "uniform": uniform},
        steps=[step],
    )


TIMES_A_GUESS = 10.0
"""A first loss so many times that of a guess. Chosen: a trained model has two to five times as much on tokens that do
not fit."""


def far_beyond_guess(run: Run) -> Iterator[DerivedFact]:
    """Yield that the first loss is many times that of a guess, as of outputs on far too large a scale."""
    uniform, loss = uniform_loss(run), training_loss(run, not_of=NOT_BY_LOSS)
    if uniform is None or loss is None or loss.value[0] < TIMES_A_GUESS * uniform:
        return
    if is_late(run, float(loss.step[0]), AT_ONCE, LOSS_START_FIRST_STEPS):
        return
    first = float(loss.value[0])
    yield DerivedFact.model_construct(
        fact="first_loss_far_beyond_guess",
        text=(
            f"the first {named(loss)} is {figure(first)} at {run.place(float(loss.step[0]))}, "
            f"{figure(first / uniform)} times that of a guess, {figure(uniform)}. Tokens or labels that do not fit "
            "leave a few times that of a guess. So much takes outputs on far too large a scale, or a sum as the loss."
        ),
        values={"first": first, "uniform": uniform},
        steps=[float(loss.step[0])],
    )


def base_rate(run: Run) -> Iterator[DerivedFact]:
    """Yield that no evaluation is better than the constant guess of the share of ones in the labels."""
    share, _ = _share_of_ones(run)
    if share is None or "eval_loss" not in run or len(run["eval_loss"].finite) < LEAST_PAIRS:
        return
    evaluation = run["eval_loss"].finite
    entropy = _loss_of_guess(share)
    best, last = float(evaluation.value.min()), float(evaluation.value[-1])
    if not OF_CONSTANT * entropy <= best <= 2 * entropy:
        return
    areas = columns_of(run, Quantity.AUC, phase="eval", least=LEAST_PAIRS)
    also = f"; {named(areas[0])} ends at {figure(float(areas[0].value[-1]))}, and chance has 0.5" if areas else ""
    yield DerivedFact.model_construct(
        fact="no_better_than_constant",
        text=(
            f"{figure(100 * share)} % of the labels are 1, so the constant guess has a loss of {figure(entropy)}; "
            f"{named(evaluation)} is {figure(best)} at its best and {figure(last)} at the end{also}. Inputs that tell "
            "of the labels bring it below."
        ),
        values={"constant": entropy, "best": best},
    )


def beyond_guess(run: Run) -> Iterator[DerivedFact]:
    """Yield a loss that stays far above that of a guess whose answers are as often right, whatever the classes.

    Its name has to say that it is a mean cross-entropy: a plain loss may hold sums over parts, CTC or penalties.
    """
    if run.kind in NOT_BY_LOSS:
        return
    losses = columns_of(run, *LOSSES)
    stated = [
        (series, math.log(2), "two classes that are guessed have")
        for series in losses
        if any(word in named(series).lower() for word in _OF_TWO_CLASSES)
    ]
    for series in losses:
        score = "eval_accuracy" if _is_evaluation(series) else "accuracy"
        if score in run and len(run[score].finite) and _CROSS_ENTROPY.search(named(series)):
            share = median(tail(run[score].finite))
            if LEAST_RIGHT <= share <= MOST_RIGHT:
                most = _loss_of_guess(share, MOST_CLASSES)
                guess = f"answers of which {percent(share)} are right have, over {MOST_CLASSES:,} classes and guessed,"
                stated.append((series, most, guess))
    for series, bound, guess in stated:
        later = series.value[len(series) // 2 :]
        if len(series) < MIN_RECORDS_FOR_LEVEL or not bool(np.all(later > BEYOND_GUESS * bound)):
            continue
        yield DerivedFact.model_construct(
            fact="evaluation_worse_than_any_guess" if _is_evaluation(series) else "worse_than_any_guess",
            text=(
                f"{named(series)} is {figure(float(later.min()))} to {figure(float(later.max()))} in the later half of "
                f"{len(series)} records; {guess} {figure(bound)} at most. Weights that are too large make wrong "
                "answers so sure."
            ),
            values={"lowest": float(later.min()), "guess": bound},
        )
        return


def _is_evaluation(series: Series) -> bool:
    return series.role is not None and series.role.is_evaluation


def logps_multiplied(run: Run) -> Iterator[DerivedFact]:
    """Yield log-probabilities of chosen answers that sink to a multiple of what they began with."""
    if run.kind != "preference":
        return
    for series in (run[name].finite for name in ("logps/chosen", "eval_logps/chosen") if name in run):
        if len(series) < LEAST_PAIRS:
            continue
        first, last = float(series.value[0]), median(series.value[-LEAST_PAIRS:])
        if not (first < 0 and last < TIMES_AS_UNLIKELY * first and first - last > LEAST_NATS):
            continue
        yield DerivedFact.model_construct(
            fact="logps_multiplied",
            text=(
                f"{named(series)} sinks from {figure(first)} to about {figure(last)}, {figure(last / first)} times as "
                "many nats: the model hardly writes the answers that it is to prefer. They lose a few nats where "
                "preferences are learnt."
            ),
            values={"first": first, "last": last},
        )
        return
