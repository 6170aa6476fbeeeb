"""How a question hears several judges: each says what it sees, or that it cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVarTuple

from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence

Teller = Callable[[], Evidence | None]
Given = TypeVarTuple("Given")


def by_outcome(judges: Iterable[Callable[[*Given], Evidence | None]], *given: *Given) -> dict[str, Teller]:
    """Return what each judge says of the same things, by the outcome that it is named after."""
    return {judge.__name__: partial(judge, *given) for judge in judges}


def said_by(teller: Teller) -> Evidence | CannotTell | None:
    """Return what one says; that it cannot tell is an answer."""
    try:
        return teller()
    except CannotTell as why:
        return why


def told(tellers: Mapping[str, Teller]) -> dict[str, Evidence | CannotTell]:
    """Return what each says, by outcome; those that see nothing are left out."""
    said = {outcome: said_by(teller) for outcome, teller in tellers.items()}
    return {outcome: one for outcome, one in said.items() if one is not None}


def first_seen(tellers: Mapping[str, Teller]) -> dict[str, Evidence | CannotTell]:
    """Return what the first sees that sees anything, by its outcome; else what they remark or cannot tell."""
    answers: dict[str, Evidence | CannotTell] = {}
    for outcome, teller in tellers.items():
        said = said_by(teller)
        if isinstance(said, Evidence) and said.present:
            return {outcome: said}
        if said is not None:
            answers[outcome] = said
    return answers


def with_attribute(
    answers: Answers, leading: str, judge: Callable[[Evidence, *Given], Evidence | None], *given: *Given
) -> Answers:
    """Return the answers and, where the leading outcome is among them, what a judge says of an attribute of it."""
    seen = answers.get(leading)
    if not isinstance(seen, Evidence):
        return answers
    return {**answers, **told({judge.__name__: partial(judge, seen, *given)})}
