"""The verb `update_diagnosis`: the hypotheses after the outcome of a check.

It keeps no state: the run is diagnosed again, or its findings are passed in.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from mldebug_mcp.checks import symptoms
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.text import percent
from mldebug_mcp.judge.at_a_glance import glance_at_verdict
from mldebug_mcp.judge.causes import learner_of, of_learner, with_fitting_fixes
from mldebug_mcp.judge.diagnosis import Known, gather
from mldebug_mcp.judge.evidence import evidence_from_message, with_answers
from mldebug_mcp.judge.hypotheses import as_clause, judge_causes
from mldebug_mcp.judge.next_call import after_ranking, as_command
from mldebug_mcp.judge.next_steps import (
    Outcome,
    evidence_from_checks,
    order_next_steps,
    require_known,
    with_rows,
    with_what_separates,
    without_made,
)
from mldebug_mcp.judge.run_verdict import verdict_of
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.models import Finding, Hypothesis, NextStep, RunSummary, Sheet, State, Update
from mldebug_mcp.models.base import Glance

OUTCOMES_ALONE = (
    "nothing but the outcomes is known here, as for any run: give the path, or the findings of diagnose_run"
)


def update_diagnosis(
    findings: Mapping[str, State | str],
    outcomes: Mapping[str, Outcome],
    kind: str = "unknown",
    path: str | Path = "",
    error: str = "",
    *,
    config: str | Path | None = None,
    reference: str | Path | None = None,
    run: str = "",
) -> Update:
    """Rank the causes again, given what was found before and how checks turned out.

    Args:
        findings: The state of each symptom that was judged: "present", "absent" or "unknown". What the log's numbers
            say besides is known from its `path` alone.
        outcomes: By the id of a next step (such as "lr_too_high.1"): whether it "confirms" or "refutes".
        kind: Kind of run, as the diagnosis gave it.
        path: The run. If it can be read, it is diagnosed again, and `findings` need only hold what has changed.
        error: The message of the error that ended the run, if one did; it counts as evidence, too.
        config: As in `diagnose_run`, like those that follow.
        reference: The run that `path` was compared with.
        run: Which run, where the path holds several.

    Raises:
        InputError: a symptom, a check or an outcome does not exist, and the message says where to find those that do;
            or the run cannot be read and no findings are given.
    """
    checked = evidence_from_checks(outcomes)
    known, notes = Known(kind, _findings(findings), []), [] if path or findings or error else [OUTCOMES_ALONE]
    logged: Run | None = None
    if path:
        try:
            logged = read_run(path, config, run)
            known = _of_run(known, logged, read_run(reference) if reference is not None else None)
        except InputError as unreadable:
            if not findings:
                raise
            notes.append(f"only the findings passed in were used: {unreadable}")
    evidence = [*known.evidence, *evidence_from_message(error)]
    before = judge_causes(known.findings, known.kind, evidence, str(path) or "LOG")
    after = judge_causes(known.findings, known.kind, [*evidence, *checked], str(path) or "LOG")
    remaining = after
    if logged is not None:
        remaining = with_fitting_fixes(logged, with_answers(logged, remaining, known.findings), known.findings)
    else:
        remaining = [of_learner(hypothesis, known.kind) for hypothesis in remaining]
    remaining = with_what_separates(without_made(remaining, outcomes))
    remaining = remaining if logged is None else with_rows(logged, known.findings, remaining)
    next_steps = order_next_steps(remaining)
    return Update(
        at_a_glance=_at_a_glance(logged, known, remaining, next_steps, outcomes),
        hypotheses=remaining,
        next_steps=next_steps,
        next_step=after_ranking(next_steps, remaining),
        notes=[*notes, *_moved(before, after, {cause_evidence.cause for cause_evidence in checked})],
    )


def _at_a_glance(
    run: Run | None,
    known: Known,
    hypotheses: Sequence[Hypothesis],
    steps: Sequence[NextStep],
    outcomes: Mapping[str, Outcome],
) -> Glance:
    """Return what leads after the checks, and the command of the check that comes next."""
    read = RunSummary(
        path="" if run is None else run.path, formats=[], steps=0, metrics=list(run.series) if run else []
    )
    learner = known.kind if run is None else learner_of(run)
    verdict = verdict_of(read, Sheet(), known.findings, hypotheses, steps=steps, learner=learner)
    asked = steps[0] if steps else None
    command = ""
    if asked is not None and asked.call:
        command = as_command(asked.call)
    elif asked is not None and run is not None:
        made = [word for check, outcome in outcomes.items() for word in ("--outcome", f"{check}={outcome}")]
        command = shlex.join(["mldebug-mcp", "diagnose", run.path, *made, "--outcome", f"{asked.id}=OUTCOME"])
    return glance_at_verdict(verdict, command)


def _moved(before: Sequence[Hypothesis], after: Sequence[Hypothesis], checked: Collection[str]) -> list[str]:
    """Say of each cause that was checked how probable it was and is."""
    was = {hypothesis.cause: hypothesis.probability for hypothesis in before}
    return [
        f"{hypothesis.cause}: {percent(was[hypothesis.cause])} before the checks, "
        f"{percent(hypothesis.probability)} after"
        for hypothesis in after
        if hypothesis.cause in checked
    ]


def _of_run(given: Known, run: Run, reference: Run | None) -> Known:
    """Return what is known of a run; what was passed in takes precedence."""
    found = gather(run, reference, given.findings)
    return found if given.kind == "unknown" else replace(found, kind=given.kind)


def _findings(states: Mapping[str, State | str]) -> list[Finding]:
    """Return findings whose states alone are known: what is present says what it would be in any run."""
    known = {**symptoms("probe"), **symptoms()}
    for symptom, state in states.items():
        require_known(symptom, known, "symptom", "find the ids of symptoms in findings")
        require_known(str(state), set(map(str, State)), "state", "use present, absent or unknown")
    return [
        Finding(
            symptom=symptom, state=State(state), summary=as_clause(known[symptom]) if state == State.PRESENT else ""
        )
        for symptom, state in states.items()
    ]
