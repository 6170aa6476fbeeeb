"""What does the loss do where the run was resumed, or where its data may have started over?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import (
    MAX_LISTED_STEPS,
    Answers,
    CannotTell,
    Evidence,
    answers_of,
    by_outcome,
    outcome_of,
    question,
    require_values,
)
from mldebug_mcp.checks.curve import finite_of, noise, row_medians, start_level
from mldebug_mcp.checks.evaluation import refuse_new_terms
from mldebug_mcp.checks.learning_rate import rate_comes_back
from mldebug_mcp.core.arrays import are_whole, median, median_gap
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import figure, ratio, shorten
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series

# Where one stretch of a run goes on from another, and what the loss, the gradient and the rate do there.


JOIN_LEVEL_RECORDS = 10
"""Records before a join that stand for the level there; of those after it, half as many. Chosen: a jump may recover."""
JOIN_TREND_RECORDS = 40
"""Records before a join whose trend goes on behind it. Chosen: over fewer the noise makes a trend of its own."""
MAX_REPORTED_RESUMES = 20
"""Resumes that a log reports, at most. Chosen: more are the run's habit, and no news."""
MIN_MISSING_GAP_RATIO = 5.0
"""Times the usual distance between records: so long a gap in steps is a missing part of the log. Chosen: by hand."""
STRETCHES = (5, 7, 10, 14, 20, 28, 40, 56, 80)
"""Records after a join that are tried for the length of a dip. Chosen: each is about 1.4 times the one before."""
MAX_RECORDS_BEFORE_JOIN = 20
"""Records before a join whose level a dip is compared with. Chosen: by hand."""
RESUMES_BACK = 0.05
"""Of a pass, by which the epoch falls back, and that a whole pass is away. Chosen: counts are rounded by less."""
FIRST_LEFT = 0.05
"""Of the stretch before: a segment starts behind this part of it. Chosen: else it is another run."""


@dataclass(frozen=True, slots=True)
class Dip:
    """A stretch after a resume in which the loss is lower than before, and from which it comes back.

    Args:
        records: Length of the stretch.
        low: Level of it.
        back: Level behind it.
        depth: By how much it lies below what comes before and behind, whichever is less.
        error: Standard error of the depth.
    """

    records: int
    low: float
    back: float
    depth: float
    error: float


@dataclass(frozen=True, slots=True)
class Join:
    """Where one stretch of a run goes on from another.

    Args:
        step: First step after the join.
        before, after: Level of the loss on either side.
        jump: What their difference has beyond the trend of either side.
        error: Standard error of their difference.
        replayed: Whether both sides are at the same step, so that a fall means something too.
        is_logged: Whether the log shows a resume, by its steps or its words; else it only has a gap.
        dip: The deepest dip that begins at the join, in units of its error; None where too few records follow.
        rate: The learning rate after over that before; None where it is not logged on both sides.
        new_epoch: Whether an epoch ends there.
    """

    step: float
    before: float
    after: float
    jump: float
    error: float
    replayed: bool
    is_logged: bool
    dip: Dip | None
    rate: float | None
    new_epoch: bool


def restart_of_data(run: Run) -> tuple[float, float, float] | None:
    """Return the step from which the data of a run start over in mid-pass, and the epoch before and after.

    None where the log counts no parts of an epoch. Behind a whole pass that is a new stage of training, which may
    count its own.
    """
    epoch = finite_of(run, "epoch")
    if run.step_name != "step" or len(epoch) < 2 * JOIN_LEVEL_RECORDS:
        return None
    fell = np.flatnonzero(np.diff(epoch.value) < -RESUMES_BACK)
    if not len(fell):
        return None
    each = median_gap(epoch.value)
    for at in fell.tolist():
        before, after = float(epoch.value[at]), float(epoch.value[at + 1])
        to_whole = abs(before - round(before))
        if (
            0 < each < RESUMES_BACK
            and to_whole > max(2 * each, RESUMES_BACK)
            and median(epoch.value[at + 1 : at + 4]) < before
        ):
            return float(epoch.step[at + 1]), before, after
    return None


def restarts_of(run: Run) -> list[float]:
    """Return the first steps behind a resume, in order: of the run, or of its data alone."""
    restart = restart_of_data(run)
    return sorted({*run.restarts, *(() if restart is None else restart[:1])})


