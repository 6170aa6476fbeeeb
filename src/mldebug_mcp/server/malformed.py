"""Messages that are none: the SDK passes over them without a word, and a client would wait for its answer for ever.

One kind comes from clients in good order: text that was cut inside an emoji holds half of it, which JavaScript writes
as a lone surrogate and the SDK's parser refuses. Another is a request whose id is no string or integer, which the SDK
takes for a notification.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from mldebug_mcp.text import shorten

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
    """Return the answer to what is no message; None to an empty line."""
    problems = error.errors(include_url=False)
    if problems[0]["type"] == "json_invalid":
        if not str(problems[0]["input"]).strip():
            return None
        return _answer(None, PARSE_ERROR, f"not JSON: {problems[0]['msg'].removeprefix('Invalid JSON: ')}")
    given: dict[str, Any] = next((one["input"] for one in problems if one["type"] == "missing"), {})
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
