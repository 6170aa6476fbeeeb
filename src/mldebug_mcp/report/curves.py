"""Which curves are shown of a diagnosis, on which scale, and as one line of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mldebug_mcp.checks.curve import sample, thinned
from mldebug_mcp.core.arrays import quantile, where_true
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.judge.sheet import rests_on
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import Diagnosis, Finding, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.report.sections import Line, line, otherwise

# The scale on which curves are drawn: linear or logarithmic, and not flattened by outliers.


MIN_LOG_SCALE_RATIO = 30.0
"""From the lowest fortieth of the values to the highest, beyond which a logarithmic scale shows more. Chosen by eye."""
FAR_OUT = 10.0
"""... or from there to the highest of all: then a spike would flatten the rest."""
MIN_DRAWN_VALUE = 1e-300
"""Below it the arithmetic of a picture would overflow."""
MAX_DRAWN_VALUE = 1e300
"""Above it the arithmetic of a picture would overflow."""
MIDDLE = (0.025, 0.975)
MAX_SHOWN_RANGES = 5.0
"""Ranges of the middle 95 % of the values that are shown with them; what lies farther is named in words."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of values shown, and whether it is logarithmic; values beyond it are drawn at its edge."""

    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: Floats) -> Floats:
        """Return how high values stand in the panel, 0 at the bottom and 1 at the top, shape (n,)."""
        value = np.clip(value, self.low, self.high)
        if self.logarithmic:
            return np.asarray(np.log(value / self.low) / math.log(self.high / self.low))
        return np.asarray((value - self.low) / (self.high - self.low))

    def share_of(self, part: Scale) -> float:
        """Return which part of the height another scale of the same kind takes, if it lies within."""
        if self.logarithmic:
            return math.log(part.high / part.low) / math.log(self.high / self.low)
        return (part.high / 2 - part.low / 2) / (self.high / 2 - self.low / 2)

    def ticks(self) -> list[float]:
        """Return round values to label, three to seven of them as a rule."""
        if self.logarithmic and self.high >= 10 * self.low:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            every = max(1, -(-(last - first + 1) // 7))
            return [10.0**power for power in range(first, last + 1, every)]
        return round_values(self.low, self.high)


def scale_of(values: Iterable[Floats], *, linear: bool = False) -> Scale:
    """Return a scale on which the curves can be read: logarithmic where they span far, unless it is to be linear.

    Outliers do not flatten the rest.
    """
    shown = np.clip(np.concatenate(list(values)), -MAX_DRAWN_VALUE, MAX_DRAWN_VALUE)
    if not len(shown):
        return Scale(0.0, 1.0)
    low, high = float(shown.min()), float(shown.max())
    below, above = (quantile(sample(shown), share) for share in MIDDLE)
    if low > MIN_DRAWN_VALUE and not linear and (above > MIN_LOG_SCALE_RATIO * below or high > FAR_OUT * above):
        return Scale(low / 1.1, high * 1.1, logarithmic=True)
    if above > below:
        span = above - below
        low, high = max(low, below - MAX_SHOWN_RANGES * span), min(high, above + MAX_SHOWN_RANGES * span)
    room = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    return Scale(low - room, high + room)


def round_values(low: float, high: float, about: int = 5) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten within a range, about so many."""
    rough = high / about - low / about
    if not MIN_DRAWN_VALUE < rough < MAX_DRAWN_VALUE:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    every = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    first, last = math.ceil(low / every), math.floor(high / every)
    return [round(number * every, 12) if every < 1 else number * every for number in range(first, last + 1)]


BARS = " ▁▂▃▄▅▆▇█"
"""Bars of each height, from none to a whole line."""
NOT_FINITE = "×"
_SMALLER = 2.0**-8
"""What values are multiplied by, so that the distance between the largest ones of both signs is a number too."""


def sparkline(series: Series, width: int, onset: float | None = None) -> tuple[str, int | None]:
    """Return a curve as `width` bars at most, and the column in which the step `onset` lies.

    Each column shows the highest value of its steps, so that a spike of one record is seen; × marks NaN and Inf. The
    scale is cut at twice the range of the middle 95 % of the values, so that one outlier does not flatten the rest.
    """
    if not len(series):
        return "", None
    count = min(max(width, 1), len(series))
    edges = np.linspace(0, len(series), count + 1).astype(int)
    value = series.value * _SMALLER
    is_finite = np.isfinite(value)
    low, high = _sparkline_scale(value[where_true(is_finite)])
    highest = np.maximum.reduceat(value, edges[:-1]).tolist()
    is_shown = np.logical_and.reduceat(is_finite, edges[:-1]).tolist()
    bars = [_bar(top, low, high) if shown else NOT_FINITE for top, shown in zip(highest, is_shown, strict=True)]
    column = None
    if onset is not None:
        at = min(int(np.searchsorted(series.step, onset)), len(series) - 1)
        column = int(np.searchsorted(edges, at, side="right")) - 1
    return "".join(bars), column


def _sparkline_scale(finite: Floats) -> tuple[float, float]:
    if not len(finite):
        return 0.0, 1.0
    low, high = (quantile(sample(finite), share) for share in (0.025, 0.975))
    return float(finite.min()), min(float(finite.max()), high + 2 * (high - low)) if high > low else float(finite.max())


def _bar(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.0
    return BARS[1 + int(min(max(share * 8, 0), 7))]


CURVES = ("loss", "eval_loss", "reward", "grad_norm")
DIAGNOSIS_CURVES_MOST_CURVES = 4
MIN_WIDE_COLUMNS = 72
"""Columns below which curves have lines of their own."""
_NAME_COLUMN = 13


def curve_lines(run: Run, diagnosis: Diagnosis, width: int) -> list[Line]:
    """Return a line of bars for each main curve, and the worst event below the first of those that it moved."""
    names = [name for name in CURVES if name in run and len(run[name]) > 1]
    names += [
        quantity.name for quantity in diagnosis.sheet.quantities if quantity.matters and len(run[quantity.name]) > 1
    ]
    lines: list[Line] = []
    marked = False
    for name in list(dict.fromkeys(names))[:DIAGNOSIS_CURVES_MOST_CURVES]:
        step = None if marked else worst_step(run, diagnosis, name)
        lines += _diagnosis_curves_curve(run, name, step, width)
        marked = marked or step is not None
    return lines


def worst_step(run: Run, diagnosis: Diagnosis, name: str) -> float | None:
    """Return the step of the worst event that a curve took part in: its largest jump, else where a finding begins."""
    logged = run[name].logged_as or name
    jumps = [event for event in diagnosis.sheet.events if event.size and f"{logged} " in event.text]
    if jumps:
        worst = max(jumps, key=lambda jump: (len(jump.findings) > 0, jump.size))
        return float(worst.step if worst.worst_at is None else worst.worst_at)
    begins = (
        finding.steps[0]
        for finding in diagnosis.findings
        if finding.state is State.PRESENT and finding.steps and name in rests_on(run, finding)
    )
    return next(begins, None)


def _diagnosis_curves_curve(run: Run, name: str, step: float | None, width: int) -> list[Line]:
    wide = width >= MIN_WIDE_COLUMNS
    bars, column = sparkline(run[name], width - (45 if wide else 4), step)
    first, last = figure(float(run[name].value[0])), figure(float(run[name].value[-1]))
    if wide:
        lines = [line(f"{shorten(name, _NAME_COLUMN):>{_NAME_COLUMN}} {first:>9} ", (bars, "cyan"), f" {last}")]
    else:
        lines = [line(shorten(f"{name} from {first} to {last}", width)), line((f"  {bars}", "cyan"))]
    if step is not None and column is not None:
        mark, indent = f"{run.step_name} {figure(step)}", (_NAME_COLUMN + 11 if wide else 2) + column
        fits = indent + len(mark) + 2 <= width
        # Where there is no room on the right, the words stand on the left of the arrow.
        arrow = " " * indent + f"▲ {mark}" if fits else f"{mark} ▲".rjust(indent + 1)
        lines.append(line((arrow[-width:], "bold red")))
    return lines


# What of a run to draw: panels of curves, no finer than a screen, with the onsets of what was seen in them.


MAX_CURVE_STRETCHES = 400
"""Stretches into which a curve is cut: finer than most pictures are wide in pixels, it would look the same."""
MOST_PANELS = 8
CURVES_MOST_CURVES = 6
MOST_MARKS = 40
MOST_SIBLINGS = 6
"""More curves in one panel cannot be distinguished (chosen)."""
MIN_SHARE_OF_PANEL = 0.5
"""Of the height of a panel that the run itself keeps when siblings are drawn (chosen)."""
MAX_RUN_NAME = 60
REFERENCE_RUN = "the reference run"
ALWAYS_DRAWN = ("loss", "reward", "accuracy", "grad_norm", "learning_rate")
"""Metrics that are drawn whether or not anything was seen in them; an evaluation of the same name is drawn with it."""
LINEAR = ("learning_rate",)
"""Drawn so whatever it spans: a schedule that ends near zero is known by its shape."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric as it is drawn: steps and values of each stretch between restarts, and at most `MOST_MARKS` lost steps.

    `of` is the other run that it is from, in words; "" for the run itself.
    """

    name: str
    lines: tuple[tuple[Floats, Floats], ...]
    lost: Floats
    of: str = ""

    @property
    def title(self) -> str:
        """What it is called in the key to a picture."""
        return (
            f"{shorten(self.name, MAX_RUN_NAME)} of {shorten(self.of, MAX_RUN_NAME)}"
            if self.of
            else shorten(self.name, MAX_RUN_NAME)
        )

    @property
    def values(self) -> Floats:
        """All values that are drawn, shape (n,)."""
        return np.concatenate([value for _, value in self.lines]) if self.lines else np.empty(0)


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a finding begins, by the number under which it is listed."""

    number: int
    symptom: str
    step: float

    @property
    def words(self) -> str:
        """What begins there, in words."""
        return f"{self.symptom} at {figure(self.step)}"


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves on one scale, over all steps of the run, with the steps at which it was restarted or resumed."""

    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]
    scale: Scale
    restarts: tuple[float, ...] = ()
    worst: float | None = None
    """The step of the worst event that its curves took part in; None where no fault leads."""

    @property
    def beyond(self) -> float | None:
        """The value farthest beyond the scale, or None if all are on it."""
        values = np.concatenate([curve.values for curve in self.curves])
        high, low = float(values.max()), float(values.min())
        return high if high > self.scale.high else low if low < self.scale.low else None


def labels(marks: Sequence[Mark], near: float, letter: float) -> list[tuple[str, list[Mark]]]:
    """Return the marks of a panel that share a label, with the numbers on it, so that no label covers the next.

    A label of one digit takes `near` steps, each further letter `letter` steps.
    """
    together: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda mark: (mark.step, mark.number)):
        if together and mark.step - together[-1][0].step <= near + letter * (len(_numbers(together[-1])) - 1) / 2:
            together[-1].append(mark)
        else:
            together.append([mark])
    return [(_numbers(group), group) for group in together]


def _numbers(group: list[Mark]) -> str:
    return ", ".join(str(number) for number in sorted({mark.number for mark in group}))


def panels(
    run: Run,
    diagnosis: Diagnosis,
    findings: Sequence[Finding],
    reference: Run | None = None,
) -> list[Panel]:
    """Return what to draw of a run: what findings rest on first, then what is usual; at most `MOST_PANELS`.

    The findings are numbered from 1 as they are listed. The reference and siblings of the run are drawn behind it.
    """
    groups = _groups(run, diagnosis)
    numbered = [
        (number, finding)
        for number, finding in enumerate(findings, start=1)
        if finding.steps and math.isfinite(finding.steps[0])
    ]
    marks = _placed(run, numbered, groups)
    behind = _siblings(run) | ({REFERENCE_RUN: reference} if reference is not None else {})
    restarts = tuple(part.first_step for part in run.segments[1 : MOST_MARKS + 1])
    found = []
    for group in groups:
        curves = [_curve(run, name) for name in group]
        others = [_reference_curve(run, other, of, group[0]) for of, other in behind.items() if group[0] in other]
        worst = None if diagnosis.hypotheses[0].cause == SOUND else worst_step(run, diagnosis, group[0])
        scale = _scale([*curves, *others], linear=group[0] in LINEAR)
        found.append(Panel((*others, *curves), tuple(marks[group][:MOST_MARKS]), scale, restarts, worst))
    return found


def _siblings(run: Run) -> dict[str, Run]:
    """Return the siblings to draw, each under its name and what is set otherwise in it."""
    shown = [sibling for sibling in run.siblings if sibling.run.step_name == run.step_name][:MOST_SIBLINGS]
    return {
        f"{sibling.name} ({settings})" if (settings := otherwise(sibling)) else sibling.name: sibling.run
        for sibling in shown
    }


def _scale(curves: Sequence[Curve], *, linear: bool) -> Scale:
    """Return the scale of some curves: that of the run and its reference, and of siblings that do not flatten them."""
    taken = [curve.values for curve in curves if curve.of in ("", REFERENCE_RUN)]
    scale = scale_of(taken, linear=linear)
    for sibling in (curve.values for curve in curves if curve.of not in ("", REFERENCE_RUN) and len(curve.values)):
        wider = scale_of([*taken, sibling], linear=linear)
        if wider.logarithmic == scale.logarithmic and wider.share_of(scale) >= MIN_SHARE_OF_PANEL:
            taken.append(sibling)
            scale = wider
    return scale


def _groups(run: Run, diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """Return the metrics of each panel, none of them twice."""
    groups: list[tuple[str, ...]] = []
    for name in _names(run, diagnosis):
        placed = {text for group in groups for text in group}
        group = tuple(text for text in _of_one_panel(run, name) if text not in placed)
        if group and name not in placed and len(groups) < MOST_PANELS:
            groups.append(group[:CURVES_MOST_CURVES])
    return groups


def _names(run: Run, diagnosis: Diagnosis) -> list[str]:
    """Return metrics in the order in which they are worth drawing."""
    present = [finding for finding in diagnosis.findings if finding.state is State.PRESENT]
    behind = [name for finding in present for name in rests_on(run, finding)]
    others = [name for name in run.series if name not in behind]
    return ["loss", *behind, *ALWAYS_DRAWN, *(others if "loss" not in run else [])]


def _of_one_panel(run: Run, name: str) -> tuple[str, ...]:
    """Return the metrics that stand in one panel with a metric: training and evaluation of one name."""
    plain = name.removeprefix("eval_")
    group = [plain, f"eval_{plain}"]
    if plain == "loss":
        group += [series for series in run.series if series.startswith("eval_") and series.endswith("_loss")]
    return tuple(dict.fromkeys(text for text in group if text in run and len(run[text].finite)))


def _placed(
    run: Run, numbered: list[tuple[int, Finding]], groups: list[tuple[str, ...]]
) -> dict[tuple[str, ...], list[Mark]]:
    """Return the marks of each group: a finding stands in all that it rests on, or in the first."""
    marks: dict[tuple[str, ...], list[Mark]] = {group: [] for group in groups}
    for number, finding in numbered:
        rests = set(rests_on(run, finding))
        places = [group for group in groups if rests & set(group)] or groups[:1]
        for group in places:
            marks[group].append(Mark(number, finding.symptom, finding.steps[0]))
    return marks


def _curve(run: Run, name: str) -> Curve:
    parts = [part[name] for part in run.parts() if name in part]
    lines = tuple(_reduced(part.finite) for part in parts if len(part.finite))
    lost = np.concatenate([part.step[~np.isfinite(part.value)] for part in parts] or [np.empty(0)])
    return Curve(name, lines, sample(lost, MOST_MARKS))


def _reference_curve(run: Run, other: Run, of: str, name: str) -> Curve:
    """Return a metric of another run as far as the run itself has come."""
    series = other[name].finite.between(run.first_step, run.last_step)
    return Curve(name, (_reduced(series),) if len(series) else (), np.empty(0), of)


def _reduced(series: Series) -> tuple[Floats, Floats]:
    fewer = thinned(series, MAX_CURVE_STRETCHES)
    return fewer.step, fewer.value
