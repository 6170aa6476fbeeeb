"""How a question is asked of its subject, how it finds the outcome that it sees, and how that becomes an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVarTuple, cast

import numpy as np

from mldebug_mcp.checks.check import (
    DEFAULT_BACKGROUND,
    Answers,
    CannotTell,
    Detector,
    Evidence,
    Outcome,
    Question,
    Subject,
    Symptom,
    add,
    missing_metrics,
    not_judged,
    not_logged,
    symptoms,
)
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding, State

# How a question is asked of its subject, and what was seen becomes an answer: present, absent or unknown.


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question saw of one of its outcomes.

    Args:
        outcome: Which outcome.
        state: Whether it is present.
        evidence: What was seen; of an absent outcome, a remark.
        unknown: Why it could not be judged.
    """

    outcome: Outcome
    state: State
    evidence: Evidence | None = None
    unknown: CannotTell | None = None

    def finding(self) -> Finding:
        """Return the answer as a finding of a run, a probe or a snapshot."""
        if self.evidence is None:
            summary = "" if self.unknown is None else str(self.unknown)
            return Finding.model_construct(symptom=self.outcome.id, state=self.state, summary=summary)
        return Finding.model_construct(
            symptom=self.outcome.id,
            state=self.state,
            summary=self.evidence.summary,
            steps=list(self.evidence.steps),
            values={name: float(value) for name, value in self.evidence.values.items()},
        )


def judge(symptom: Symptom, run: Run) -> tuple[Finding, str | None]:
    """Judge a symptom on a run. The second value is a note, if its question itself broke."""
    answers, note = answer(symptom.question, run)
    return next(given.finding() for given in answers if given.outcome.id == symptom.id), note


def answer_all(subject: Subject, asked_of: object) -> tuple[list[Answer], list[str]]:
    """Ask every question about a subject. Returns the answers by id of outcome, and notes on questions that broke."""
    answers, notes = [], []
    for asked in {symptom.question.id: symptom.question for symptom in symptoms(subject).values()}.values():
        checkpoint(f"asking about {asked.id}")
        given, note = answer(asked, asked_of)
        answers += given
        notes += [] if note is None else [note]
    return sorted(answers, key=lambda given: given.outcome.id), notes


def answer(asked: Question, subject: object) -> tuple[list[Answer], str | None]:
    """Ask a question of its subject: a run, a batch, what a probe measured, or a memory snapshot.

    Returns:
        An answer for each outcome, and a note, if the question itself broke. A run is asked segment by segment, unless
        the question is about it as a whole.
    """
    if asked.subject != "run" or asked.whole:
        return _answer_part(asked, subject)
    run = cast("Run", subject)
    parts = run.parts()
    answers: list[list[Answer]] = []
    note = None
    for part in parts:
        given, problem = _answer_part(asked, part)
        note = note or problem
        if len(parts) > 1:
            where = f"in the stretch of {run.step_name}s {figure(part.first_step)} to {figure(part.last_step)}: "
            given = [_located(outcome_answer, where) for outcome_answer in given]
        answers.append(given)
    return [_together(of_outcome) for of_outcome in zip(*answers, strict=True)], note


def _located(given: Answer, where: str) -> Answer:
    if given.evidence is None or not given.evidence.summary:
        return given
    return replace(given, evidence=replace(given.evidence, summary=where + given.evidence.summary))


def _together(answers: Iterable[Answer]) -> Answer:
    """Return the answer that represents all segments.

    That is the last present one, else a remark, else an absent one, else an unknown one.
    """

    def weight(numbered: tuple[int, Answer]) -> tuple[int, bool, int]:
        position, given = numbered
        return (
            [State.UNKNOWN, State.ABSENT, State.PRESENT].index(given.state),
            given.unknown is not None or (given.evidence is not None and bool(given.evidence.summary)),
            position,
        )

    return max(enumerate(answers), key=weight)[1]


def not_logged_by(symptom: Symptom, run: Run) -> tuple[tuple[str, ...], ...]:
    """Return what a run would have to log for a symptom to be judged: of each group, one metric."""
    return missing_metrics(symptom.needs, symptom.question.any_of, run)


def _answer_part(asked: Question, subject: object) -> tuple[list[Answer], str | None]:
    note = None
    unknown = asked.lacks(asked, subject)
    if unknown is None:
        try:
            with np.errstate(all="ignore"):  # NaN and Inf are what is looked for here
                return _exclusive(asked, asked.ask(subject), subject), None
        except CannotTell as why:
            unknown = why
        except Exception as error:  # noqa: BLE001 - a broken question is a note, never a failed answer
            unknown = CannotTell("the check failed; see the notes", "broken")
            note = f"{asked.id} could not be judged: {type(error).__name__}: {shorten(str(error), 200)}"
    return [Answer(outcome, State.UNKNOWN, unknown=unknown) for outcome in asked.outcomes], note


