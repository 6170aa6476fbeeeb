"""What a symptom is, and how one is judged: present, absent or unknown.

A symptom is one small file: a function that takes a run and returns evidence in numbers, or None if it sees nothing.
What the function needs and the log lacks makes the finding unknown without a call: what was not logged is no
evidence.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding, State
from mldebug_mcp.symptoms.beginning import is_young
from mldebug_mcp.symptoms.discovery import Documented, Registry
from mldebug_mcp.text import counted, figure, shorten

DEFAULT_BACKGROUND = 0.02
BROKEN = "the check failed; see the notes"


class CannotTell(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a symptom that has the metrics it needs, but cannot judge them. The message says why."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a symptom saw.

    Args:
        summary: One sentence in numbers with steps. An observation: it names no cause.
        steps: Steps of note, the onset first.
        values: The numbers behind the summary.
        present: False for a remark on something harmless that a reader would otherwise ask about.
    """

    summary: str
    steps: tuple[float, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    present: bool = True


Detector = Callable[[Run], Evidence | None]


@dataclass(frozen=True, slots=True)
class Symptom(Documented):
    """A registered symptom; see `symptom` for the fields."""

    id: str
    needs: tuple[str, ...]
    any_of: tuple[str, ...]
    sources: tuple[str, ...]
    points: int
    settled: bool
    not_for: tuple[str, ...]
    whole_run: bool
    background: float
    follows: tuple[str, ...]
    instead: tuple[str, ...]
    as_chosen: bool
    detect: Detector


SYMPTOMS: Registry[Symptom] = Registry("mldebug_mcp.symptoms.run")


def symptom(
    *,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    points: int = 1,
    settled: bool = False,
    not_for: tuple[str, ...] = (),
    whole_run: bool = False,
    background: float = DEFAULT_BACKGROUND,
    follows: tuple[str, ...] = (),
    instead: tuple[str, ...] = (),
    as_chosen: bool = False,
) -> Callable[[Detector], Detector]:
    """Register a function as the symptom of its name.

    Args:
        needs: Metrics without which it cannot be judged.
        any_of: Metrics of which one suffices: a quantity, by whatever name; a name; or a name in which `*` stands for
            any text.
        sources: Ids of the sources of its thresholds; empty where they were fitted, which its docstring then says.
        points: Finite values that the first of `needs` must have in a segment.
        settled: It cannot be judged of a run that is still young (`is_young`).
        not_for: Kinds of run for which the question makes no sense (`kinds.KINDS`).
        whole_run: Judge the run as a whole, not segment by segment.
        background: How often a healthy run shows it, between 0 and 1.
        follows: Symptoms that bring it about whatever their cause: where one of them is present this one is no
            further evidence.
        instead: Symptoms that are the same trouble in another form, which rules this one out: where one of them is
            present, the absence of this one is not evidence.
        as_chosen: `background` stands as chosen, whatever the healthy runs of the benchmark show: their settings are
            drawn from a few, and hardly any of them is regularised as real runs are.
    """

    def register(detect: Detector) -> Detector:
        name = detect.__name__
        SYMPTOMS.add(
            Symptom(
                name,
                needs,
                any_of,
                sources,
                points,
                settled,
                not_for,
                whole_run,
                background,
                follows,
                instead,
                as_chosen,
                detect,
            )
        )
        return detect

    return register


def judge(symptom: Symptom, run: Run) -> tuple[Finding, str | None]:
    """Judge a symptom on a run. The second value is a note, if the symptom itself broke."""
    parts = (run,) if symptom.whole_run else run.parts()
    findings: list[Finding] = []
    note = None
    for part in parts:
        finding, problem = _judge_part(symptom, part)
        note = note or problem
        if len(parts) > 1 and finding.summary and finding.state is not State.UNKNOWN:
            where = f"in the stretch of {run.step_name}s {figure(part.first_step)} to {figure(part.last_step)}: "
            finding = finding.model_copy(update={"summary": where + finding.summary})
        findings.append(finding)
    return _together(findings), note


def _together(findings: Iterable[Finding]) -> Finding:
    """Return the finding that represents all segments.

    That is the last present one, else a remark, else an absent one, else an unknown one.
    """

    def weight(numbered: tuple[int, Finding]) -> tuple[int, bool, int]:
        position, finding = numbered
        return (
            [State.UNKNOWN, State.ABSENT, State.PRESENT].index(finding.state),
            bool(finding.summary),
            position,
        )

    return max(enumerate(findings), key=weight)[1]


def not_logged(symptom: Symptom, run: Run) -> tuple[tuple[str, ...], ...]:
    """Return what a run would have to log for a symptom to be judged: of each group, one metric."""
    needed = tuple((metric,) for metric in symptom.needs if metric not in run)
    if symptom.any_of and not any(_has(run, pattern) for pattern in symptom.any_of):
        return (*needed, symptom.any_of)
    return needed


def _has(run: Run, pattern: str) -> bool:
    """Say whether a run has a metric, a quantity or a part of one, or any metric that a pattern with `*` stands for."""
    if isinstance(pattern, Quantity) and any(run.with_role(pattern, phase="train", parts=True)):
        return True
    return bool(fnmatch.filter(run.series, pattern)) if "*" in pattern else pattern in run


def _why_not(symptom: Symptom, run: Run) -> str | None:
    """Return why a symptom cannot be judged on a run, or None if it can."""
    if run.kind in symptom.not_for:
        return f"not judged for a run of kind {run.kind}"
    if missing := not_logged(symptom, run):
        return f"not logged: {', '.join(' or '.join(group) for group in missing)}"
    if symptom.points > 1 and (count := len(run[symptom.needs[0]].finite)) < symptom.points:
        return f"{symptom.needs[0]} has {counted(count, 'finite value')} here; {symptom.points} are needed"
    if symptom.settled and is_young(run):
        return f"the log ends at step {figure(run.last_step)}: it is too early to speak of no progress"
    return None


def _judge_part(symptom: Symptom, run: Run) -> tuple[Finding, str | None]:
    reason = _why_not(symptom, run)
    if reason is not None:
        return Finding(symptom=symptom.id, state=State.UNKNOWN, summary=reason), None
    return judged(symptom.id, lambda: symptom.detect(run))


def judged(symptom: str, detect: Callable[[], Evidence | None]) -> tuple[Finding, str | None]:
    """Call a detector and return what it found; the second value is a note, if the detector itself broke."""
    try:
        with np.errstate(all="ignore"):  # NaN and Inf are what is looked for here
            evidence = detect()
    except CannotTell as why:
        return Finding(symptom=symptom, state=State.UNKNOWN, summary=str(why)), None
    except Exception as error:  # noqa: BLE001 - a broken symptom is a note, never a failed answer
        return Finding(symptom=symptom, state=State.UNKNOWN, summary=BROKEN), note_on(symptom, error)
    if evidence is None:
        return Finding(symptom=symptom, state=State.ABSENT), None
    return Finding(
        symptom=symptom,
        state=State.PRESENT if evidence.present else State.ABSENT,
        summary=evidence.summary,
        steps=list(evidence.steps),
        values=dict(evidence.values),
    ), None


def note_on(symptom: str, error: Exception) -> str:
    """Return the note on a symptom or check that broke."""
    return f"{symptom} could not be judged: {type(error).__name__}: {shorten(str(error), 200)}"
