"""What would tell a hypothesis from the next one: its cheapest check that the other does not share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mldebug_mcp.diagnose.next_steps import COST
from mldebug_mcp.models import Hypothesis, NextStep
from mldebug_mcp.text import shorten

LEADING = 5
LONGEST = 120


def with_what_separates(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses, the leading ones with what would tell each from the one behind it."""
    told = [
        one.model_copy(update={"separates": _told(one, other)}) for one, other in pairwise(hypotheses[: LEADING + 1])
    ]
    return [*told, *hypotheses[len(told) :]]


def _told(one: Hypothesis, other: Hypothesis) -> str:
    shared = {step.call or step.action for step in other.next_steps}
    own = [step for step in one.next_steps if (step.call or step.action) not in shared]
    asked = own or list(other.next_steps)
    return _check(min(asked, key=lambda step: (not step.answer, COST[step.cost]))) if asked else ""


def _check(step: NextStep) -> str:
    """Return the first sentence of a check, where it is short, and what the log says to it."""
    action = step.action.split(". ")[0].rstrip(".")
    told = f"{step.id}: {action}" if len(action) <= LONGEST else step.id
    return f"{told}; the log says: {shorten(step.answer, LONGEST)}" if step.answer else told