def _exclusive(asked: Question, answers: Answers, subject: object) -> list[Answer]:
    """Return an answer for each outcome: where one is seen, the others are unknown, for they exclude each other."""
    present = {name for name, evidence in answers.items() if isinstance(evidence, Evidence) and evidence.present}
    leading = [outcome.id for outcome in asked.outcomes if outcome.id in present and not outcome.of]
    if len(leading) > 1:
        raise ValueError(f"outcomes exclude each other, and here are {', '.join(leading)}")
    return [_answer_of(outcome, answers.get(outcome.id), present, leading, subject) for outcome in asked.outcomes]


def _answer_of(
    outcome: Outcome,
    result: Evidence | CannotTell | None,
    present: Collection[str],
    leading: Sequence[str],
    subject: object,
) -> Answer:
    unknown: CannotTell | None = None
    if outcome.of and outcome.of not in present:
        unknown = CannotTell(f"reported only with {outcome.of}", "excluded")
    elif isinstance(result, CannotTell):
        unknown = result
    elif isinstance(result, Evidence):
        return Answer(outcome, State.PRESENT if result.present else State.ABSENT, result)
    elif leading and not outcome.of:
        unknown = CannotTell(f"{leading[0]} is seen instead", "excluded")
    elif outcome.needs and (missing := missing_metrics(outcome.needs, (), cast("Run", subject))):
        unknown = not_logged(missing)
    return Answer(outcome, State.ABSENT if unknown is None else State.UNKNOWN, unknown=unknown)


# How a question finds the one outcome that it sees: readings are tried in order, and the first that sees ends it.


@dataclass(frozen=True, slots=True)
class Reading:
    """How an outcome is seen, and in which runs it can be judged; see `symptom` for the fields.

    Args:
        outcome: What is seen; its needs are required first.
        read: What sees it.
        settled: Whether a young run is too early for it.
        not_for: Kinds of run for which it makes no sense, besides those of its question.
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
    return Outcome(see.__name__, see.__doc__ or "", background, sources, of, needs, follows, instead, as_chosen, points)


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
    whole: bool = False,
) -> None:
    """Register the question of a name that tries its readings in their order; see `symptom` for the other fields.

    What a healthy run shows of each is chosen, and counted anew by the fit, but for readings that are `as_chosen`.
    """

    def ask(run: Run) -> Answers:
        return first_of(run, readings)

    add(
        Question(name, tuple(candidate.outcome for candidate in readings), ask, needs, any_of, 1, False, not_for, whole)
    )


def first_of(run: Run, readings: Sequence[Reading]) -> Answers:
    """Return the first outcome that is present, the remarks before it, and why others cannot be judged."""
    answers: dict[str, Evidence | CannotTell] = {}
    for candidate in readings:
        try:
            result: Evidence | CannotTell | None = _reading_lacks(candidate, run) or candidate.read(run)
        except CannotTell as why:
            result = why
        if result is None:
            continue
        answers[candidate.outcome.id] = result
        if isinstance(result, Evidence) and result.present:
            break
    return answers


def _reading_lacks(candidate: Reading, run: Run) -> CannotTell | None:
    outcome = candidate.outcome
    return not_judged(run, outcome.needs, points=outcome.points, settled=candidate.settled, not_for=candidate.not_for)


# How a question hears several judges: each says what it sees, or that it cannot tell.


BoundJudge = Callable[[], Evidence | None]
Given = TypeVarTuple("Given")


def by_outcome(judges: Iterable[Callable[[*Given], Evidence | None]], *given: *Given) -> dict[str, BoundJudge]:
    """Return what each judge says of the same things, by the outcome that it is named after."""
    return {judge.__name__: partial(judge, *given) for judge in judges}


def answer_of(judge: BoundJudge) -> Evidence | CannotTell | None:
    """Return what one says; that it cannot tell is an answer."""
    try:
        return judge()
    except CannotTell as why:
        return why


def answers_of(judges: Mapping[str, BoundJudge]) -> dict[str, Evidence | CannotTell]:
    """Return what each says, by outcome; those that see nothing are left out."""
    answers = {outcome: answer_of(judge) for outcome, judge in judges.items()}
    return {outcome: answer for outcome, answer in answers.items() if answer is not None}


def first_seen(judges: Mapping[str, BoundJudge]) -> dict[str, Evidence | CannotTell]:
    """Return what the first sees that sees anything, by its outcome; else what they remark or cannot tell."""
    answers: dict[str, Evidence | CannotTell] = {}
    for outcome, judge in judges.items():
        answer = answer_of(judge)
        if isinstance(answer, Evidence) and answer.present:
            return {outcome: answer}
        if answer is not None:
            answers[outcome] = answer
    return answers


def with_attribute(
    answers: Answers, leading: str, judge: Callable[[Evidence, *Given], Evidence | None], *given: *Given
) -> Answers:
    """Return the answers and, where the leading outcome is among them, what a judge says of an attribute of it."""
    evidence = answers.get(leading)
    if not isinstance(evidence, Evidence):
        return answers
    return {**answers, **answers_of({judge.__name__: partial(judge, evidence, *given)})}
