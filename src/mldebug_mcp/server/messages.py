"""Messages on their way in and out, and an answer as a client gets it.

Malformed ones get an answer, answers are made safe, and warnings go to standard error.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from queue import Full, Queue
from threading import Thread
from typing import Any, Literal, Protocol, TypeVar, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ContentBlock,
    ErrorData,
    ImageContent,
    JSONRPCError,
    JSONRPCNotification,
    TextContent,
    jsonrpc_message_adapter,
)
from pydantic import BaseModel, ValidationError

from mldebug_mcp.core.text import LONGEST_ERROR, clean, cut, shorten
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
from mldebug_mcp.models.data import MemoryEstimate, MemoryReport, RowsAt
from mldebug_mcp.models.runs import Contest, Runs
from mldebug_mcp.models.script import ScriptReport

# Messages that are none: the SDK passes over them without a word, and a client would wait for its answer for ever.
#
# One kind comes from clients in good order: text that was cut inside an emoji holds half of it, which JavaScript writes
# as a lone surrogate and the SDK's parser refuses. Another is a request whose id is no string or integer, which the SDK
# takes for a notification.


Send = Callable[[SessionMessage], Awaitable[None]]


class Incoming(Protocol):
    """What a transport yields: messages, and exceptions where there was none."""

    def __aiter__(self) -> Incoming: ...
    async def __anext__(self) -> SessionMessage | Exception: ...


async def relay(incoming: Incoming, onward: Send, answer: Send) -> None:
    """Pass messages on; mend those that can be, and answer the others with an error that says what is wrong."""
    async for item in incoming:
        if isinstance(item, SessionMessage):
            await (answer(_NO_ID) if _lacks_id(item) else onward(item))
        elif isinstance(item, ValidationError):
            message = mended(item)
            if message is not None:
                await onward(message)
            elif (error := error_of(item)) is not None:
                await answer(error)


def _lacks_id(item: SessionMessage) -> bool:
    """Return whether a message is a request without a usable id: all notifications of the protocol are called so."""
    message = item.message
    return isinstance(message, JSONRPCNotification) and not message.method.startswith("notifications/")


def mended(error: ValidationError) -> SessionMessage | None:
    """Return a message in which only halves of characters were wrong, with U+FFFD in their place, or None."""
    problem = error.errors(include_url=False)[0]
    if problem["type"] != "json_invalid" or "\\ud" not in str(problem["input"]).lower():
        return None
    try:
        whole = json.dumps(json.loads(problem["input"]), ensure_ascii=False)
        text = whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except (ValueError, RecursionError):
        return None


def error_of(error: ValidationError) -> SessionMessage | None:
    """Return the answer to an invalid message; None to an empty line."""
    problems = error.errors(include_url=False)
    if problems[0]["type"] == "json_invalid":
        if not str(problems[0]["input"]).strip():
            return None
        return _answer(None, PARSE_ERROR, f"not JSON: {problems[0]['msg'].removeprefix('Invalid JSON: ')}")
    given: dict[str, Any] = next((problem["input"] for problem in problems if problem["type"] == "missing"), {})
    what = problems[0]
    place = ".".join(map(str, what["loc"][1:])) or "it"
    return _answer(
        given.get("id"),
        INVALID_REQUEST,
        f"not a JSON-RPC 2.0 message ({place}: {what['msg'].lower()}); one object a line is due, with jsonrpc, id, "
        "method and params",
    )


def _answer(number: Any, code: int, message: str) -> SessionMessage:  # noqa: ANN401 - whatever stood there
    known = number if isinstance(number, int | str) and not isinstance(number, bool) else None
    error = ErrorData(code=code, message=shorten(message, 300))
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=known, error=error))


_NO_ID = _answer(None, INVALID_REQUEST, "a request without an id: give it one, a string or an integer")


# What every answer passes on its way out, over stdio and over HTTP, errors of the SDK's own among them.
#
# Answers of our verbs are safe already (`models/base.py`); here nothing is left to whoever writes the next one.


async def make_safe(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a request with clean text; the failure is described in one line of bounded length."""
    try:
        result = await call_next(ctx)
    except MCPError as error:
        code, message, data = error.error.code, error.error.message, error.error.data
        raise MCPError(code, shorten(message, LONGEST_ERROR), _each_text(data, _in_a_line)) from None
    except ValidationError:
        raise  # the SDK tells nothing of it but that it is one
    except Exception as error:
        raise MCPError(INTERNAL_ERROR, shorten(str(error), LONGEST_ERROR)) from error
    content = result.model_dump(by_alias=True, exclude_none=True) if isinstance(result, BaseModel) else result
    if content is None:
        return None
    return {name: _each_text(value, clean) for name, value in _in_short(content).items()}


