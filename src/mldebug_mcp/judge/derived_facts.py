"""What follows from several quantities of a run together: facts, neither symptoms nor causes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.curve import at_common_steps, blocks, counted_up, mad, noise, start_level
from mldebug_mcp.checks.policies import ENTROPIES, ENTROPY_GONE, NOT_POLICY, TEXT_POLICIES, components, entropy
from mldebug_mcp.checks.policies import rewards_of as rewards_logged
from mldebug_mcp.checks.run.data_order import epochs_of
from mldebug_mcp.core.arrays import distinct, median
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import capitalised, figure, percent
from mldebug_mcp.judge.columns import derived_fact
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.conventions import PER_RECORD
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.run import Series
from mldebug_mcp.models.diagnosis import DerivedFact

AT_EVERY_EPOCH = "recurs_at_every_pass"


def derived_facts(run: Run) -> list[DerivedFact]:
    """Return the facts on what a policy spends, on its entropy, and on what recurs at every pass."""
    facts = (rollouts_without_gradient(run), entropy_runs_out(run), pass_pattern(run))
    return [fact for fact in facts if fact is not None]


MIN_ROLLOUT_SHARE_CHANGE = 0.1
"""By how much a share of rollouts changes to be reported again. Chosen: one in ten."""


def has_changed(earlier: DerivedFact | None, now: DerivedFact) -> bool:
    """Say whether a fact of a running run must be reported again: its share moved, or its step left the interval."""
    if earlier is None:
        return True
    before, after = earlier.values, now.values
    if now.fact == RUNS_OUT:
        return not before["low"] <= after["step"] <= before["high"]
    return now.fact == WASTED and abs(after["lately"] - before["lately"]) >= MIN_ROLLOUT_SHARE_CHANGE


# What recurs at every pass over the data: a jump of the loss in its first records, and a slope within passes.


MIN_PASSES = 3
"""Boundaries of passes at which a jump must recur. Chosen: two may be chance."""
MIN_PER_PASS = 10
"""Records of a pass. Chosen: by hand."""
PASS_HEAD_SHARE = 0.05
"""Share of a pass that is its first records. Chosen: by hand."""
PASS_SIDE_SHARE = 0.25
"""Share of a pass that is the level on either side of them. Chosen: by hand."""
MOST_OF_PASSES = 0.75
"""Share of the passes that show it. Chosen: by hand."""
MIN_PASS_JUMP_ERRORS = 2.0
"""Standard errors by which the loss of a pass's first records is above the level around them. Chosen: by hand."""
CLEAR_TOGETHER = 4.0
"""The same of all passes together. Chosen: none of 3,300 simulated healthy runs shows it."""
LEAST_OF_LEVEL = 0.02
"""Of the level of the loss: a smaller jump is not worth a word. Chosen: by hand."""
MAX_STILL_NORM_ERRORS = 2.0
"""Standard errors of all passes together, within which a gradient norm does not move there. Chosen: by hand."""
MAX_RANKED_PASSES = 500
"""Passes whose slope is measured, evenly spread, where there are twice as many. Chosen: they share their direction."""
MOST_CANDIDATES = 100_000
"""Places among which those elsewhere are chosen, evenly spread over a longer log. Chosen: more take time and memory."""
MAX_PLACES = 500
"""Places elsewhere at which the same is measured. Chosen: by hand."""
LEAST_AS_LOGGED = 0.2
"""Mean rank correlation of the loss as logged, trend and all, in the same direction. Chosen: by hand."""
MIN_FOR_RANKS = 4
"""Passes from which a rank correlation is computed. Chosen: by hand."""
LEAST_CORRELATION = 0.3
"""Mean rank correlation of the loss with the position in the pass. Chosen: by hand."""
CLEAR_RANKS = 4.0
"""Its standard errors over passes. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Jump:
    """How a metric moves in the first records of passes, relative to the level around them: the median over passes.

    `errors` is that in standard errors; in `clear` of the passes it moves up clearly.
    """

    size: float
    errors: float
    clear: int
    passes: int


def pass_pattern(run: Run) -> DerivedFact | None:
    """State what recurs at every pass; None where passes are not known, too few or too short, or nothing recurs."""
    if "loss" not in run or run.step_name not in ("step", "record"):
        return None
    loss = run["loss"].finite
    epoch = epochs_of(run, loss) if len(loss) >= MIN_PER_PASS * (MIN_PASSES + 1) else None
    if epoch is None:
        return None
    starts = np.flatnonzero(np.diff(epoch) > 0) + 1
    if len(starts) < MIN_PASSES:
        return None
    length = int(median(np.diff(np.concatenate([[0], starts, [len(loss)]]))[:-1]))
    if length < MIN_PER_PASS:
        return None
    head = max(1, round(PASS_HEAD_SHARE * length))
    jump, used = _jump(loss, starts, length, head)
    ranks, as_logged = _rank_correlations(loss.value, starts, length)
    mean = float(ranks.mean()) if len(ranks) else 0.0
    error = float(ranks.std(ddof=1)) / math.sqrt(len(ranks)) if len(ranks) > 1 else math.inf
    slopes = len(ranks) >= MIN_FOR_RANKS and abs(mean) >= LEAST_CORRELATION and abs(mean) >= CLEAR_RANKS * error
    slopes = slopes and bool(np.all(np.sign(ranks) == np.sign(mean)))
    slopes = slopes and float(as_logged.mean()) * np.sign(mean) >= LEAST_AS_LOGGED
    is_clear = jump is not None and _recurs(jump, median(np.abs(loss.value[starts])))
    if not is_clear and not slopes:
        return None
    values = {"correlation": mean, "passes": float(len(ranks))}
    parts = []
    if jump is not None and is_clear:
        values |= {"jump": jump.size, "boundaries": float(jump.passes), "clear": float(jump.clear)}
        records, level = "record" if head == 1 else f"{head} records", median(np.abs(loss.value[starts - 1]))
        share = f" ({percent(jump.size / level)} of its level)" if level > 0 else ""
        parts.append(
            f"the training loss jumps by {figure(jump.size)}{share} in the first {records} of "
            f"{jump.clear} of {jump.passes} passes over the data, first at {run.place(loss.step[used[0]])}"
        )
        gradient = _gradient(run, loss.step[used])
        parts.append(_gradient_there(gradient))
        values |= {} if gradient is None else {"gradient_errors": gradient.errors}
    if slopes:
        parts.append(
            f"the training loss {'rises' if mean > 0 else 'falls'} with the position in the pass: rank "
            f"correlation {mean:.2f} over {len(ranks)} passes, between {ranks.min():.2f} and {ranks.max():.2f}. "
            "Such a slope points to the order of the data, or to a loss that is averaged since the pass began"
        )
    elif len(ranks):
        parts.append(f"the rank correlation of the loss with the position in the pass is {mean:.2f}")
    source = "the epoch that is logged" if "epoch" in run else "the settings"
    return derived_fact(
        AT_EVERY_EPOCH,
        f"{'. '.join(map(capitalised, parts))}. Passes are known from {source}.",
        values,
        steps=loss.step[used][:20].tolist(),
    )


def _gradient_there(gradient: Jump | None) -> str:
    if gradient is None:
        return (
            "the gradient norm is not logged there, so an artefact of averaging and rows that are harder look the same"
        )
    if abs(gradient.errors) < MAX_STILL_NORM_ERRORS:
        return (
            "the gradient norm does not move there: that points to how the loss is averaged or to the order of the "
            "data before it points to bad rows"
        )
    way = "rises" if gradient.size > 0 else "falls"
    return f"the gradient norm {way} there as well, by {figure(abs(gradient.size))}: the rows there do differ"


def _recurs(jump: Jump, level: float) -> bool:
    return (
        jump.passes >= MIN_PASSES
        and jump.clear >= MOST_OF_PASSES * jump.passes
        and jump.errors >= CLEAR_TOGETHER
        and jump.size >= LEAST_OF_LEVEL * level
    )


def _jump(series: Series, starts: NDArray[np.int64], length: int, head: int) -> tuple[Jump | None, NDArray[np.int64]]:
    """Return how a metric moves in the first records of passes, and the passes with records enough around."""
    side = max(3, int(PASS_SIDE_SHARE * length))
    used = starts[(starts >= side) & (starts + head + side <= len(series))]
    if not len(used):
        return None, used
    moved = _moved(series.value, used, head, side)
    # What the same measure does elsewhere in the run is its noise, also where neighbours are alike.
    end = len(series) - head - side + 1
    places = np.arange(side, end, max(1, (end - side) // MOST_CANDIDATES))
    after = np.searchsorted(starts, places)
    before, after = starts[np.maximum(after - 1, 0)], starts[np.minimum(after, len(starts) - 1)]
    elsewhere = places[np.minimum(np.abs(places - before), np.abs(after - places)) > head]
    elsewhere = elsewhere[:: max(1, len(elsewhere) // MAX_PLACES)]
    usual = mad(_moved(series.value, elsewhere, head, side)) if len(elsewhere) >= MIN_PER_PASS else 0.0
    error = max(usual, noise(series.value) / math.sqrt(head), 1e-12)
    clear = int(np.count_nonzero(moved > MIN_PASS_JUMP_ERRORS * error))
    size = median(moved)
    return Jump(size, size / (1.25 * error / math.sqrt(len(used))), clear, len(used)), used


def _moved(value: Floats, starts: NDArray[np.int64], head: int, side: int) -> Floats:
    """Return by how much the median of the records from each start on is above the level around, shape (starts,)."""
    around = [median(np.concatenate([value[at - side : at], value[at + head : at + head + side]])) for at in starts]
    first = [median(value[at : at + head]) for at in starts]
    return np.asarray(np.array(first) - np.array(around), dtype=np.float64)


def _gradient(run: Run, steps: Floats) -> Jump | None:
    if "grad_norm" not in run or len(run["grad_norm"].finite) < MIN_PER_PASS * MIN_PASSES or len(steps) < 2:
        return None
    norm = run["grad_norm"].finite
    starts = distinct(np.searchsorted(norm.step, steps))
    starts = starts[starts < len(norm)].astype(np.int64)
    if len(starts) < 2:
        return None
    length = int(median(np.diff(starts)))
    return _jump(norm, starts, length, max(1, round(PASS_HEAD_SHARE * length)))[0] if length >= MIN_PER_PASS else None


def _rank_correlations(value: Floats, starts: NDArray[np.int64], length: int) -> tuple[Floats, Floats]:
    """Return Spearman's correlation of the loss with the position in whole passes but the first, shape (passes,).

    In the first array the straight line through the levels of the passes around is taken from each value: so the
    trend of training is none of a pass. The second is of the values as logged: where the loss falls between passes and
    rests within them, the first alone would find a slope.
    """
    ends = np.append(starts[1:], len(value))
    whole = [(begin, end) for begin, end in zip(starts, ends, strict=True) if end - begin >= 0.9 * length]
    if len(whole) < 2:
        return np.empty(0), np.empty(0)
    middles = np.array([(begin + end - 1) / 2 for begin, end in whole])
    levels = np.array([median(value[begin:end]) for begin, end in whole])
    found = []
    for number in range(0, len(whole), max(1, len(whole) // MAX_RANKED_PASSES)):
        begin, end = whole[number]
        near = slice(max(0, number - 1), number + 2)
        slope = np.polyfit(middles[near], levels[near], 1)[0]
        place = np.arange(end - begin)
        found.append((_spearman(value[begin:end] - slope * place), _spearman(value[begin:end])))
    return np.array(found)[:, 0], np.array(found)[:, 1]


def _spearman(values: Floats) -> float:
    """Return the rank correlation of values with their order; equal values share their rank."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values))
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared = np.bincount(inverse, ranks) / counts
    ranks = shared[inverse] - (len(values) - 1) / 2
    place = np.arange(len(values)) - (len(values) - 1) / 2
    spread = math.sqrt(float(ranks @ ranks) * float(place @ place))
    return float(ranks @ place) / spread if spread > 0 else 0.0


