"""The verb `update_diagnosis`: what the outcome of a check does to the hypotheses.

It keeps no state: the findings travel with the call.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from mldebug_mcp.diagnose.diagnosis import judge_causes
from mldebug_mcp.diagnose.known_errors import told_by_error
from mldebug_mcp.diagnose.next_call import after_ranking
from mldebug_mcp.diagnose.next_steps import FALSE_CONFIRMATION, SENSITIVITY, order_next_steps
from mldebug_mcp.errors import InputError
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Finding, State, Update
from mldebug_mcp.symptoms import symptoms
from mldebug_mcp.symptoms.probe import probe_symptoms
from mldebug_mcp.text import shorten

Outcome = Literal["confirms", "refutes"]

BITS: Mapping[Outcome, float] = {
    "confirms": math.log2(SENSITIVITY / FALSE_CONFIRMATION),
    "refutes": math.log2((1 - SENSITIVITY) / (1 - FALSE_CONFIRMATION)),
}


def update_diagnosis(
    findings: Mapping[str, State | str],
    outcomes: Mapping[str, Outcome],
    kind: str = "unknown",
    path: str = "LOG",
    error: str = "",
) -> Update:
    """Rank the causes again, given what was found before and how checks turned out.

    Args:
        findings: The state of each symptom that was judged: "present", "absent" or "unknown".
        outcomes: By the id of a next step (such as "lr_too_high.1"): whether it "confirms" or "refutes".
        kind: Kind of run, as the diagnosis gave it.
        path: The run, for the calls of the next steps.
        error: The message of the error that ended the run, if one did: what it says of the causes counts too.

    Raises:
        InputError: a symptom, a check or an outcome does not exist; the message names those that do.
    """
    known_checks = {step.id: cause.id for cause in catalogue().causes.values() for step in cause.next_steps}
    told = told_by_error(error)
    for check, outcome in outcomes.items():
        _require(check, known_checks, "check", "ids of checks stand in next_steps, such as lr_too_high.1")
        _require(outcome, BITS, "outcome", "use confirms or refutes")
        told.setdefault(known_checks[check], {})[f"check {check} {outcome} it"] = BITS[outcome]
    hypotheses = judge_causes(_findings(findings), kind, told, path)
    done = set(outcomes)
    remaining = [
        one.model_copy(update={"next_steps": [step for step in one.next_steps if step.id not in done]})
        for one in hypotheses
    ]
    next_steps = order_next_steps(remaining)
    return Update(hypotheses=remaining, next_steps=next_steps, next_step=after_ranking(next_steps, remaining))


def _findings(states: Mapping[str, State | str]) -> Sequence[Finding]:
    for symptom, state in states.items():
        _require(symptom, {*symptoms(), *probe_symptoms()}, "symptom", "ids of symptoms stand in findings")
        _require(str(state), set(map(str, State)), "state", "use present, absent or unknown")
    return [Finding(symptom=symptom, state=State(state)) for symptom, state in states.items()]


def _require(name: str, allowed: Collection[str], what: str, hint: str) -> None:
    if name not in allowed:
        raise InputError(f"there is no {what} {shorten(name, 60)!r}; {hint}")
