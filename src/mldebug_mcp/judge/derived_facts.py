"""What follows from several quantities of a run together: facts, neither symptoms nor causes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.curve import mad, noise
from mldebug_mcp.checks.rollouts import Rollouts, RunsOut, entropy_runs_out, rollouts_without_gradient
from mldebug_mcp.checks.run.data_order import epochs_of
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import capitalised, figure, percent
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.run import Series
from mldebug_mcp.models.diagnosis import DerivedFact

WASTED = "rollouts_without_gradient"
RUNS_OUT = "entropy_runs_out"
AT_EVERY_EPOCH = "recurs_at_every_pass"
WORTH_A_WORD = 0.05
"""Share of rollouts without a gradient below which nothing is reported. Chosen: a healthy run has a few."""


def derived_facts(run: Run) -> list[DerivedFact]:
    """Return the facts on what a policy spends, on its entropy, and on what recurs at every pass."""
    return list(_derived_facts(run))


def _derived_facts(run: Run) -> Iterator[DerivedFact]:
    spent = rollouts_without_gradient(run)
    if spent is not None and max(spent.share, spent.lately) >= WORTH_A_WORD:
        yield _wasted(spent)
    out = entropy_runs_out(run)
    if out is not None:
        yield _out(run, out)
    pattern = pass_pattern(run)
    if pattern is not None:
        yield _each_pass(run, pattern)


def _wasted(spent: Rollouts) -> DerivedFact:
    """Return what the groups without a gradient took."""
    values = {"share": spent.share, "lately": spent.lately, "records": float(spent.records)}
    least = "At least " if spent.is_least and spent.share < 1 else ""
    sentences = [
        f"{least}{percent(spent.share)} of the rollouts so far have no gradient, {percent(spent.lately)} lately: all "
        f"rewards of their group are the same ({spent.source})"
    ]
    if spent.all_right is not None and spent.all_wrong is not None:
        ends = "" if spent.ends is None else (
            f", if a wrong answer earns {figure(spent.ends[0])} and a right one {figure(spent.ends[1])}"
        )  # fmt: skip
        sentences.append(
            f"{_between(spent.all_right)} of all are in groups that are all right (too easy), "
            f"{_between(spent.all_wrong)} in groups that are all wrong (too hard){ends}"
        )
        values |= {"all_right_low": spent.all_right[0], "all_right_high": spent.all_right[1]}
        values |= {"all_wrong_low": spent.all_wrong[0], "all_wrong_high": spent.all_wrong[1]}
    else:
        sentences.append("whether they are all right (too easy) or all wrong (too hard) the log does not tell")
    took = []
    if spent.tokens is not None:
        took.append(f"{_amount(spent.tokens[0])} of {_amount(spent.tokens[1])} tokens")
        values |= {"tokens": spent.tokens[0], "tokens_in_all": spent.tokens[1]}
    if spent.seconds is not None:
        took.append(f"{_duration(spent.seconds[0])} of {_duration(spent.seconds[1])}")
        values |= {"seconds": spent.seconds[0], "seconds_in_all": spent.seconds[1]}
    sentences += [f"they took {' and '.join(took)}"] if took else []
    most = _most(spent)
    sentences += [f"most of them are too {most}"] if most else []
    text = " ".join(map(_sentence, sentences))
    return DerivedFact(fact=WASTED, text=text, values=values)


def _most(spent: Rollouts) -> str:
    """Return whether most of the groups without a gradient are too easy or too hard: the two need opposite fixes."""
    easy, hard = spent.all_right, spent.all_wrong
    if easy is None or hard is None:
        return ""
    return "easy: harder prompts would teach more" if easy[0] > hard[1] else (
        "hard: easier prompts, or a reward for part of the way, would teach more" if hard[0] > easy[1] else ""
    )  # fmt: skip


def _out(run: Run, out: RunsOut) -> DerivedFact:
    """Return when the entropy runs out."""
    late = f" and {figure(round(out.high))}"
    text = (
        f"at the pace since {run.place(out.since)} the entropy comes down to a tenth of its start at {run.step_name} "
        f"{figure(round(out.step))} (95 % interval: between {figure(round(out.low))}{late}); it was "
        f"{figure(out.start)} at the start and is {figure(out.now)} now"
    )
    plan = plan_of(run)
    if plan is not None and plan.unit == run.step_name:
        end = f"the planned end at {run.step_name} {figure(plan.planned)}"
        if out.low <= plan.planned <= out.high:
            text += f". Whether that is before {end} is open, as it lies in the interval"
        else:
            text += f". That is {'before' if out.high < plan.planned else 'after'} {end}"
    values = {"step": out.step, "low": out.low, "high": out.high, "start": out.start, "now": out.now}
    return DerivedFact(fact=RUNS_OUT, text=_sentence(text), values=values, steps=[out.step])


def _each_pass(run: Run, found: PassPattern) -> DerivedFact:
    """Return what recurs at every pass."""
    values = {"correlation": found.correlation, "passes": float(found.whole)}
    parts = []
    if found.jump is not None:
        values |= {"jump": found.jump.size, "boundaries": float(found.jump.passes), "clear": float(found.jump.clear)}
        records = "record" if found.head == 1 else f"{found.head} records"
        share = f" ({percent(found.jump.size / found.level)} of its level)" if found.level > 0 else ""
        parts.append(
            f"the training loss jumps by {figure(found.jump.size)}{share} in the first {records} of "
            f"{found.jump.clear} of {found.jump.passes} passes over the data, first at {run.place(found.steps[0])}"
        )
        parts.append(_gradient_there(found))
        values |= {} if found.gradient is None else {"gradient_errors": found.gradient.errors}
    if found.slopes:
        way = "rises" if found.correlation > 0 else "falls"
        parts.append(
            f"the training loss {way} with the position in the pass: rank correlation {found.correlation:.2f} over "
            f"{found.whole} passes, between {found.extremes[0]:.2f} and {found.extremes[1]:.2f}. Such a slope points "
            "to the order of the data, or to a loss that is averaged since the pass began"
        )
    elif found.whole:
        parts.append(f"the rank correlation of the loss with the position in the pass is {found.correlation:.2f}")
    text = ". ".join(_sentence(part).rstrip(".") for part in parts)
    return DerivedFact(
        fact=AT_EVERY_EPOCH,
        text=f"{text}. Passes are known from {found.source}.",
        values=values,
        steps=list(found.steps[:20]),
    )


def _gradient_there(found: PassPattern) -> str:
    if found.gradient is None:
        return (
            "the gradient norm is not logged there, so an artefact of averaging and rows that are harder look the same"
        )
    if abs(found.gradient.errors) < UNTOUCHED:
        return (
            "the gradient norm does not move there: that points to how the loss is averaged or to the order of the "
            "data before it points to bad rows"
        )
    way = "rises" if found.gradient.size > 0 else "falls"
    return f"the gradient norm {way} there as well, by {figure(abs(found.gradient.size))}: the rows there do differ"


def _sentence(text: str) -> str:
    return capitalised(text) + ("" if text.endswith(".") else ".")


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


CHANGED = 0.1
"""By how much a share of rollouts changes to be reported again. Chosen: one in ten."""


def has_changed(earlier: DerivedFact | None, now: DerivedFact) -> bool:
    """Say whether a fact of a running run must be reported again: its share moved, or its step left the interval."""
    if earlier is None:
        return True
    before, after = earlier.values, now.values
    if now.fact == RUNS_OUT:
        return not before["low"] <= after["step"] <= before["high"]
    return now.fact == WASTED and abs(after["lately"] - before["lately"]) >= CHANGED


# What recurs at every pass over the data: a jump of the loss in its first records, and a slope within passes.


MIN_PASSES = 3
"""Boundaries of passes at which a jump must recur. Chosen: two may be chance."""
MIN_PER_PASS = 10
"""Records of a pass. Chosen: by hand."""
HEAD = 0.05
"""Share of a pass that is its first records. Chosen: by hand."""
SIDE = 0.25
"""Share of a pass that is the level on either side of them. Chosen: by hand."""
MOST_OF_PASSES = 0.75
"""Share of the passes that show it. Chosen: by hand."""
CLEAR = 2.0
"""Standard errors by which the loss of a pass's first records is above the level around them. Chosen: by hand."""
CLEAR_TOGETHER = 4.0
"""The same of all passes together. Chosen: none of 3,300 simulated healthy runs shows it."""
LEAST_OF_LEVEL = 0.02
"""Of the level of the loss: a smaller jump is not worth a word. Chosen: by hand."""
UNTOUCHED = 2.0
"""Standard errors of all passes together, within which a gradient norm does not move there. Chosen: by hand."""
MAX_PLACES = 500
"""Places elsewhere at which the same is measured. Chosen: by hand."""
MAX_PAIRS = 20_000_000
"""Pairs of places and passes that are compared. Chosen: a fraction of a second."""
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
    """How a metric moves in the first records of passes, relative to the level around them.

    Args:
        size: The median over passes.
        errors: That in standard errors.
        clear: In how many of the passes it moves up clearly.
        passes: How many were looked at.
    """

    size: float
    errors: float
    clear: int
    passes: int


