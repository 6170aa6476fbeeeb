"""Outcomes of checks: what each says about the cause that the check belongs to."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from mldebug_mcp.diagnose.next_steps import FALSE_CONFIRMATION, SENSITIVITY
from mldebug_mcp.diagnose.ranking import Evidence
from mldebug_mcp.errors import InputError
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Hypothesis
from mldebug_mcp.text import shorten

Outcome = Literal["confirms", "refutes"]

BITS: Mapping[Outcome, float] = {
    "confirms": math.log2(SENSITIVITY / FALSE_CONFIRMATION),
    "refutes": math.log2((1 - SENSITIVITY) / (1 - FALSE_CONFIRMATION)),
}


def told_by_checks(outcomes: Mapping[str, Outcome]) -> list[Evidence]:
    """Return what checks say about the causes.

    Args:
        outcomes: By the id of a next step (such as "lr_too_high.1"): whether it "confirms" or "refutes".

    Raises:
        InputError: a check or an outcome does not exist; the message says where to find those that do.
    """
    known = {step.id: cause.id for cause in catalogue().causes.values() for step in cause.next_steps}
    evidence = []
    for check, outcome in outcomes.items():
        require_known(check, known, "check", "find the ids of checks in next_steps, such as lr_too_high.1")
        require_known(outcome, BITS, "outcome", "use confirms or refutes")
        evidence.append(Evidence(known[check], BITS[outcome], f"check {check} {outcome} it", "check"))
    return evidence


def without_made(hypotheses: Sequence[Hypothesis], outcomes: Collection[str]) -> list[Hypothesis]:
    """Return the hypotheses without the checks that have been made."""
    return [
        one.model_copy(update={"next_steps": [step for step in one.next_steps if step.id not in outcomes]})
        for one in hypotheses
    ]


def require_known(name: str, allowed: Collection[str], what: str, hint: str) -> None:
    """Raise InputError if a name is not among those that exist."""
    if name not in allowed:
        raise InputError(f"there is no {what} {shorten(name, 60)!r}; {hint}")
