"""What is right for a labelled log."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.foreign.problems import CAUSES
from benchmarks.labelled import Labelled

HEALTHY, UNKNOWN = "healthy", "unknown"


@dataclass(frozen=True)
class Truth:
    """What a label says.

    Args:
        right: The causes that are right; `healthy` where nothing is wrong, `unknown` where no known cause is right.
        near: Further causes that a reader of the log would not blame.
        healthy: Nothing is wrong with the run.
    """

    right: frozenset[str]
    near: frozenset[str] = frozenset()
    healthy: bool = False


SOUND = Truth(frozenset({HEALTHY}), healthy=True)


def truth(one: Labelled) -> Truth | None:
    """Return what is right for a log; None where its label leaves that open.

    Raises:
        SystemExit: the label has none of the known forms, or a word for a problem that has no causes yet.
    """
    label = one.label
    if "cause" in label:
        injected = frozenset(label["cause"])
        return SOUND if injected == {HEALTHY} else Truth(injected | frozenset(label.get("acceptable", ())))
    if "fault" in label:
        injected = frozenset([label["fault"]])
        return SOUND if injected == {HEALTHY} else Truth(injected | frozenset(label.get("acceptable_causes", ())))
    if "label_kind" in label:
        if label["label_kind"] == HEALTHY:
            return SOUND
        right = frozenset(label["right"])
        return Truth(right, frozenset(label.get("near", ()))) if right else None
    problem = str(label.get("known_problem"))
    if problem in (HEALTHY, UNKNOWN):
        return SOUND if problem == HEALTHY else None
    if problem not in CAUSES:
        raise SystemExit(f"{one.name}: no label that is known; add the causes of {problem!r} to foreign/problems.py")
    return Truth(frozenset(CAUSES[problem]))
