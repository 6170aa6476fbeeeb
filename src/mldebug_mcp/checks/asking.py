"""How a question is asked of a run, how it finds the outcome that it sees, and how that becomes findings."""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVarTuple

import numpy as np

from mldebug_mcp.checks.check import (
    DEFAULT_BACKGROUND,
    Answers,
    CannotTell,
    Detector,
    Evidence,
    Outcome,
    Question,
    Symptom,
    add,
)
from mldebug_mcp.checks.progress import is_young
from mldebug_mcp.core.text import counted, figure, shorten
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding, State

# How a question is asked of a run, part by part, and what was seen becomes findings: present, absent or unknown.


BROKEN = "the check failed; see the notes"


def judge(symptom: Symptom, run: Run) -> tuple[Finding, str | None]:
    """Judge a symptom on a run. The second value is a note, if its question itself broke."""
    findings, note = answer(symptom.question, run)
    return next(one for one in findings if one.symptom == symptom.id), note


def answer(asked: Question, run: Run) -> tuple[list[Finding], str | None]:
    """Ask a question of a run: a finding for each outcome. The second value is a note, if the question itself broke."""
    parts = (run,) if asked.whole_run else run.parts()
    answers: list[list[Finding]] = []
    note = None
    for part in parts:
        findings, problem = _answer_part(asked, part)
        note = note or problem
        if len(parts) > 1:
            where = f"in the stretch of {run.step_name}s {figure(part.first_step)} to {figure(part.last_step)}: "
            findings = [
                one.model_copy(update={"summary": where + one.summary})
                if one.summary and one.state is not State.UNKNOWN
                else one
                for one in findings
            ]
        answers.append(findings)
    return [_together(of_outcome) for of_outcome in zip(*answers, strict=True)], note


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
    return _not_logged(symptom.needs, symptom.question.any_of, run)


def _not_logged(needs: Iterable[str], any_of: tuple[str, ...], run: Run) -> tuple[tuple[str, ...], ...]:
    needed = tuple((metric,) for metric in needs if metric not in run)
    if any_of and not any(_has(run, pattern) for pattern in any_of):
        return (*needed, any_of)
    return needed


def _has(run: Run, pattern: str) -> bool:
    """Say whether a run has a metric, a quantity or a part of one, or any metric that a pattern with `*` stands for."""
    if isinstance(pattern, Quantity) and any(run.with_role(pattern, phase="train", parts=True)):
        return True
    return bool(fnmatch.filter(run.series, pattern)) if "*" in pattern else pattern in run


def _why_not(asked: Question, run: Run) -> str | None:
    """Return why a question cannot be asked of a run, or None if it can."""
    if run.kind in asked.not_for:
        return f"not judged for a run of kind {run.kind}"
    if missing := _not_logged(asked.needs, asked.any_of, run):
        return _said(missing)
    if asked.points > 1 and (count := len(run[asked.needs[0]].finite)) < asked.points:
        return f"{asked.needs[0]} has {counted(count, 'finite value')} here; {asked.points} are needed"
    if asked.settled and is_young(run):
        return f"the log ends at step {figure(run.last_step)}: it is too early to speak of no progress"
    return None


def _said(missing: Iterable[tuple[str, ...]]) -> str:
    return f"not logged: {', '.join(' or '.join(group) for group in missing)}"


def _answer_part(asked: Question, run: Run) -> tuple[list[Finding], str | None]:
    reason = _why_not(asked, run)
    if reason is not None:
        return [_unknown(one, reason) for one in asked.outcomes], None
    try:
        with np.errstate(all="ignore"):  # NaN and Inf are what is looked for here
            return _exclusive(asked, asked.ask(run), run), None
    except CannotTell as why:
        return [_unknown(one, str(why)) for one in asked.outcomes], None
    except Exception as error:  # noqa: BLE001 - a broken question is a note, never a failed answer
        return [_unknown(one, BROKEN) for one in asked.outcomes], note_on(asked.id, error)


