"""What was logged, one line for each quantity, and which metrics a finding rests on."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from mldebug_mcp.checks.check import symptoms
from mldebug_mcp.checks.course import Course, course_of
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names.quantities import LOSSES, THROUGHPUTS, Quantity
from mldebug_mcp.models import Finding, Hypothesis, State
from mldebug_mcp.models.diagnosis import CurveFact, QuantityFact

# Which of a run's metrics a finding was made from.


_SHORT = {
    "lr": ("learning_rate",), "grad": ("grad_norm",), "gradient": ("grad_norm*",), "accuracy": ("accuracy",),
    "dpo": ("logps/*", "rewards/*"), "steps": ("loss_scale", "skipped_iterations"), "overflows": ("loss_scale",),
}  # fmt: skip
"""What a symptom's first word stands for, unless that is the name of a metric."""


def rests_on(run: Run, finding: Finding) -> list[str]:
    """Return the metrics of a run from which a finding was made."""
    symptom = symptoms().get(finding.symptom)
    patterns = (*symptom.needs, *symptom.question.any_of) if symptom is not None else ()
    if patterns:
        return _matching(run.series, patterns)
    first = finding.symptom.partition("_")[0]  # those that read settings too say it by their name
    matching = _matching(run.series, _SHORT.get(first, (first, f"{first}_*")))
    # Evaluations log how fast a run is with their results.
    named = [
        name
        for name in matching
        if (role := run[name].role) is None or not (role.quantity.is_duration or role.quantity in THROUGHPUTS)
    ]
    return _named_in(finding.summary, run, named) or [name for name in named if name in _MAIN] or named


_MAIN = ("loss", "eval_loss")
"""What a symptom of losses or evaluations is of, if its summary does not name a metric."""


def _named_in(summary: str, run: Run, names: Sequence[str]) -> list[str]:
    words = set(_PRINTED_WORDS.findall(summary))
    return [name for name in names if name in words or run[name].logged_as in words]


_PRINTED_WORDS = regex(r"[\w/.@-]*\w")


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def speaks_first(present: Sequence[Finding], hypothesis: Hypothesis) -> float | None:
    """Return the first step of what is seen and supports a hypothesis; None where that has no step."""
    steps = [finding.steps[0] for finding in present if finding.symptom in hypothesis.symptoms and finding.steps]
    return min(steps, default=None)


# What was logged, a line per quantity: what decides first, training with evaluation, extremes of many columns.


MOST_ALIKE = 4
"""Columns of one quantity, such as those of layers, that have a line each. Chosen: more would hide the rest."""
MOST_CURVES = 4
MOST_BEFORE = 10
"""Training records before an evaluation that it is compared with."""
LEAST_GAPS = 4
"""Intervals between records of a metric after which it was logged regularly. Chosen."""
MISSING = 3.0
"""Times the longest of them after which the metric is missed. Chosen: one record may be skipped."""
SAME = 0.01
"""Share of a curve's range below which two values are shown once."""
_CLOCKS = frozenset({
    Quantity.STEP, Quantity.EPOCH, Quantity.EPISODE, Quantity.TOKENS_SEEN, Quantity.SAMPLES_SEEN, Quantity.ELAPSED,
    Quantity.TIMESTAMP, Quantity.TIME_LEFT, Quantity.RUNTIME, Quantity.FLOPS,
})  # fmt: skip
"""What says where a run is rather than how it goes."""
_OF_UPDATES = frozenset({Quantity.LEARNING_RATE, Quantity.GRADIENT_NORM, Quantity.LOSS_SCALE, Quantity.SKIPPED_STEPS})
_DIGITS = regex(r"\d+")


def quantity_facts(run: Run, findings: Sequence[Finding]) -> list[QuantityFact]:
    """Return a line for each quantity that was logged, counters left out, what decides first."""
    decides = frozenset(
        name for finding in findings if finding.state is State.PRESENT for name in rests_on(run, finding)
    )
    shown = [name for name in run.series if not is_clock(run[name])]
    facts = []
    for group in _groups(run, shown):
        curves = {name: course for name in group if (course := course_of(run[name])) is not None}
        if curves:
            facts.append(_alike(run, curves, decides) if _is_group(run, group) else _line(run, curves, decides))
    return sorted(facts, key=lambda fact: _place(run[fact.name], fact, run.last_step))


