"""How a question tells the attributes of its outcome: each by a function that says what it sees, or that it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence

Teller = Callable[[], Evidence | None]


def told(tellers: Mapping[str, Teller]) -> Answers:
    """Return what is seen by id; of what could not be judged, why."""
    answers: dict[str, Evidence | CannotTell] = {}
    for name, tell in tellers.items():
        try:
            seen: Evidence | CannotTell | None = tell()
        except CannotTell as why:
            seen = why
        if seen is not None:
            answers[name] = seen
    return answers