@dataclass(frozen=True, slots=True)
class PassPattern:
    """What recurs at every pass.

    Args:
        jump: The jump of the loss, None where there is none.
        steps: Where the passes begin that were looked at.
        head: Records of a pass that are its first.
        level: The loss around the boundaries.
        gradient: How the gradient norm moves there, None where it is not logged.
        correlation: Mean rank correlation (Spearman's) of the loss, without its trend, with the position in the pass.
        extremes: The least and the greatest of these correlations over passes.
        slopes: Whether that is clear and the same in all passes.
        whole: Passes that the correlation is of.
        source: Where the passes are known from.
    """

    jump: Jump | None
    steps: tuple[float, ...]
    head: int
    level: float
    gradient: Jump | None
    correlation: float
    extremes: tuple[float, float]
    slopes: bool
    whole: int
    source: str


def pass_pattern(run: Run) -> PassPattern | None:
    """Return what recurs at every pass; None where passes are not known, too few or too short, or nothing recurs."""
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
    head = max(1, round(HEAD * length))
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
    return PassPattern(
        jump=jump if is_clear else None,
        steps=tuple(loss.step[used].tolist()),
        head=head,
        level=median(np.abs(loss.value[starts - 1])),
        gradient=_gradient(run, loss.step[used]),
        correlation=mean,
        extremes=(float(ranks.min()), float(ranks.max())) if len(ranks) else (0.0, 0.0),
        slopes=slopes,
        whole=len(ranks),
        source="the epoch that is logged" if "epoch" in run else "the settings",
    )


