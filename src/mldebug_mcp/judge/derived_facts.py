"""What follows from several quantities of a run together: facts, neither symptoms nor causes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.curve import mad, noise
from mldebug_mcp.checks.run.data_order import epochs_of
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import capitalised, figure, percent
from mldebug_mcp.judge.rollouts import RUNS_OUT, WASTED, entropy_runs_out, rollouts_without_gradient
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Series
from mldebug_mcp.models.diagnosis import DerivedFact

AT_EVERY_EPOCH = "recurs_at_every_pass"


def derived_facts(run: Run) -> list[DerivedFact]:
    """Return the facts on what a policy spends, on its entropy, and on what recurs at every pass."""
    facts = (rollouts_without_gradient(run), entropy_runs_out(run), pass_pattern(run))
    return [fact for fact in facts if fact is not None]


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
    return DerivedFact.model_construct(
        fact=AT_EVERY_EPOCH,
        text=f"{'. '.join(map(capitalised, parts))}. Passes are known from {source}.",
        values=values,
        steps=loss.step[used][:20].tolist(),
    )


def _gradient_there(gradient: Jump | None) -> str:
    if gradient is None:
        return (
            "the gradient norm is not logged there, so an artefact of averaging and rows that are harder look the same"
        )
    if abs(gradient.errors) < UNTOUCHED:
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
