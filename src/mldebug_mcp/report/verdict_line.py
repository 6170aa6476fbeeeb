"""A diagnosis in one line: a hypothesis, that nothing stands out, or that too little was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mldebug_mcp.diagnose.diagnosis import HARDLY_JUDGED
from mldebug_mcp.diagnose.results import NO_RESULT
from mldebug_mcp.models import Diagnosis
from mldebug_mcp.models.base import NO_FAULTS, OTHER, SOUND
from mldebug_mcp.text import percent


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """What leads, and how sure that is.

    Args:
        kind: "cause" where a cause leads, "healthy", or "unclear".
        head: In a few words.
        text: What that means, in a sentence.
    """

    kind: Literal["cause", "healthy", "unclear"]
    head: str
    text: str


def verdict_line(diagnosis: Diagnosis) -> VerdictLine:
    """Return the line; a cause is never said to be more than a hypothesis."""
    if any(note.startswith(NO_RESULT) for note in diagnosis.notes):
        return VerdictLine("unclear", "Too little seen", "no loss, score or reward was found in this log")
    if HARDLY_JUDGED in diagnosis.notes:
        return VerdictLine("unclear", "Too little seen", "hardly anything could be judged from this log")
    leader, *others = diagnosis.hypotheses
    share = percent(leader.probability)
    rival = next((one for one in others if one.cause not in NO_FAULTS), None)
    beside = f"; the likeliest fault would be {rival.cause}, {percent(rival.probability)}" if rival is not None else ""
    if leader.cause == SOUND:
        return VerdictLine("healthy", f"Nothing stands out ({share})", f"what is seen is usual for such runs{beside}")
    if leader.cause == OTHER:
        return VerdictLine("unclear", f"No cause stands out ({share})", f"what is seen fits none of them well{beside}")
    said = f"{leader.summary.split('. ')[0].rstrip('.')}" or "it leads the causes"
    return VerdictLine("cause", f"It may be {leader.cause} ({share})", f"a hypothesis, no verdict: {said}.")