# What a policy spends on rollouts that teach nothing, and when its entropy runs out.
#
# Group-relative methods learn from the differences of rewards within a group of completions. A group in which all are
# right or all are wrong has no gradient (DAPO, arXiv 2503.14476, section 3.2, which drops such groups).


# Rollouts without a gradient: how many, too easy or too hard, and what they took.


WASTED = "rollouts_without_gradient"
RUNS_OUT = "entropy_runs_out"
WORTH_A_WORD = 0.05
"""Share of rollouts without a gradient below which nothing is reported. Chosen: a healthy run has a few."""
MIN_RECORDS = 5
"""Records from which a share is computed. Chosen: by hand."""
NO_SPREAD = 1e-6
"""Standard deviation of the rewards of a batch up to which no group has a gradient. Chosen: what rounding leaves."""
LATE_RECORDS_DIVISOR = 5
"""The last records are this part of all. Chosen: a fifth."""
AT_END = 0.05
"""Of the range of rewards: so near to its ends all completions are right, or wrong. Chosen: one in twenty."""
LEAST_MIXED = 0.1
"""Share of groups with spread from which a record shows what size that is. Chosen: by hand."""
LEAST_SPREAD = 0.25
"""Standard deviation of right and wrong answers in a group of sixteen, one of them right. Source: sqrt(p (1 - p))."""
AT_LEAST = 0.9
"""Of the least that a group of known size can have. Chosen: for rounding."""
MOST_SPREAD = 0.75
"""The same at most, of two answers, by n - 1. Source: sqrt(1 / 2), and what rounding adds."""
MAX_SHARE_ROUNDING = 1e-6
"""By which a share may be off its bounds. Chosen: more than rounding, less than any answer."""
MAX_ANSWERS = 1000
"""Answers in a record, up to which a mean with four digits shows whether it is of whole numbers. Chosen: by hand."""
_ALL_RIGHT = regex(
    r"(?:^|[/_])(?:solve[_-]?all|all[_-](?:right|correct|solved|pass(?:ed)?))(?:$|[/_])",
    re.IGNORECASE,
    needs=("solve", "all_", "all-"),
)
_ALL_WRONG = regex(
    r"(?:^|[/_])(?:solve[_-]?none|all[_-](?:wrong|incorrect|failed|zero))(?:$|[/_])",
    re.IGNORECASE,
    needs=("solve", "all_", "all-"),
)