def _exclusive(asked: Question, answers: Answers, run: Run) -> list[Finding]:
    """Return a finding for each outcome: where one is seen, the others are unknown, for they exclude each other."""
    present = {name for name, said in answers.items() if isinstance(said, Evidence) and said.present}
    leading = [one.id for one in asked.outcomes if one.id in present and not one.of]
    if len(leading) > 1:
        raise ValueError(f"outcomes exclude each other, and here are {', '.join(leading)}")
    findings = []
    for one in asked.outcomes:
        said = answers.get(one.id)
        if one.of and one.of not in present:
            findings.append(_unknown(one, f"told only beside {one.of}"))
        elif isinstance(said, CannotTell):
            findings.append(_unknown(one, str(said)))
        elif said is None and leading and not one.of:
            findings.append(_unknown(one, f"{leading[0]} is seen instead"))
        elif said is None and (missing := _not_logged(one.needs, (), run)):
            findings.append(_unknown(one, _said(missing)))
        else:
            findings.append(finding_of(one.id, said))
    return findings


def _unknown(one: Outcome, why: str) -> Finding:
    return Finding(symptom=one.id, state=State.UNKNOWN, summary=why)


def judged(symptom: str, detect: Callable[[], Evidence | None]) -> tuple[Finding, str | None]:
    """Call a detector and return what it found; the second value is a note, if the detector itself broke."""
    try:
        with np.errstate(all="ignore"):
            evidence = detect()
    except CannotTell as why:
        return Finding(symptom=symptom, state=State.UNKNOWN, summary=str(why)), None
    except Exception as error:  # noqa: BLE001 - a broken symptom is a note, never a failed answer
        return Finding(symptom=symptom, state=State.UNKNOWN, summary=BROKEN), note_on(symptom, error)
    return finding_of(symptom, evidence), None


def finding_of(symptom: str, evidence: Evidence | None) -> Finding:
    """Return what was seen of a symptom as a finding; None is its absence."""
    if evidence is None:
        return Finding(symptom=symptom, state=State.ABSENT)
    return Finding(
        symptom=symptom,
        state=State.PRESENT if evidence.present else State.ABSENT,
        summary=evidence.summary,
        steps=list(evidence.steps),
        values=dict(evidence.values),
    )


def note_on(symptom: str, error: Exception) -> str:
    """Return the note on a symptom or check that broke."""
    return f"{symptom} could not be judged: {type(error).__name__}: {shorten(str(error), 200)}"


# How a question finds the one outcome that it sees: readings are tried in order, and the first that sees ends it.


@dataclass(frozen=True, slots=True)
class Reading:
    """How an outcome is seen, and of which runs it can be judged; see `symptom` for the fields.

    Args:
        outcome: What is seen; its needs are required first.
        read: What sees it.
        settled: Whether a young run is too early for it.
        not_for: Kinds of run for which it makes no sense, beside those of its question.
    """

    outcome: Outcome
    read: Detector
    settled: bool
    not_for: tuple[str, ...]


def outcome_of(
    see: Callable[..., object],
    background: float = DEFAULT_BACKGROUND,
    *sources: str,
    needs: tuple[str, ...] = (),
    of: str = "",
    follows: tuple[str, ...] = (),
    instead: tuple[str, ...] = (),
    as_chosen: bool = False,
    points: int = 1,
) -> Outcome:
    """Return the outcome that a function sees: of its name, with its documentation; see `Outcome` for the fields."""
    doc = inspect.getdoc(see) or ""
    return Outcome(see.__name__, doc, background, sources, of, needs, follows, instead, as_chosen, points)


