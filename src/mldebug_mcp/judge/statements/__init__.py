"""What an error message says itself: which argument, attribute, value, shape or type is wrong, and what to change.

An entry of `errors.jsonl` holds one text for all messages that it fits. Here the values of a message are put into the
explanation: names, allowed values, both shapes. Only names without spaces, numbers and shapes are taken over. So what
a log says reaches the explanation as data, never as a sentence.
"""

from __future__ import annotations

from mldebug_mcp.core.text import clean
from mldebug_mcp.judge.statements import calls, values
from mldebug_mcp.judge.statements.form import Statement
from mldebug_mcp.knowledge.errors import MAX_TEXT
from mldebug_mcp.logs.failures import Failure

__all__ = ["Statement", "statement_of"]

_FORMS = (*calls.FORMS, *values.FORMS)
"""The first that fits, and that can be read, counts: forms of fewer messages stand above those of more."""


def statement_of(failure: Failure) -> Statement | None:
    """Return what the message of a failure says itself; None where it is of no form that is known."""
    text = " ".join(clean(failure.text[: 4 * MAX_TEXT]).split())[:MAX_TEXT]
    for form in _FORMS:
        found = form.pattern.search(text)
        if found is None or form.context.search(text) is None:
            continue
        if (statement := form.read(found, failure)) is not None:
            return Statement(form.entry, *statement)
    return None