def rollouts_without_gradient(run: Run) -> DerivedFact | None:
    """State what a run spends on groups without a gradient; None where that is not logged, or not of a policy."""
    if run.kind in NOT_POLICY or run.kind == "rl":
        return None
    counted = _counted(run)
    if counted is not None:  # such counts are of a policy alone, whatever kind the run is taken for
        right, wrong = counted
        series = Series("groups that are all right or all wrong", right.step, right.value + wrong.value)
        means = float(right.value.mean()), float(wrong.value.mean())
        return _stated(run, series, ((means[0],) * 2, (means[1],) * 2, None), is_least=False)
    if run.kind == "unknown" and rewards_logged(run) is None:
        return None
    logged = next((run[name].finite for name in ("frac_reward_zero_std",) if name in run), None)
    if logged is not None and len(logged):
        share = Series(logged.name, logged.step, np.clip(logged.value, 0.0, 1.0))
        return _stated(run, share, _split(run, share), is_least=False)
    if "reward_std" not in run or not len(spread := run["reward_std"].finite):
        return None
    rewards = rewards_logged(run)
    size = median(np.abs(rewards.value)) if rewards is not None and len(rewards) else 0.0
    dead = (spread.value <= NO_SPREAD * max(1.0, size)).astype(float)
    share = Series(spread.name, spread.step, dead)
    return _stated(run, share, _split(run, share), is_least=True) if dead.any() else None