def reading(
    read: Detector,
    *,
    needs: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    points: int = 1,
    settled: bool = False,
    not_for: tuple[str, ...] = (),
    background: float = DEFAULT_BACKGROUND,
    follows: tuple[str, ...] = (),
    instead: tuple[str, ...] = (),
    as_chosen: bool = False,
) -> Reading:
    """Return how a function sees the outcome of its name, whose documentation is its own; see `symptom`."""
    outcome = outcome_of(
        read, background, *sources, needs=needs, follows=follows, instead=instead, as_chosen=as_chosen, points=points
    )
    return Reading(outcome, read, settled, not_for)


def ask_in_turn(
    name: str,
    *readings: Reading,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    not_for: tuple[str, ...] = (),
    whole_run: bool = False,
) -> None:
    """Register the question of a name that tries its readings in their order; see `symptom` for the other fields.

    What a healthy run shows of each is chosen, and counted anew by the fit, but for readings that are `as_chosen`.
    """

    def ask(run: Run) -> Answers:
        return first_of(run, readings)

    add(Question(name, tuple(one.outcome for one in readings), needs, any_of, 1, False, not_for, whole_run, ask))


def first_of(run: Run, readings: Sequence[Reading]) -> Answers:
    """Return the first outcome that is present, the remarks before it, and why others cannot be judged."""
    answers: dict[str, Evidence | CannotTell] = {}
    for one in readings:
        reason = _readings_why_not(one, run)
        try:
            seen: Evidence | CannotTell | None = one.read(run) if reason is None else CannotTell(reason)
        except CannotTell as why:
            seen = why
        if seen is None:
            continue
        answers[one.outcome.id] = seen
        if isinstance(seen, Evidence) and seen.present:
            break
    return answers


def _readings_why_not(one: Reading, run: Run) -> str | None:
    if run.kind in one.not_for:
        return f"not judged for a run of kind {run.kind}"
    if missing := [name for name in one.outcome.needs if name not in run]:
        return f"not logged: {', '.join(missing)}"
    if one.outcome.points > 1 and (count := len(run[one.outcome.needs[0]].finite)) < one.outcome.points:
        return f"{one.outcome.needs[0]} has {counted(count, 'finite value')} here; {one.outcome.points} are needed"
    if one.settled and is_young(run):
        return f"the log ends at step {figure(run.last_step)}: it is too early to speak of no progress"
    return None


# How a question hears several judges: each says what it sees, or that it cannot tell.


Teller = Callable[[], Evidence | None]
Given = TypeVarTuple("Given")


def by_outcome(judges: Iterable[Callable[[*Given], Evidence | None]], *given: *Given) -> dict[str, Teller]:
    """Return what each judge says of the same things, by the outcome that it is named after."""
    return {judge.__name__: partial(judge, *given) for judge in judges}


def said_by(teller: Teller) -> Evidence | CannotTell | None:
    """Return what one says; that it cannot tell is an answer."""
    try:
        return teller()
    except CannotTell as why:
        return why


def told(tellers: Mapping[str, Teller]) -> dict[str, Evidence | CannotTell]:
    """Return what each says, by outcome; those that see nothing are left out."""
    said = {outcome: said_by(teller) for outcome, teller in tellers.items()}
    return {outcome: one for outcome, one in said.items() if one is not None}


def first_seen(tellers: Mapping[str, Teller]) -> dict[str, Evidence | CannotTell]:
    """Return what the first sees that sees anything, by its outcome; else what they remark or cannot tell."""
    answers: dict[str, Evidence | CannotTell] = {}
    for outcome, teller in tellers.items():
        said = said_by(teller)
        if isinstance(said, Evidence) and said.present:
            return {outcome: said}
        if said is not None:
            answers[outcome] = said
    return answers


def with_attribute(
    answers: Answers, leading: str, judge: Callable[[Evidence, *Given], Evidence | None], *given: *Given
) -> Answers:
    """Return the answers and, where the leading outcome is among them, what a judge says of an attribute of it."""
    seen = answers.get(leading)
    if not isinstance(seen, Evidence):
        return answers
    return {**answers, **told({judge.__name__: partial(judge, seen, *given)})}