def is_clock(series: Series) -> bool:
    """Say whether a series counts or tells the time, rather than how training goes."""
    role = series.role
    return series.name.startswith("summary/") or (role is not None and role.quantity in _CLOCKS)


def _groups(run: Run, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the columns of each line: training with evaluation, and many parts of one quantity together."""
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(_kind_of_part(run[name]), []).append(name)
    alike = {name: tuple(group) for group in parts.values() if len(group) > MOST_ALIKE for name in group}
    groups: dict[str, tuple[str, ...]] = {}
    for name in names:
        if name in alike:
            groups[alike[name][0]] = alike[name]
        else:
            plain = name.removeprefix("eval_")
            groups.setdefault(
                plain, tuple(text for text in (plain, f"eval_{plain}") if text in names and text not in alike)
            )
    return list(groups.values())


def _kind_of_part(series: Series) -> str:
    """Return what is the same in the names of columns that are alike: those of layers, of reward functions."""
    role = series.role
    if role is not None and role.part and role.quantity not in LOSSES:
        return f"{role.quantity} {role.phase} {role.statistic}"
    bare = _DIGITS.sub("#", series.logged_as or series.name)
    return bare if bare != (series.logged_as or series.name) else f"={series.name}"


def _is_group(run: Run, group: Collection[str]) -> bool:
    return len(group) > MOST_ALIKE or len({_kind_of_part(run[name]) for name in group}) < len(group)


def _place(series: Series, fact: QuantityFact, last: float) -> tuple[int, float]:
    """Return how early a line stands: the loss, what a finding rests on, results, updates, what moved most."""
    role = series.role
    if series.name.removeprefix("eval_") in ("loss", "reward"):
        return 0, 0.0
    moved = -max(_moved(curve) for curve in fact.curves)
    if max(curve.records for curve in fact.curves) == 1 and series.step[-1] == last:
        return 6, moved  # of a closing record
    if fact.decides:
        return 1, 0.0
    if role is not None and role.quantity.is_result:
        return 2, 0.0
    if role is not None and role.quantity in _OF_UPDATES:
        return 3, 0.0
    return (4 if role is None else 5), moved


def _moved(curve: CurveFact) -> float:
    """Return how far a curve moved against its level."""
    level = max(abs(curve.early), abs(curve.last))
    return abs(curve.last - curve.early) / level if level > 0 and np.isfinite(level) else 0.0


def _line(run: Run, courses: Mapping[str, Course], decides: frozenset[str]) -> QuantityFact:
    """Return the line of one quantity, in training and in evaluation."""
    first = next(iter(courses))
    role = run[first].role
    result = role is not None and role.is_whole and (role.quantity.is_result or role.quantity in _OF_UPDATES)
    curves = [_curve(run, name, course) for name, course in list(courses.items())[:MOST_CURVES]]
    return QuantityFact.model_construct(
        name=first,
        role=_role_words(run[first]),
        curves=curves,
        columns=len(courses),
        gap=_gap(run, first) if len(courses) > 1 else "",
        decides=not decides.isdisjoint(courses),
        matters=result or not decides.isdisjoint(courses),
    )


def _role_words(series: Series) -> str:
    role = series.role
    return "" if role is None else " ".join(part for part in (role.phase, str(role.quantity), role.part) if part)


def _alike(run: Run, courses: Mapping[str, Course], decides: frozenset[str]) -> QuantityFact:
    """Return one line for many columns: the highest, the lowest and what moved most."""
    order = sorted(courses, key=lambda name: courses[name].last)
    facts = {name: _curve(run, name, courses[name]) for name in courses}
    most = max(courses, key=lambda name: _moved(facts[name]))
    lost = [name for name in courses if courses[name].lost]
    shown = list(dict.fromkeys([*lost[:1], order[-1], order[len(order) // 2], order[0], most]))[:MOST_CURVES]
    return QuantityFact.model_construct(
        name=shown[0],
        role=_role_words(run[shown[0]]),
        curves=[facts[name] for name in shown],
        columns=len(courses),
        decides=not decides.isdisjoint(courses),
        matters=not decides.isdisjoint(courses),
    )


def _curve(run: Run, metric: str, course: Course) -> CurveFact:
    series = run[metric]
    name = series.logged_as or series.name
    meaning = f" (= {series.name})" if series.logged_as and _differs(series.logged_as, series.name) else ""
    meaning += f" in {series.unit}" if series.unit else ""
    return CurveFact.model_construct(
        name=name,
        unit=series.unit,
        records=course.records,
        first=course.first,
        early=course.early,
        low=course.low,
        low_at=course.low_at,
        high=course.high,
        high_at=course.high_at,
        last=course.last,
        noise=course.noise,
        course=str(course),
        text=f"{shorten(name, 60)}{meaning}: {_numbers(course)}{_stops(run, series)}",
    )


def _stops(run: Run, series: Series) -> str:
    """Say since when a metric stops being logged while the others go on, where it was logged regularly before."""
    gaps = np.diff(series.step)
    missing = run.last_step - float(series.step[-1])
    if len(gaps) < LEAST_GAPS or missing <= MISSING * float(gaps.max()):
        return ""
    return f"; not logged after {figure(series.step[-1])}, while the log goes on to {figure(run.last_step)}"


def _differs(logged: str, name: str) -> bool:
    """Say whether the name of a metric tells more than the one that it was logged with."""
    bare = {text.lower().replace("train/", "").replace("eval/", "eval_").replace("-", "_") for text in (logged, name)}
    return len(bare) > 1


def _numbers(course: Course) -> str:
    """Return a course in numbers and words, nothing twice."""
    shape = str(course)
    words = f"; {shape}" if shape else ""
    if course.is_constant:
        return f"{figure(course.last)}{words}" + (f" ({course.records})" if course.records > 1 else "")
    if course.points:
        return ", ".join(f"{figure(value)} at {figure(step)}" for step, value in course.points) + words
    same = SAME * (course.high - course.low)
    parts = [figure(course.first)]
    if abs(course.early - course.first) > same:
        parts.append(f"early {figure(course.early)}")
    if course.last - course.low > same and course.first - course.low > same:
        parts.append(f"low {figure(course.low)} at {figure(course.low_at)}")
    if course.high - course.last > same and course.high - course.first > same:
        parts.append(f"high {figure(course.high)} at {figure(course.high_at)}")
    parts.append(f"last {figure(course.last)}")
    if course.noise > same:
        parts.append(f"noise {course.noise:.2g}")
    return ", ".join(parts) + words


def _gap(run: Run, name: str) -> str:
    """Return evaluation less training, where both are logged: at first, where least and at the end.

    The training value is that of the last record, or the median of the records since the evaluation before.
    """
    role = run[name].role
    if f"eval_{name}" not in run or role is None or not (role.quantity.is_result or role.quantity in LOSSES):
        return ""
    train, evaluation = run[name].finite, run[f"eval_{name}"].finite
    ends = np.searchsorted(train.step, evaluation.step, side="right")
    records = int(min(MOST_BEFORE, max(1, median(np.diff(np.concatenate([[0], ends])))))) if len(ends) else 1
    pairs = [
        (float(step), float(value) - median(train.value[max(0, end - records) : end]))
        for step, value, end in zip(evaluation.step, evaluation.value, ends, strict=True)
        if end > 0
    ]
    if not pairs:
        return ""
    telling = dict.fromkeys(
        [pairs[0], min(pairs, key=lambda pair: pair[1]), max(pairs, key=lambda pair: pair[1]), pairs[-1]]
    )
    less = "training" if records == 1 else f"median of {records} training records"
    return f"evaluation - {less}: " + ", ".join(f"{gap:+.3g} at {figure(step)}" for step, gap in sorted(telling))