Split = tuple[tuple[float, float] | None, tuple[float, float] | None, tuple[float, float] | None]


def _stated(run: Run, share: Series, split: Split, *, is_least: bool) -> DerivedFact | None:
    """State what the groups without a gradient took; nothing of too few records, or of a share that is usual.

    Args:
        run: The run.
        share: The share of rollouts without a gradient by record, named after the metric that shows it.
        split: The bounds of the shares of groups that are all right and all wrong, and the rewards of a wrong and of a
            right answer; None is not known.
        is_least: Whether the share is the least that it can be: only records of whole batches without spread count.
    """
    if len(share) < MIN_RECORDS:
        return None
    right, wrong, ends = split
    mean, lately = float(share.value.mean()), float(share.value[-max(1, len(share) // LATE_RECORDS_DIVISOR) :].mean())
    if max(mean, lately) < WORTH_A_WORD:
        return None
    values = {"share": mean, "lately": lately, "records": float(len(share))}
    least = "At least " if is_least and mean < 1 else ""
    sentences = [
        f"{least}{percent(mean)} of the rollouts so far have no gradient, {percent(lately)} lately: all "
        f"rewards of their group are the same ({share.name})"
    ]
    if right is not None and wrong is not None:
        earned = "" if ends is None else (
            f", if a wrong answer earns {figure(ends[0])} and a right one {figure(ends[1])}"
        )  # fmt: skip
        sentences.append(
            f"{_between(right)} of all are in groups that are all right (too easy), "
            f"{_between(wrong)} in groups that are all wrong (too hard){earned}"
        )
        values |= {"all_right_low": right[0], "all_right_high": right[1]}
        values |= {"all_wrong_low": wrong[0], "all_wrong_high": wrong[1]}
    else:
        sentences.append("whether they are all right (too easy) or all wrong (too hard) the log does not tell")
    took = []
    if (tokens := _spent(share, _tokens(run, share))) is not None:
        took.append(f"{_amount(tokens[0])} of {_amount(tokens[1])} tokens")
        values |= {"tokens": tokens[0], "tokens_in_all": tokens[1]}
    if (seconds := _spent(share, _seconds(run, share))) is not None:
        took.append(f"{_duration(seconds[0])} of {_duration(seconds[1])}")
        values |= {"seconds": seconds[0], "seconds_in_all": seconds[1]}
    sentences += [f"they took {' and '.join(took)}"] if took else []
    # The two need opposite fixes.
    if right is not None and wrong is not None and right[0] > wrong[1]:
        sentences.append("most of them are too easy: harder prompts would teach more")
    elif right is not None and wrong is not None and wrong[0] > right[1]:
        sentences.append("most of them are too hard: easier prompts, or a reward for part of the way, would teach more")
    text = " ".join(f"{capitalised(sentence)}." for sentence in sentences)
    return derived_fact(WASTED, text, values)


def _between(bounds: tuple[float, float]) -> str:
    low, high = (percent(bound) for bound in bounds)
    return low if low == high else f"{low} to {high}"


def _amount(count: float) -> str:
    for size, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if count >= size:
            return f"{count / size:.1f} {name}"
    return f"{count:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _counted(run: Run) -> tuple[Series, Series] | None:
    """Return the shares of groups that are all right and all wrong, where a log counts them."""
    right = next((series.finite for name, series in run.series.items() if _ALL_RIGHT.search(name)), None)
    wrong = next((series.finite for name, series in run.series.items() if _ALL_WRONG.search(name)), None)
    if right is None or wrong is None or not len(right) or not np.array_equal(right.step, wrong.step):
        return None
    most = float((right.value + wrong.value).max())
    if most <= 1 + MAX_SHARE_ROUNDING and min(float(right.value.min()), float(wrong.value.min())) >= 0:
        return right, wrong
    partly = next((series.finite for name, series in run.series.items() if "solve_partial" in name.lower()), None)
    if partly is None or not np.array_equal(partly.step, right.step):
        return None  # counts of prompts, of how many is not known
    total = right.value + wrong.value + partly.value
    if not (total > 0).all():
        return None
    return Series(right.name, right.step, right.value / total), Series(wrong.name, wrong.step, wrong.value / total)


def _split(run: Run, share: Series) -> Split:
    """Return the bounds of the shares that are all right and all wrong, by the mean reward of each record.

    A record of mean m (0: all wrong, 1: all right) in which a share d of the groups has no spread holds p groups that
    are all right: m = p + (1 - d) x, where x is the mean of the other groups. Each of them has at least one right and
    one wrong answer among its G, so x lies between 1/G and 1 - 1/G.
    """
    rewards = rewards_logged(run)
    ends = None if rewards is None else _ends(run, rewards)
    if rewards is None or ends is None:
        return None, None, None
    step, dead, reward = at_common_steps(share, rewards)
    if len(step) < MIN_RECORDS:
        return None, None, None
    mean = (reward - ends[0]) / (ends[1] - ends[0])
    generations = run.setting("num_generations")
    least = 1 / generations if generations is not None and generations >= 2 else 0.0
    at_ends = (mean >= 1 - AT_END) | (mean <= AT_END)
    if not at_ends.all() and not _is_right_or_wrong(run, Series("mean", step, mean), dead, ends[1] - ends[0]):
        return None, None, None
    low = np.clip(mean - (1 - dead) * (1 - least), 0.0, dead)
    high = np.clip(mean - (1 - dead) * least, low, dead)
    if share.name != "frac_reward_zero_std":  # of whole batches: one in between has graded rewards, all the same
        right, wrong = dead * (mean >= 1 - AT_END), dead * (mean <= AT_END)
        return (float(right.mean()),) * 2, (float(wrong.mean()),) * 2, ends
    return (float(low.mean()), float(high.mean())), (float((dead - high).mean()), float((dead - low).mean())), ends


def _is_right_or_wrong(run: Run, mean: Series, dead: Floats, size: float) -> bool:
    """Say whether answers are known to be right or wrong, with nothing in between: of graded rewards no share follows.

    The standard deviation in a group of G right and wrong answers is at least that of one among G; it is at most a
    half (0.71 of two answers, by n - 1). The mean over a batch is a whole number of right answers.

    Args:
        run: The run.
        mean: The mean reward of records, from 0 (all wrong) to 1.
        dead: The share of groups without spread in each, shape (n,).
        size: The reward of a right answer above that of a wrong one.
    """
    mixed = dead <= 1 - LEAST_MIXED
    if "reward_std" in run and int(mixed.sum()) >= MIN_RECORDS:
        series = run["reward_std"].finite
        spread = np.interp(mean.step, series.step, series.value)[mixed] / size
        of_batch = np.sqrt(np.maximum(mean.value * (1 - mean.value), 0.0))[mixed]
        each = median(spread / (1 - dead[mixed]))
        generations = run.setting("num_generations") or 0.0
        least = AT_LEAST * math.sqrt((1 - 1 / generations) / generations) if generations >= 2 else LEAST_SPREAD
        return least <= each <= MOST_SPREAD or median(np.abs(spread - of_batch)) <= AT_END * median(of_batch)
    batch = run.facts.effective_batch
    answers = 0.0 if batch is None or run.step_name != "step" else batch * median(_intervals(run, mean))
    if not 1 < answers <= MAX_ANSWERS:
        return False
    right = mean.value * answers
    return float(np.abs(right - np.round(right)).max()) <= AT_END and len(distinct(np.round(right))) > 2


def _ends(run: Run, rewards: Series) -> tuple[float, float] | None:
    """Return the rewards of a wrong and a right answer: those of single answers, else 0 and 1 where all lie there."""
    found: dict[str, list[float]] = {"max": [], "min": []}
    for series in run.series.values():
        role, values = series.role, series.finite.value
        if (
            role is not None
            and role.quantity in (Quantity.REWARD, Quantity.SCORE)
            and not role.is_evaluation
            and len(values)
        ):
            found.get(role.statistic, []).append(float(values.max() if role.statistic == "max" else values.min()))
    if found["max"] and found["min"]:
        low, high = min(found["min"]), max(found["max"])
        return (low, high) if high > low else None
    if len(components(run)) > 1:
        return None
    low, high = float(rewards.value.min()), float(rewards.value.max())
    if low >= -MAX_SHARE_ROUNDING and high <= 1 + MAX_SHARE_ROUNDING:
        return 0.0, 1.0
    return (-1.0, 1.0) if -1 - MAX_SHARE_ROUNDING <= low < 0 and high <= 1 + MAX_SHARE_ROUNDING else None


def _spent(share: Series, each: Floats | None) -> tuple[float, float] | None:
    """Return what the rollouts without a gradient took of an amount, and the whole of it."""
    if each is None or not np.isfinite(each).all() or float(each.sum()) <= 0:
        return None
    return float(share.value @ each), float(each.sum())


def _intervals(run: Run, series: Series) -> Floats:
    """Return how many steps each record stands for, shape (n,): those since the one before."""
    if len(series) < 2:
        return np.ones(len(series))
    gaps = np.diff(series.step)
    usual = median(gaps)
    first = min(max(float(series.step[0]), 1.0), usual) if run.first_step <= usual else usual
    return np.concatenate([[first], np.where(gaps > 0, gaps, usual)])


def _is_tokens(name: str) -> bool:
    """Say whether a metric counts the tokens so far, or those of each record."""
    if name.endswith(PER_RECORD):
        return canonical(name.removesuffix(PER_RECORD)) == Quantity.TOKENS_SEEN
    return name == Quantity.TOKENS_SEEN


def _tokens(run: Run, share: Series) -> Floats | None:
    """Return the tokens that each record stands for, shape (n,)."""
    logged = next((run[name].finite for name in run.series if _is_tokens(name)), None)
    if logged is not None and len(logged) >= 2:
        total = counted_up(logged.value)
        if total is not None and total[-1] > 2 * total[0]:  # so far
            until = np.interp(share.step, logged.step, total)
            first = until[0] if share.step[0] <= 2 * _intervals(run, share)[0] else 0.0  # of an excerpt it is not known
            return np.concatenate([[first], np.diff(until)])
        return np.interp(share.step, logged.step, logged.value) * _intervals(run, share)
    batch = run.facts.effective_batch
    if "completion_length" not in run or batch is None or run.step_name != "step":
        return None
    length = run["completion_length"].finite
    return (
        None if not len(length) else np.interp(share.step, length.step, length.value) * batch * _intervals(run, share)
    )


def _seconds(run: Run, share: Series) -> Floats | None:
    """Return the seconds that each record stands for, shape (n,)."""
    pace = next(run.with_role(Quantity.STEP_TIME, phase="train"), None)
    if pace is not None and len(pace.finite) >= 2 and run.step_name == "step":
        series = pace.finite
        return np.interp(share.step, series.step, series.value) * _intervals(run, share)
    clock = next(run.with_role(Quantity.ELAPSED, Quantity.TIMESTAMP, phase="train"), None)
    if clock is None or len(clock.finite) < 2:
        return None
    at = np.interp(share.step, clock.finite.step, clock.finite.value)
    gaps = np.maximum(np.diff(at), 0.0)
    return np.concatenate([[median(gaps)], gaps]) if len(gaps) else None


# The entropy of a policy: when it runs out at the pace of the later half.


MIN_FOR_TREND = 40
"""Records of an entropy from which its trend is computed. Chosen: by hand."""
TREND_BLOCKS = 20
"""Block medians of the later half that a trend is fitted to. Chosen: by hand."""
MIN_BLOCKS = 6
"""The least of them. Chosen: by hand."""
CLEAR_SLOPE = 5.0
"""Standard errors of a slope from which it is clear. Chosen: block medians are not quite independent."""
GOES_ON = 0.5
"""Of the slope of the later half, that of the last quarter at least: else the entropy levels off. Chosen: by hand."""
MAX_FORECAST_SPAN_RATIO = 3.0
"""Times the steps so far, beyond which nothing is foretold. Chosen: by hand."""
MAX_SQUARED_ERROR_RATIO = 2.0
"""Times the squared errors of the best course, from which another one is dropped. Chosen: by hand."""


def entropy_runs_out(run: Run) -> DerivedFact | None:
    """State when the entropy of a language model's policy comes down to a tenth of its start, at its present pace.

    None where it does not fall clearly, levels off, has come there, or would take much longer than the run so far.
    The interval is Fieller's, of a line, an exponential fall and a slowing one through block medians; it holds those of
    all that fit about as well.
    """
    if run.kind not in TEXT_POLICIES or not any(name in run for name in ENTROPIES):
        return None
    series = entropy(run)
    if len(series) < MIN_FOR_TREND or float(series.value.min()) < 0:
        return None
    start = start_level(series.value)
    later = series.since_record(len(series) // 2)
    cut = blocks(later.value, TREND_BLOCKS)
    level, at = cut.level, _middles(later.step, cut.first)
    goal, now = ENTROPY_GONE * start, float(level[-3:].mean())
    if len(level) < MIN_BLOCKS or start <= 0 or now <= goal or float(level.min()) <= 0:
        return None
    found = _at_this_pace(at, level, goal)
    last, span = float(series.step[-1]), float(series.step[-1] - series.step[0])
    if found is None or found[0] > last + MAX_FORECAST_SPAN_RATIO * span:
        return None
    step, low, high = max(found[0], last), max(last, found[1]), found[2]
    text = (
        f"At the pace since {run.place(later.step[0])} the entropy comes down to a tenth of its start at "
        f"{run.step_name} {figure(round(step))} (95 % interval: between {figure(round(low))} and "
        f"{figure(round(high))}); it was {figure(start)} at the start and is {figure(now)} now."
    )
    plan = plan_of(run)
    if plan is not None and plan.unit == run.step_name:
        end = f"the planned end at {run.step_name} {figure(plan.planned)}"
        if low <= plan.planned <= high:
            text += f" Whether that is before {end} is open, as it lies in the interval."
        else:
            text += f" That is {'before' if high < plan.planned else 'after'} {end}."
    values = {"step": step, "low": low, "high": high, "start": start, "now": now}
    return derived_fact(RUNS_OUT, text, values, at=step)


class _Course(NamedTuple):
    """A way to fall: what of a level falls in a straight line, and back."""

    of: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


_COURSES = (
    _Course(lambda level: level, lambda line: line),
    _Course(np.log, np.exp),
    _Course(lambda level: -1 / level, lambda line: -1 / line),
)
"""A line; an exponential fall; and one that slows down, as a mean of exponential falls at many rates does."""


def _at_this_pace(at: Floats, level: Floats, goal: float) -> tuple[float, float, float] | None:
    """Return where levels reach a goal, with the interval; None where they do not fall clearly, or level off."""
    half = len(level) // 2
    slope, recent = _slope(at, level), _slope(at[half:], level[half:])
    if slope >= 0 or recent > GOES_ON * slope:
        return None
    crossings = [_crossing(at, course.of(level), float(course.of(np.array(goal)))) for course in _COURSES]
    errors = [_squared(at, level, course) for course in _COURSES]
    found = [
        (error, *crossing)
        for crossing, error in zip(crossings, errors, strict=True)
        if crossing is not None and error <= MAX_SQUARED_ERROR_RATIO * min(errors)
    ]
    return (min(found)[1], min(low for _, _, low, _ in found), max(high for *_, high in found)) if found else None


def _middles(step: Floats, first: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    ends = np.append(first[1:], len(step))
    return np.array([float(step[begin:end].mean()) for begin, end in zip(first, ends, strict=True)])


def _slope(at: Floats, level: Floats) -> float:
    from_mean = at - at.mean()
    return float(from_mean @ level / (from_mean @ from_mean))


def _squared(at: Floats, level: Floats, course: _Course) -> float:
    """Return the squared errors of a course through levels, in their unit; infinite where it leaves their range."""
    straight = course.of(level)
    line = straight.mean() + _slope(at, straight) * (at - at.mean())
    with np.errstate(divide="ignore"):
        error = float(np.sum((course.back(line) - level) ** 2))
    return error if math.isfinite(error) else math.inf


def _crossing(at: Floats, level: Floats, goal: float) -> tuple[float, float, float] | None:
    """Return where a line reaches a goal, with Fieller's interval (E. C. Fieller, 1954); None without a clear slope."""
    middle, mean, slope = float(at.mean()), float(level.mean()), _slope(at, level)
    spread = float(np.sum((at - middle) ** 2))
    rest = level - (mean + slope * (at - middle))
    correlation = min(0.9, max(0.0, float(rest[:-1] @ rest[1:]) / max(float(rest @ rest), 1e-300)))
    variance = float(rest @ rest) / max(1, len(at) - 2) * (1 + correlation) / (1 - correlation)
    error = math.sqrt(variance / spread) if spread > 0 else math.inf
    if slope >= 0 or -slope < CLEAR_SLOPE * error:
        return None
    away, doubt = goal - mean, _student(len(at) - 2) ** 2 * variance
    a, b, c = slope**2 - doubt / spread, away * slope, away**2 - doubt / len(at)
    root = math.sqrt(max(0.0, b**2 - a * c))
    return middle + away / slope, middle + (b - root) / a, middle + (b + root) / a


def _student(freedom: int) -> float:
    """Return Student's t of 95 %, two-sided, by Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5)."""
    return 1.96 + 2.372 / freedom + 2.823 / freedom**2