def joins_of(run: Run) -> tuple[Join, ...]:
    """Return the joins of a run with enough of the loss on either side, in order, those with a gap last."""
    if "loss" not in run:
        return ()
    return (*_between_segments(run), *_stated_joins(run), *_gaps(run))


def _between_segments(run: Run) -> Iterator[Join]:
    """Yield the joins between segments; one that starts where the first began is another run."""
    for old, new in pairwise(run.segments):
        first = new.series["loss"].finite.step[:1] if "loss" in new.series and "loss" in old.series else np.empty(0)
        if not len(first) or first[0] <= old.first_step + FIRST_LEFT * (old.last_step - old.first_step):
            continue
        at = float(first[0])
        join = _join(
            {name: series.where(series.step <= at) for name, series in old.series.items()},
            dict(new.series),
            replayed=True,
        )
        if join is not None:
            yield join


def _stated_joins(run: Run) -> Iterator[Join]:
    """Yield the joins that the log states in words, or by data that start over, where its steps just go on."""
    if len(run.segments) > 1 or len(run.resumes) > MAX_REPORTED_RESUMES:
        return
    for step in restarts_of(run):
        if (join := _joined_at(run, step, is_logged=True)) is not None:
            yield join


def _gaps(run: Run) -> Iterator[Join]:
    """Yield the joins across gaps in the steps; logs that grow sparser by design have many, and none is one."""
    loss = run["loss"]  # a stretch of NaN is not a gap
    gap = np.diff(loss.step)
    if len(gap) < 8 or run.step_name != "step":
        return
    wide = np.flatnonzero(gap > MIN_MISSING_GAP_RATIO * median(gap)) + 1
    if len(wide) > max(3, len(gap) // 50):
        return
    for at in wide.tolist():
        if (join := _joined_at(run, float(loss.step[at]), is_logged=float(loss.step[at]) in run.resumes)) is not None:
            yield join


def _joined_at(run: Run, step: float, *, is_logged: bool) -> Join | None:
    before = {name: series.where(series.step < step) for name, series in run.series.items()}
    after = {name: series.where(series.step >= step) for name, series in run.series.items()}
    return _join(before, after, replayed=False, is_logged=is_logged)


def _join(old: dict[str, Series], new: dict[str, Series], *, replayed: bool, is_logged: bool = True) -> Join | None:
    before, after = old["loss"].finite, new["loss"].finite
    if len(before) < 3 or len(after) < 2:
        return None
    here, there = before.value[-JOIN_LEVEL_RECORDS:], after.value[: JOIN_LEVEL_RECORDS // 2]
    size = max(noise(before.value[-50:]), float(np.std(here)) / 2, noise(after.value[:50]) / 2)
    start, end = median(here), median(there)
    distance = median(after.step[: len(there)]) - median(before.step[-len(here) :])
    trends = [
        0.0,
        distance * _slope(before, slice(-JOIN_TREND_RECORDS, None)),
        distance * _slope(after, slice(len(there))),
    ]
    expected = min(max(end - start, min(trends)), max(trends))
    return Join(
        step=float(after.step[0]),
        before=start,
        after=end,
        jump=end - start - expected,
        error=1.25 * size * float(np.sqrt(1 / len(here) + 1 / len(there))),
        replayed=replayed,
        is_logged=is_logged,
        dip=_dip(before.value[-MAX_RECORDS_BEFORE_JOIN:], after.value, size),
        rate=_rate(old, new),
        new_epoch=_ends_epoch(old, new),
    )


def _slope(loss: Series, part: slice) -> float:
    """Return the median change for a step: early in a run the loss falls from one window to the next without a jump."""
    step, value = loss.step[part], loss.value[part]
    half = len(value) // 2
    return median((value[-half:] - value[:half]) / np.maximum(step[-half:] - step[:half], 1e-12))


def _dip(before: Floats, after: Floats, size: float) -> Dip | None:
    found = [
        _dip_of(before, after[:length], after[length : length + max(5, length // 2)], size)
        for length in STRETCHES
        if len(after) >= length + 5
    ]
    return max(found, key=lambda dip: dip.depth / max(dip.error, 1e-12), default=None)


def _dip_of(before: Floats, inside: Floats, behind: Floats, size: float) -> Dip:
    level, low, back = median(before), median(inside), median(behind)
    fewest = min(len(before), len(behind))
    error = 1.25 * size * float(np.sqrt(1 / len(inside) + 1 / fewest))  # a median's error is 1.25 times a mean's
    return Dip(len(inside), low, back, min(level, back) - low, error)


def _rate(old: dict[str, Series], new: dict[str, Series]) -> float | None:
    name = Quantity.LEARNING_RATE
    before, after = (side[name].finite.value if name in side else np.empty(0) for side in (old, new))
    return float(after[0] / before[-1]) if len(before) and len(after) and before[-1] > 0 else None


def _ends_epoch(old: dict[str, Series], new: dict[str, Series]) -> bool:
    """Say whether an epoch ends at a join; a record that ends an epoch belongs to it."""
    before, after = (side["epoch"].finite.value if "epoch" in side else np.empty(0) for side in (old, new))
    return bool(len(before) and len(after) and np.ceil(round(after[0], 6)) > np.ceil(round(before[-1], 6)))


# Sudden falls of a curve to a lower level, from which it climbs back over many records.


FALLS_SIGMAS = 7.0
"""Standard errors that a fall is deep. Chosen: by hand."""
FALLS_SHARE = 0.1
"""... and the share of the level that it is. Chosen: by hand."""
FALLS_BACK = 0.5
"""Of the fall: so much of it is lost again afterwards."""
MAX_PRIOR_FALL_SHARE = 0.6
"""Of the fall: the loss keeps within this before, unless it goes far below. Chosen: else it is the end of a rise."""
MIN_DEPTH_OF_FALL = 0.3
"""Of the fall: by so much it goes below all that came just before, where the loss was not steady. Chosen: by hand."""
NEAR_ZERO = 0.3
"""Of the loss at the start: what it falls from. Chosen: a loss near zero falls by half again and again."""
MAX_PRIOR_LEVEL_RATIO = 2.0
"""... and it falls from no more than that level times this: what swings far above its start is unsteady, and no batch
is known again. Chosen: an ordinary climb does not double it."""
FALLS_CUT = 0.8
"""A learning rate that falls below this share of itself from one record to the next is cut. Chosen: by hand."""
MAX_WINDOW_POINTS = 2_000
"""Points that windows are moved over: medians stand for more. Chosen: time and memory grow with their square."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A fall of the loss from which it climbs back.

    Args:
        step: First step at the lower level.
        before, after: The levels on either side.
    """

    step: float
    before: float
    after: float


def falls_of(run: Run) -> list[Fall]:
    """Return the falls of the loss that neither its rate nor an epoch's end explains, in order."""
    loss = run["loss"].finite
    stride = -(-len(loss) // MAX_WINDOW_POINTS)
    curve = loss.value
    if stride > 1:
        curve = row_medians(curve[: len(curve) // stride * stride].reshape(-1, stride))
    falls: dict[int, Fall] = {}
    for width in sorted({max(6, len(curve) // 25), max(8, len(curve) // 12)}):
        for thinned_place, (before, after) in _falls_falls(curve, width).items():
            place = thinned_place if stride == 1 else _steepest(loss.value, thinned_place * stride, 2 * stride)
            if all(abs(place - other) > 2 * width * stride for other in falls) and not _explained(run, loss, place):
                falls[place] = Fall(float(loss.step[place]), before, after)
    return [falls[place] for place in sorted(falls)]


def _falls_falls(values: Floats, width: int) -> dict[int, tuple[float, float]]:
    """Return where the medians of `width` values fall and climb back, and the levels before and after."""
    level, brief = _medians(values, width), _medians(values, width // 2)
    at = np.arange(2 * width, len(values) - 2 * width + 1)
    if not len(at):
        return {}
    before, after, earlier = level[at - width], level[at], level[at - 2 * width]
    drop = before - after
    error = 1.25 * noise(values) * np.sqrt(2 / width)
    later = np.maximum.accumulate(level[::-1])[::-1][at + width]
    shortly = _lowest(brief, 2 * width - width // 2 + 1)[at - 2 * width]
    lowest = _lowest(np.concatenate([np.full(2 * width, np.inf), level]), 3 * width + 1)[at - 2 * width]
    start = start_level(values)
    is_fall = (
        (drop > np.maximum(FALLS_SIGMAS * error, FALLS_SHARE * np.abs(before)))
        & (before > NEAR_ZERO * start)
        & ((before < MAX_PRIOR_LEVEL_RATIO * start) | (start <= 0))
        & (earlier - before < MAX_PRIOR_FALL_SHARE / 2 * drop)  # else it falls all the time
        & ((before - shortly < MAX_PRIOR_FALL_SHARE * drop) | (after < lowest - MIN_DEPTH_OF_FALL * drop))
        & (later - after > FALLS_BACK * drop)
    )
    return {
        _steepest(values, int(at[peak]), width): (float(before[peak]), float(after[peak]))
        for peak in _peaks(drop, is_fall, width)
    }


def _steepest(values: Floats, place: int, width: int) -> int:
    """Return where the curve falls most from three values to the next three, within a width of a place."""
    three = np.convolve(values, np.ones(3), mode="valid")
    first = max(3, place - width)
    near = np.arange(first, min(len(three), place + width + 1))
    return first + int(np.argmax(three[near - 3] - three[near]))


def _medians(values: Floats, width: int) -> Floats:
    """Return the median of each stretch of `width` values, shape (n - width + 1,)."""
    return row_medians(np.lib.stride_tricks.sliding_window_view(values, width))


def _lowest(values: Floats, width: int) -> Floats:
    """Return the smallest value of each stretch of `width` values, shape (n - width + 1,)."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, width).min(axis=1))


def _peaks(drop: Floats, is_fall: NDArray[np.bool_], width: int) -> list[int]:
    """Return where the deepest falls are, none within two widths of a deeper one."""
    left = np.where(is_fall, drop, -np.inf)
    out = []
    while np.isfinite(best := left.max(initial=-np.inf)):
        place = int(np.argmax(left == best))
        out.append(place)
        left[max(0, place - 2 * width) : place + 2 * width] = -np.inf
    return sorted(out)


def _explained(run: Run, loss: Series, place: int) -> bool:
    """Say whether the rate is cut, or an epoch ends, about where the loss falls, or the rate comes back after it."""
    first, last = float(loss.step[max(0, place - 4)]), float(loss.step[min(len(loss) - 1, place + 4)])
    near = finite_of(run, "learning_rate").between(first, last).value
    if (near[1:] < FALLS_CUT * near[:-1]).any() or any(step >= first for step in rate_comes_back(run)):
        return True
    epoch = finite_of(run, "epoch")
    before, after = epoch.at(first), epoch.at(last)
    return before is not None and after is not None and np.floor(after) > np.floor(before)


# What the loss does where the run was resumed, or where its data may have started over unseen.


RESUME_SHARE = 0.05
"""Share of the level that a jump is. Chosen: no healthy resume of our runs comes near."""
RESUME_SIGMAS = 5.0
"""Standard errors that a jump is. Chosen: no healthy resume of our runs comes near."""
DIP_SHARE = 0.06
"""Share of the level that a dip is, pooled over all resumes of the run. Chosen: as for jumps."""
DIP_SIGMAS = 3.8
"""Standard errors that a dip is. Chosen: as for jumps."""
RESUME_CUT = 0.8
"""Times the rate before the resume. Chosen: less of it lowers the loss by itself."""
LEAST_POINTS = 40
"""Records in which a fall that no resume marks can be judged. Chosen: fewer have falls by chance."""
MAX_RECORDS_FROM_RESUME = 3
"""Records by which a fall may be off a resume. Chosen: logs tell of it before or after."""
_STATE = r"(?:optimi[sz]er|scheduler|scaler|momentum|moments|rng|random state|lr_sched\w*)"
_LACKS = (
    r"(?:missing|not (?:found|present|restored|loaded|saved|in)|skipp\w+|without|no|absent|discard\w*|fresh|"
    r"re-?init\w*|reset\w*)"
)
STATE_MISSING = regex(
    rf"\b{_LACKS}\b.{{0,40}}\b{_STATE}|{_STATE}.{{0,40}}\b{_LACKS}\b|\bweights[ _-]only\b", re.IGNORECASE
)
"""A line that says which state was not restored with the weights."""
SHOWN_TEXT = 160
"""Characters of a line that are quoted. Chosen: two lines of a terminal."""


def _falls(run: Run) -> list[Fall]:
    """Return the falls of the loss with nothing to mark them.

    Raises:
        CannotTell: too few records, means of whole epochs, or a term of the loss that sets in.
    """
    loss = require_values(run["loss"].finite, LEAST_POINTS)
    if run.step_name == "epoch" and are_whole(loss.step):
        raise CannotTell("each record is the mean of an epoch, in which all rows are seen once")
    refuse_new_terms(run)
    return falls_of(run)


def loss_falls_back(run: Run, falls: list[Fall]) -> Evidence:
    """The training loss falls at one step to a lower level, and climbs back from there over many steps.

    So do rows that were seen before. Not this when: the rate is cut there; a spike or a bad stretch ends; an epoch
    does (`loss_epoch_steps`); the loss stays low. At resumes less of a fall is needed, and several count together.
    """
    first = falls[0]
    more = f"; {len(falls)} such falls" if len(falls) > 1 else ""
    return Evidence(
        f"loss falls from about {figure(first.before)} to about {figure(first.after)} at {run.place(first.step)} "
        f"and climbs back{more}",
        steps=tuple(fall.step for fall in falls[:MAX_LISTED_STEPS]),
        values={"before": first.before, "after": first.after, "falls": len(falls)},
    )


def _at_joins(run: Run, falls: list[Fall], joins: tuple[Join, ...]) -> Answers:
    """Return that falls are at resumes, if any is: within three records of one."""
    logged = [join.step for join in joins if join.is_logged]
    at = [fall.step for fall in falls if _is_near(run, fall.step, logged)]
    return {"falls_back_at_resume": falls_back_at_resume(run, at)} if at else {}


def _is_near(run: Run, step: float, resumes: Iterable[float]) -> bool:
    near = MAX_RECORDS_FROM_RESUME * median(np.abs(np.diff(run["loss"].finite.step)))
    return any(abs(step - resumed) <= near for resumed in resumes)


def _falls_at_joins(run: Run, joins: tuple[Join, ...]) -> Answers:
    """Return the dips that begin at resumes as evidence, all of them together, if their mean is clear."""
    dips = [
        (join, join.dip)
        for join in joins
        if join.is_logged
        and join.dip is not None
        and not join.new_epoch
        and (join.rate is None or join.rate >= RESUME_CUT)
    ]
    if not dips or len(dips) < sum(join.is_logged for join in joins):
        return {}
    depth = sum(dip.depth / abs(join.before or math.inf) for join, dip in dips) / len(dips)
    squared = sum((dip.error / abs(join.before or math.inf)) ** 2 for join, dip in dips)
    if depth < max(DIP_SHARE, DIP_SIGMAS * math.sqrt(squared) / len(dips)):
        return {}
    join, dip = max(dips, key=lambda pair: pair[1].depth)
    more = f"; at {len(dips)} resumes it falls by {depth:.0%} on average" if len(dips) > 1 else ""
    steps = [join.step, *(other.step for other, _ in dips if other is not join)]
    return {
        "loss_falls_back": Evidence(
            f"loss falls from about {figure(join.before)} to {figure(dip.low)} at {run.place(join.step)} for "
            f"about {dip.records} records and climbs back to {figure(dip.back)}{more}",
            steps=tuple(steps[:MAX_LISTED_STEPS]),
            values={"before": join.before, "after": dip.low, "back": dip.back, "falls": len(dips)},
        ),
        "falls_back_at_resume": falls_back_at_resume(run, steps),
    }


def falls_back_at_resume(run: Run, steps: list[float]) -> Evidence:
    """The fall of the loss from which it climbs back begins where the log shows a resume.

    Not this when: the log shows none there, or only a gap in its steps.
    """
    more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
    summary = f"the fall of the loss at {run.place(steps[0])}{more} begins where the run was resumed"
    return Evidence(summary, steps=tuple(steps[:MAX_LISTED_STEPS]), values={"resumes": len(steps)})


def epoch_starts_over(run: Run) -> Evidence | None:
    """The epoch that the log counts falls back in the middle of a pass, while the steps go on: data start over.

    Not this when: a pass was whole, as where a new stage of training begins; the steps fall back as well.
    """
    restart = restart_of_data(run)
    if restart is None:
        return None
    step, before, after = restart
    return Evidence(
        f"the epoch goes from {figure(before)} to {figure(after)} at {run.place(step)}, and the steps go on",
        steps=(step,),
        values={"before": before, "after": after},
    )


def _jumps(join: Join) -> bool:
    """Say whether the loss jumps beyond noise: up, or also down where the same steps were run again."""
    size = abs(join.jump) if join.replayed else join.jump
    return size > max(RESUME_SHARE * abs(join.before), RESUME_SIGMAS * join.error)


def loss_jump_at_resume(run: Run, joins: tuple[Join, ...]) -> Evidence | None:
    """The loss jumps where the run was resumed, by its steps or its words, or across a gap in the steps.

    Not this when: the jump is within the noise or the trend; the second stretch starts from the beginning; the loss
    falls and climbs back (`loss_falls_back`). Where the same steps were run again, a fall for good counts too.
    """
    if not joins:
        raise CannotTell("the log shows no resume: it mentions none, and its steps neither fall back nor have a gap")
    jumps = [join for join in joins if _jumps(join)]
    if not jumps:
        return None
    worst = max(jumps, key=lambda join: abs(join.jump))
    more = f"; {len(jumps)} such jumps at {len(joins)} joins" if len(joins) > 1 else ""
    where = "where the run was resumed" if worst.is_logged else "after a gap in the logged steps"
    rate = (
        f"; the learning rate is {ratio(worst.rate)} times that before"
        if worst.rate is not None and abs(worst.rate - 1) > 1 - RESUME_CUT
        else ""
    )
    return Evidence(
        f"loss goes from about {figure(worst.before)} to about {figure(worst.after)} at {run.place(worst.step)}, "
        f"{where}{more}{rate}",
        steps=(worst.step, *(join.step for join in jumps if join is not worst))[:MAX_LISTED_STEPS],
        values={"before": worst.before, "after": worst.after, "jump": worst.after - worst.before, "joins": len(joins)},
    )


def state_missing_at_resume(run: Run) -> Evidence | None:
    """The log itself says that optimizer, scheduler, scaler or random state was not restored with the weights.

    Not this when: it says that the state was restored, or nothing of it.
    """
    if not run.resumes:
        raise CannotTell("the log names no resume in words")
    missing = (text_line for text_line in run.text_lines if STATE_MISSING.search(text_line.text))
    line = next((text_line for text_line in missing if _is_near(run, text_line.step, run.resumes)), None)
    if line is None:
        return None
    return Evidence(
        f'line {line.line}, at {run.place(line.step)}, says "{shorten(line.text, SHOWN_TEXT)}"',
        steps=(line.step,),
        values={"line": line.line},
    )


# Of jumps: one run in ten is resumed in its log, of which one in fifty jumps so. They are judged in resumed runs alone,
# so that the priors of causes, which are shares of all runs, come too low for them.
@question(
    outcome_of(loss_jump_at_resume, 0.002, "bekman_mle", as_chosen=True),
    outcome_of(loss_falls_back, 0.01, "bekman_mle", follows=("loss_spikes_recur", "loss_spike_single")),
    outcome_of(falls_back_at_resume, 0.05, "bekman_mle", of="loss_falls_back", as_chosen=True),
    outcome_of(epoch_starts_over, 0.002, needs=("epoch",)),
    outcome_of(state_missing_at_resume, 0.0003, "kempnerforge_pr_115", as_chosen=True),
    needs=("loss",),
    points=8,
    not_for=("grpo", "ppo", "rl"),
    whole=True,
)
def resume(run: Run) -> Answers:
    """Say whether the loss jumps at a resume or falls, whether the data start over, and what was not restored."""
    return {**_of_the_loss(run), **answers_of(by_outcome((epoch_starts_over, state_missing_at_resume), run))}


def _of_the_loss(run: Run) -> Answers:
    joins = joins_of(run)
    answers: dict[str, Evidence | CannotTell] = {}
    try:
        falls = _falls(run)
    except CannotTell as why:
        falls, answers["loss_falls_back"] = [], why
    if falls:
        return {"loss_falls_back": loss_falls_back(run, falls), **_at_joins(run, falls, joins)}
    return _falls_at_joins(run, joins) or {**answers, **answers_of(by_outcome((loss_jump_at_resume,), run, joins))}
