"""An answer as a client gets it: short or whole, the same in text and in structured content.

Some clients show the model only the structured content, others only the text, so both hold the same JSON. The notes say
what was cut, and which call returns it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal, TypeVar, cast

from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent
from pydantic import ValidationError

from mldebug_mcp.core.text import clean
from mldebug_mcp.models import (
    BatchInspection,
    Call,
    Diagnosis,
    ErrorExplanation,
    Explanation,
    MetricReading,
    Model,
    ProbeResult,
    SearchResult,
    Update,
)
from mldebug_mcp.models.base import Argument
from mldebug_mcp.models.batch import RowsAt
from mldebug_mcp.models.memory import MemoryEstimate, MemoryReport
from mldebug_mcp.models.runs import Contest, Runs
from mldebug_mcp.models.script import ScriptReport

LIMIT = 10_000
"""Characters of a concise answer: well below the size at which clients put an answer into a file instead."""
FULL_LIMIT = 80_000
"""Characters of a full answer: an ordinary diagnosis, whole, and about what clients let a model read of one answer."""
NOTE_ROOM = 500
"""Characters of a limit that are kept for the note on what was cut."""
LONGEST_CALL = 240

Detail = Literal["concise", "full"]
"""concise: what matters most, at most `LIMIT` characters; full: everything, at most `FULL_LIMIT`.

The instructions of the server say so."""
Answer = TypeVar(
    "Answer",
    bound=Diagnosis
    | Update
    | BatchInspection
    | ProbeResult
    | MemoryReport
    | MemoryEstimate
    | SearchResult
    | Explanation
    | ErrorExplanation
    | MetricReading
    | Runs
    | Contest
    | RowsAt
    | ScriptReport,
)

_call: ContextVar[Call | None] = ContextVar("call", default=None)


def answering(tool: str, arguments: Mapping[str, object]) -> AbstractContextManager[None]:
    """Remember which call is being answered, so that a shortened answer can say how to get the rest."""
    return shortened_from(_whole_call(tool, arguments))


def whole_call() -> Call | None:
    """Return the call for the whole answer to the one that is being answered, if it can be shown."""
    return _call.get()


@contextmanager
def shortened_from(whole: Call | None) -> Iterator[None]:
    """Remember the call for the whole of what is answered inside."""
    token = _call.set(whole)
    try:
        yield
    finally:
        _call.reset(token)


def reply(answer: Answer, detail: str, short: Callable[[Answer], Answer], *pictures: ImageContent) -> CallToolResult:
    """Return an answer as a tool result.

    Args:
        answer: The whole answer.
        detail: "full" for that; else the short form.
        short: Makes the short form.
        pictures: Images to send with it.
    """
    if detail == "full":
        content = _whole(answer)
    else:
        from mldebug_mcp.report.concise import as_json

        content = as_json(_shortened(answer, short(answer)))
    text = _text(content)
    shown = cast("list[ContentBlock]", [TextContent(text=text), *pictures])
    return CallToolResult(content=shown, structured_content=content)


def _text(content: Mapping[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _whole(answer: Answer) -> dict[str, object]:
    """Return everything, cut where it is longer than what a client takes."""

    def measure(model: Answer) -> int:
        return len(_text(model.model_dump(mode="json")))

    if measure(answer) <= FULL_LIMIT:
        return answer.model_dump(mode="json")
    from mldebug_mcp.report.concise import fitted, most_telling_first

    fitting = fitted(most_telling_first(answer), FULL_LIMIT - NOTE_ROOM, measure)
    return fitting.model_copy(update={"notes": [*fitting.notes, _in_a_terminal(_call.get())]}).model_dump(mode="json")


def _in_a_terminal(whole: Call | None) -> str:
    """Return a note on an answer that was cut though all was asked for, with the command that prints it whole."""
    from mldebug_mcp.judge.next_call import as_command

    command = "the command of this tool"
    if whole is not None:
        given = {name: value for name, value in whole.arguments.items() if name != "detail"}
        plain = all(isinstance(value, str | int | float) for value in given.values())
        if plain and len(json.dumps(given)) <= LONGEST_CALL:
            command = as_command(whole.model_copy(update={"arguments": given}))
    return (
        f"longer than {FULL_LIMIT:,} characters, so long lists and texts are cut, what tells least first; "
        f"everything: {command} --json, in a terminal"
    )


def _shortened(answer: Answer, brief: Answer) -> Model:
    """Return the short form, cut to what clients show, with the call that gives the rest."""
    from mldebug_mcp.report.concise import fitted

    whole = _call.get()
    fitting = fitted(brief, LIMIT - NOTE_ROOM)
    if fitting == answer:
        return fitting
    return fitting.model_copy(update={"notes": [*fitting.notes, _all_of_it(whole)]})


def _all_of_it(whole: Call | None) -> str:
    """Return a note with the call for the whole answer, written out if it is short."""
    call = "this call with detail='full'"
    if whole is not None and len(json.dumps(str(whole))) <= LONGEST_CALL:
        call = str(whole)
    return f"shortened; everything: {call}"


def _whole_call(tool: str, arguments: Mapping[str, object]) -> Call | None:
    """Return the call for the whole answer; None where its arguments do not survive being shown."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if any(isinstance(value, str) and clean(value) != value for value in given.values()):
        return None
    try:
        return Call(tool=tool, arguments=cast("dict[str, Argument]", {**given, "detail": "full"}))
    except ValidationError:
        return None