def _recurs(jump: Jump, level: float) -> bool:
    return (
        jump.passes >= MIN_PASSES
        and jump.clear >= MOST_OF_PASSES * jump.passes
        and jump.errors >= CLEAR_TOGETHER
        and jump.size >= LEAST_OF_LEVEL * level
    )


def _jump(series: Series, starts: NDArray[np.int64], length: int, head: int) -> tuple[Jump | None, NDArray[np.int64]]:
    """Return how a metric moves in the first records of passes, and the passes with records enough around."""
    side = max(3, int(SIDE * length))
    used = starts[(starts >= side) & (starts + head + side <= len(series))]
    if not len(used):
        return None, used
    moved = _moved(series.value, used, head, side)
    # What the same measure does elsewhere in the run is its noise, also where neighbours are alike.
    places = np.arange(side, len(series) - head - side + 1)
    away = np.min(np.abs(places[:, np.newaxis] - starts), axis=1) if len(places) * len(starts) <= MAX_PAIRS else None
    elsewhere = places if away is None else places[away > head]
    elsewhere = elsewhere[:: max(1, len(elsewhere) // MAX_PLACES)]
    usual = mad(_moved(series.value, elsewhere, head, side)) if len(elsewhere) >= MIN_PER_PASS else 0.0
    error = max(usual, noise(series.value) / math.sqrt(head), 1e-12)
    clear = int(np.count_nonzero(moved > CLEAR * error))
    size = median(moved)
    return Jump(size, size / (1.25 * error / math.sqrt(len(used))), clear, len(used)), used


def _moved(value: Floats, starts: NDArray[np.int64], head: int, side: int) -> Floats:
    """Return by how much the median of the records from each start on is above the level around, shape (starts,)."""
    around = [median(np.concatenate([value[at - side : at], value[at + head : at + head + side]])) for at in starts]
    first = [median(value[at : at + head]) for at in starts]
    return np.asarray(np.array(first) - np.array(around), dtype=np.float64)


def _gradient(run: Run, steps: Floats) -> Jump | None:
    """Return how the gradient norm moves at the same steps."""
    if "grad_norm" not in run or len(run["grad_norm"].finite) < MIN_PER_PASS * MIN_PASSES or len(steps) < 2:
        return None
    norm = run["grad_norm"].finite
    starts = np.unique(np.searchsorted(norm.step, steps))
    starts = starts[starts < len(norm)].astype(np.int64)
    if len(starts) < 2:
        return None
    length = int(median(np.diff(starts)))
    return _jump(norm, starts, length, max(1, round(HEAD * length)))[0] if length >= MIN_PER_PASS else None


def _rank_correlations(value: Floats, starts: NDArray[np.int64], length: int) -> tuple[Floats, Floats]:
    """Return Spearman's correlation of the loss with the position in each whole pass but the first, shape (passes,).

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
    for number, (begin, end) in enumerate(whole):
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
