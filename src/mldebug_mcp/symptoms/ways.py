"""Several ways in which a question can be answered, tried one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mldebug_mcp.symptoms.registry import CannotTell, Evidence

Judge = Callable[[], Evidence | None]


def said_by(judge: Judge) -> Evidence | CannotTell | None:
    """Return what a judge says; that it cannot tell is an answer."""
    try:
        return judge()
    except CannotTell as why:
        return why


def first_seen(judges: Mapping[str, Judge]) -> dict[str, Evidence | CannotTell]:
    """Return what the first judge sees that sees anything, by its outcome; else what they remark or cannot tell."""
    answers: dict[str, Evidence | CannotTell] = {}
    for outcome, judge in judges.items():
        said = said_by(judge)
        if isinstance(said, Evidence) and said.present:
            return {outcome: said}
        if said is not None:
            answers[outcome] = said
    return answers