def _in_short(content: dict[str, Any]) -> dict[str, Any]:
    """Return a result, the text of one that is an error cut to a line."""
    if not content.get("isError"):
        return content
    parts = [
        {**part, "text": shorten(part["text"], LONGEST_ERROR)} if "text" in part else part
        for part in content["content"]
    ]
    return {**content, "content": parts}


def _in_a_line(text: str) -> str:
    return shorten(text, LONGEST_ERROR)


def _each_text(value: object, change: Callable[[str], str]) -> object:
    """Return the value with every text in it changed; its form stays, because clients read fields by name."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {_each_text(name, change): _each_text(item, change) for name, item in value.items()}
    return value


# What the server writes to standard error: warnings, and errors that are none of ours.
#
# The SDK's own way takes seconds to print a traceback, and waits where a client leaves standard error unread; meanwhile
# nobody would be answered.


MOST_WAITING = 1000
"""Messages that wait to be written. Those beyond are lost."""
MAX_MESSAGE_CHARACTERS = 20_000
"""Characters of a message: a traceback has some thousand."""
_STANDARD_ERROR = 2


class _Handler(logging.Handler):
    """Has messages written by a thread of its own; they may quote what stands in a file, and are cleaned and cut."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Queue[str] = Queue(MOST_WAITING)
        Thread(target=self._write, daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Full):
            self._waiting.put_nowait(cut(self.format(record), MAX_MESSAGE_CHARACTERS))

    def _write(self) -> None:
        # Without Python's stream: its lock, held by a thread that waits, would keep the process from ending.
        while True:
            line = self._waiting.get()
            with suppress(OSError):
                os.write(_STANDARD_ERROR, f"{line}\n".encode())


def log_to_stderr() -> None:
    """Write warnings of this process in a way that holds up nobody, unless logging is set up already."""
    if not logging.root.handlers:
        logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s", handlers=[_Handler()])


# An answer as a client gets it: short or whole, the same in text and in structured content.
#
# Some clients show the model only the structured content, others only the text, so both hold the same JSON. The notes
# say what was cut, and which call returns it.


MAX_CONCISE_CHARACTERS = 10_000
"""Characters of a concise answer: well below the size at which clients put an answer into a file instead."""
FULL_LIMIT = 80_000
"""Characters of a full answer: an ordinary diagnosis, whole, and about what clients let a model read of one answer."""
NOTE_ROOM = 500
"""Characters of a limit that are kept for the note on what was cut."""
LONGEST_CALL = 240

Detail = Literal["concise", "full"]
"""concise: what matters most, at most `MAX_CONCISE_CHARACTERS` characters; full: everything, at most `FULL_LIMIT`.

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
        content = _whole_answer(answer)
    else:
        from mldebug_mcp.report.concise import as_json

        content = as_json(_shortened(answer, short(answer)))
    text = _text(content)
    shown = cast("list[ContentBlock]", [TextContent(text=text), *pictures])
    return CallToolResult(content=shown, structured_content=content)


def _text(content: Mapping[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _whole_answer(answer: Answer) -> dict[str, object]:
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
    fitting = fitted(brief, MAX_CONCISE_CHARACTERS - NOTE_ROOM)
    if fitting == answer:
        return fitting
    return fitting.model_copy(update={"notes": [*fitting.notes, _whole_answer_note(whole)]})


def _whole_answer_note(whole: Call | None) -> str:
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
