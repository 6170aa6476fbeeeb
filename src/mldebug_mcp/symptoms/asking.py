"""How a question is asked of a run, part by part, and what was seen becomes findings: present, absent or unknown."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beginning import is_young
from mldebug_mcp.models import Finding, State
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, Question, Symptom
from mldebug_mcp.text import counted, figure, shorten

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
