"""The verb `compare_runs`: is A better than B, or is the difference what seeds do?

The interval is Student's, of the differences where runs are paired and Welch's where not (B. L. Welch, 1947): with the
three to ten seeds that people have, it holds its 95 %, which a bootstrap of so few values does not. A permutation test
with it assumes no distribution; among few runs it cannot come below 1 in their number of permutations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mldebug_mcp.checks.results import result_of
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, figure, shorten
from mldebug_mcp.judge.at_a_glance import glance_at_contest
from mldebug_mcp.judge.next_call import diagnose_call
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models.runs import Contest

SIGNIFICANCE_LEVEL = 0.05
"""An interval of 95 % is given, and a difference is real where it leaves out zero. Chosen: the usual one."""
STATISTICAL_POWER = 0.8
"""Share of repetitions in which a difference should be seen (J. Cohen, Statistical Power Analysis, 1988)."""
MOST_RUNS = 10_000
OTHER_LENGTH = 1.05
"""Times the steps of the shortest run from which another is longer. Chosen: a last record may be missing."""
MAX_PERMUTATIONS = 9_999
"""Permutations that are drawn where there are more than that; below, all are tried."""


def compare_runs(a: Sequence[str | Path], b: Sequence[str | Path], metric: str = "", *, best: bool = False) -> Contest:
    """Say whether the runs of A are better than those of B on a metric, beyond what chance does.

    A run that ended in NaN has no result: it is left out, and the answer says so. Runs are paired by their `seed`
    where each seed stands once on either side.

    Args:
        a: Logs or run folders, at least two.
        b: The same, of the other kind.
        metric: The metric; by default the one by which such runs are usually compared: evaluation loss, reward, score.
        best: Compare each run's best value instead of its last level (the median of its last tenth).

    Raises:
        InputError: there are too few runs, or too few that ended with a number; one cannot be read, or one did not log
            the metric.
    """
    first, second = ([read_run(path) for path in paths] for paths in (a, b))
    for name, runs in (("A", first), ("B", second)):
        if len(runs) < 2:
            raise InputError(
                f"{name} has {counted(len(runs), 'run')}: how much seeds differ takes two of each at least"
            )
    found = result_of(first[0], metric)
    if found is None:
        raise InputError(_lacks(first[0], metric))
    lost = [[run for run in runs if _is_lost(run, found.metric)] for runs in (first, second)]
    left_out = _left_out(lost, (first, second), found.metric)
    first, second = ([run for run in runs if not _is_lost(run, found.metric)] for runs in (first, second))
    pairs = _pairs(first, second)
    if pairs is not None:
        first, second = [run for run, _ in pairs], [two for _, two in pairs]
    of_a, of_b = ([_value(run, found.metric, best=best) for run in runs] for runs in (first, second))
    answer = contest(of_a, of_b, found.metric, higher=found.higher_is_better, paired=pairs is not None)
    if _is_share(first[0], found.metric, [*of_a, *of_b]):
        answer = answer.model_copy(update={"low": max(-1.0, answer.low), "high": min(1.0, answer.high)})
    results = list(zip([*of_a, *of_b], [*first, *second], strict=True))
    worst = (min if found.higher_is_better else max)(results, key=lambda pair: pair[0])[1]
    worst = next(iter([*lost[0], *lost[1]]), worst)
    notes = [*answer.notes, *left_out, *_of_other_lengths(first, second)]
    look = diagnose_call("what the log of the worst of them tells", worst.path)
    answer = answer.model_copy(update={"next_step": look, "notes": notes})
    return answer.model_copy(update={"at_a_glance": glance_at_contest(answer, "; ".join(left_out[:-1]))})


def _is_lost(run: Run, metric: str) -> bool:
    """Say whether a run ended without a number: its last value of the metric, or of the loss, is not finite."""
    return any(not math.isfinite(run[name].value[-1]) for name in {metric, "loss"} if name in run and len(run[name]))


def _left_out(lost: Sequence[Sequence[Run]], sides: Sequence[Sequence[Run]], metric: str) -> list[str]:
    """Return a note for each side with runs that ended without a number and have no result, and one that names them.

    Raises:
        InputError: fewer than two runs of a side are left.
    """
    notes = [
        f"not counted, without a finite loss at the end: {len(runs)} of {counted(len(of), 'run')} of {name}"
        for name, runs, of in zip("AB", lost, sides, strict=True)
        if runs
    ]
    paths = shorten(", ".join(str(run.path) for runs in lost for run in runs), 300)
    if any(len(of) - len(runs) < 2 for runs, of in zip(lost, sides, strict=True)):
        raise InputError(
            f"{'; '.join(notes)} ({paths}). Two runs of each with a finite {metric} at their ends are needed: diagnose "
            "the others first"
        )
    return [*notes, f"not counted: {paths}"] if notes else []


def _of_other_lengths(a: Sequence[Run], b: Sequence[Run]) -> list[str]:
    """Return a note where runs end at different steps: what is longer was trained more."""
    ends = [[run.last_step for run in runs] for runs in (a, b)]
    if max(map(max, ends)) <= OTHER_LENGTH * min(map(min, ends)):
        return []
    names = {run.step_name for run in (*a, *b)}
    unit = names.pop() if len(names) == 1 else "step"
    of_a, of_b = (
        figure(min(side)) if min(side) == max(side) else f"{figure(min(side))} to {figure(max(side))}" for side in ends
    )
    return [f"the runs have different numbers of {unit}s: they end at {of_a} in A and at {of_b} in B"]


def contest(a: Sequence[float], b: Sequence[float], metric: str, *, higher: bool, paired: bool) -> Contest:
    """Compare results, at least two a side and seed by seed if `paired`: see `compare_runs`."""
    from scipy import stats  # here, as the server starts without it

    array, two = np.asarray(a, float), np.asarray(b, float)
    notes: list[str] = []
    if not _spread(array, two, paired=paired):
        notes.append("the runs of each side are equal to the digit: are they copies of one run?")
        low = high = float(array.mean() - two.mean())
    else:
        test = stats.ttest_rel(array, two) if paired else stats.ttest_ind(array, two, equal_var=False)
        low, high = test.confidence_interval(1 - SIGNIFICANCE_LEVEL)
    chance = stats.permutation_test(
        (array, two), lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis), n_resamples=MAX_PERMUTATIONS,
        permutation_type="samples" if paired else "independent", vectorized=True, rng=np.random.default_rng(0),
    )  # fmt: skip
    difference = float(array.mean() - two.mean())
    apart = not notes and (low > 0 or high < 0)
    spread, runs = _spread(array, two, paired=paired), min(len(array), len(two))
    return Contest(
        metric=metric,
        better="higher" if higher else "lower",
        a=list(a),
        b=list(b),
        paired=paired,
        difference=difference,
        low=low,
        high=high,
        p=float(chance.pvalue),
        verdict=("a is better" if (difference > 0) is higher else "b is better") if apart else "cannot tell",
        detectable=_effect(runs, paired=paired) * spread,
        runs_needed=_needed(abs(difference) / spread, paired=paired) if spread and difference else None,
        notes=notes,
    )


def _value(run: Run, metric: str, *, best: bool) -> float:
    found = result_of(run, metric)
    if found is None:
        raise InputError(_lacks(run, metric))
    return found.best if best else found.last


def _is_share(run: Run, metric: str, values: Sequence[float]) -> bool:
    """Say whether a metric lies between 0 and 1, so that no difference of two is beyond 1."""
    role = run[metric].role
    return role is not None and role.quantity.is_share and all(0 <= value <= 1 for value in values)


def _lacks(run: Run, metric: str) -> str:
    what = shorten(metric, 60) if metric else "loss, score or reward"
    return f"{shorten(run.path, 200)}: no {what} in it; it has {shorten(', '.join(sorted(run.series)), 300)}"


def _pairs(a: Sequence[Run], b: Sequence[Run]) -> list[tuple[Run, Run]] | None:
    """Return the runs of the same seeds, or None unless each seed stands once on either side."""
    first, second = ({run.setting("seed"): run for run in runs} for runs in (a, b))
    if None in first or first.keys() != second.keys() or len(first) != len(a) or len(second) != len(b):
        return None
    return [(run, second[seed]) for seed, run in first.items()]


def _spread(a: Floats, b: Floats, *, paired: bool) -> float:
    """Return the standard deviation that a difference is held against."""
    if paired:
        return float(np.std(a - b, ddof=1))
    return math.sqrt((float(np.var(a, ddof=1)) + float(np.var(b, ddof=1))) / 2)


def _effect(runs: int, *, paired: bool) -> float:
    """Return the difference in standard deviations that so many runs of each show in `STATISTICAL_POWER` of cases."""
    low, high = 0.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(middle, runs, paired=paired) > STATISTICAL_POWER else (middle, high)
    return high


def _needed(effect: float, *, paired: bool) -> int | None:
    """Return how many runs of each show a difference of so many standard deviations in `STATISTICAL_POWER` of cases."""
    low, high = 1, MOST_RUNS
    if _power(effect, high, paired=paired) < STATISTICAL_POWER:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect, middle, paired=paired) >= STATISTICAL_POWER else (middle, high)
    return high


def _power(effect: float, runs: int, *, paired: bool) -> float:
    """Return how often a two-sided t-test shows the difference: the tail of the noncentral t distribution."""
    from scipy import stats

    freedom = runs - 1 if paired else 2 * (runs - 1)
    shift = effect * math.sqrt(runs if paired else runs / 2)
    return float(stats.nct.sf(stats.t.isf(SIGNIFICANCE_LEVEL / 2, freedom), freedom, shift))
