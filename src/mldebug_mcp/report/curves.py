"""What of a run to draw: panels of curves, no finer than a screen, with the onsets of what was seen in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.diagnose.rests_on import rests_on
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.statistics import sample
from mldebug_mcp.measure.thinned import thinned
from mldebug_mcp.models import Diagnosis, Finding, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.report.diagnosis_curves import worst_step
from mldebug_mcp.report.scale import Scale, scale_of
from mldebug_mcp.report.shown import otherwise
from mldebug_mcp.text import figure, shorten

COLUMNS = 400
"""Stretches into which a curve is cut: finer than most pictures are wide in pixels, it would look the same."""
MOST_PANELS, MOST_CURVES = 8, 6
MOST_MARKS = 40
MOST_SIBLINGS = 6
"""More curves in one panel cannot be distinguished (chosen)."""
LEAST_SHARE = 0.5
"""Of the height of a panel that the run itself keeps when siblings are drawn (chosen)."""
MAX_NAME = 60
REFERENCE_RUN = "the reference run"
USUAL = ("loss", "reward", "accuracy", "grad_norm", "learning_rate")
"""Metrics that are drawn whether or not anything was seen in them; an evaluation of the same name is drawn with it."""
LINEAR = ("learning_rate",)
"""Drawn so whatever it spans: a schedule that ends near zero is known by its shape."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric as it is drawn.

    Args:
        name: Of the metric.
        lines: Steps and values of each stretch between restarts, two arrays of shape (n,) each.
        lost: Steps at which the value was NaN or infinite, at most `MOST_MARKS`.
        of: The other run that it is from, in words; "" for the run itself.
    """

    name: str
    lines: tuple[tuple[Floats, Floats], ...]
    lost: Floats
    of: str = ""

    @property
    def title(self) -> str:
        """What it is called in the key to a picture."""
        return (
            f"{shorten(self.name, MAX_NAME)} of {shorten(self.of, MAX_NAME)}"
            if self.of
            else shorten(self.name, MAX_NAME)
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
    def told(self) -> str:
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
        values = np.concatenate([one.values for one in self.curves])
        high, low = float(values.max()), float(values.min())
        return high if high > self.scale.high else low if low < self.scale.low else None


def labels(marks: Sequence[Mark], near: float, letter: float) -> list[tuple[str, list[Mark]]]:
    """Return the marks that share a label, with the numbers on it, so that no label covers the next.

    Args:
        marks: Of one panel.
        near: Steps that a label of one digit takes.
        letter: Steps that each further letter takes.
    """
    together: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda one: (one.step, one.number)):
        if together and mark.step - together[-1][0].step <= near + letter * (len(_numbers(together[-1])) - 1) / 2:
            together[-1].append(mark)
        else:
            together.append([mark])
    return [(_numbers(group), group) for group in together]


def _numbers(group: list[Mark]) -> str:
    return ", ".join(str(number) for number in sorted({one.number for one in group}))


def panels(
    run: Run,
    diagnosis: Diagnosis,
    seen: Sequence[Finding],
    reference: Run | None = None,
) -> list[Panel]:
    """Return what to draw of a run: what findings rest on first, then what is usual; at most `MOST_PANELS`.

    Args:
        run: As it was read; the first `MOST_SIBLINGS` of its siblings are drawn behind.
        diagnosis: What was made of it.
        seen: The findings in the order in which they are listed; the first is number 1.
        reference: The run that it was compared with, drawn behind, too.
    """
    groups = _groups(run, diagnosis)
    numbered = [(number, one) for number, one in enumerate(seen, start=1) if one.steps and math.isfinite(one.steps[0])]
    marks = _placed(run, numbered, groups)
    behind = _siblings(run) | ({REFERENCE_RUN: reference} if reference is not None else {})
    restarts = tuple(part.first_step for part in run.segments[1 : MOST_MARKS + 1])
    found = []
    for group in groups:
        curves = [_curve(run, name) for name in group]
        others = [_behind(run, other, of, group[0]) for of, other in behind.items() if group[0] in other]
        worst = None if diagnosis.hypotheses[0].cause == SOUND else worst_step(run, diagnosis, group[0])
        scale = _scale([*curves, *others], linear=group[0] in LINEAR)
        found.append(Panel((*others, *curves), tuple(marks[group][:MOST_MARKS]), scale, restarts, worst))
    return found


def _siblings(run: Run) -> dict[str, Run]:
    """Return the siblings to draw, each under its name and what is set otherwise in it."""
    shown = [one for one in run.siblings if one.run.step_name == run.step_name][:MOST_SIBLINGS]
    return {f"{one.name} ({told})" if (told := otherwise(one)) else one.name: one.run for one in shown}


def _scale(curves: Sequence[Curve], *, linear: bool) -> Scale:
    """Return the scale of some curves: that of the run and its reference, and of siblings that do not flatten them."""
    taken = [one.values for one in curves if one.of in ("", REFERENCE_RUN)]
    scale = scale_of(taken, linear=linear)
    for sibling in (one.values for one in curves if one.of not in ("", REFERENCE_RUN) and len(one.values)):
        wider = scale_of([*taken, sibling], linear=linear)
        if wider.logarithmic == scale.logarithmic and wider.share_of(scale) >= LEAST_SHARE:
            taken.append(sibling)
            scale = wider
    return scale


def _groups(run: Run, diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """Return the metrics of each panel, none of them twice."""
    groups: list[tuple[str, ...]] = []
    for name in _names(run, diagnosis):
        placed = {one for group in groups for one in group}
        group = tuple(one for one in _beside(run, name) if one not in placed)
        if group and name not in placed and len(groups) < MOST_PANELS:
            groups.append(group[:MOST_CURVES])
    return groups


def _names(run: Run, diagnosis: Diagnosis) -> list[str]:
    """Return metrics in the order in which they are worth drawing."""
    present = [one for one in diagnosis.findings if one.state is State.PRESENT]
    behind = [name for one in present for name in rests_on(run, one)]
    others = [name for name in run.series if name not in behind]
    return ["loss", *behind, *USUAL, *(others if "loss" not in run else [])]


def _beside(run: Run, name: str) -> tuple[str, ...]:
    """Return the metrics that stand in one panel with a metric: training and evaluation of one name."""
    plain = name.removeprefix("eval_")
    group = [plain, f"eval_{plain}"]
    if plain == "loss":
        group += [one for one in run.series if one.startswith("eval_") and one.endswith("_loss")]
    return tuple(dict.fromkeys(one for one in group if one in run and len(run[one].finite)))


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


def _behind(run: Run, other: Run, of: str, name: str) -> Curve:
    """Return a metric of another run as far as the run itself has come."""
    series = other[name].finite.between(run.first_step, run.last_step)
    return Curve(name, (_reduced(series),) if len(series) else (), np.empty(0), of)


def _reduced(series: Series) -> tuple[Floats, Floats]:
    fewer = thinned(series, COLUMNS)
    return fewer.step, fewer.value
