"""What is wrong with conversations and pairs as they were written: questions that differ, calls of tools, images."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from mldebug_mcp.batch.chats import NotAConversationError, messages_of
from mldebug_mcp.batch.templates import ASSISTANT

_ANSWER = re.compile(r"\n\s*(?:Assistant|ASSISTANT|AI|Response) ?:")
"""What stands before the answer where a pair is one text with plain markers, as Anthropic's HH data."""
PLACEHOLDER = "<image>"
_IMAGES = ("images", "image")

_Messages = Sequence[Mapping[str, object]]


def asks_apart(chosen: object, rejected: object) -> bool:
    """Return whether the two sides of a pair answer different questions."""
    one, other = _asked(chosen), _asked(rejected)
    return one is not None and other is not None and one != other


def _asked(value: object) -> str | None:
    """Return what the user said before the last answer; None where that cannot be told."""
    if isinstance(value, str):
        found = _ANSWER.search(value)
        return value[: found.start()].strip() if found else None
    chat = messages(value)
    if not chat:
        return None
    said = [str(one.get("content")) for one in chat[:-1] if one.get("role") == "user"]
    return "\n".join(said) if said else None


def messages(value: object) -> _Messages:
    """Return a conversation's messages; none if it is no conversation."""
    if not isinstance(value, list):
        return ()
    try:
        return messages_of(value)
    except NotAConversationError:
        return ()


def breaks_calls(chat: _Messages) -> bool:
    """Return whether a call of a tool has arguments that are no JSON, or a result answers a call that nobody made."""
    made: set[object] = set()
    for message in chat:
        for call in _calls(message):
            made.add(call.get("id"))
            function = call.get("function")
            arguments = function.get("arguments") if isinstance(function, dict) else None
            if isinstance(arguments, str) and not _is_json(arguments):
                return True
        answered = message.get("tool_call_id")
        if message.get("role") == "tool" and answered is not None and made - {None} and answered not in made:
            return True
    return False


def _calls(message: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    calls = message.get("tool_calls")
    if message.get("role") == ASSISTANT and isinstance(calls, list):
        yield from (call for call in calls if isinstance(call, dict))


def _is_json(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def missing_placeholders(chats: Sequence[object], images: Sequence[object]) -> list[int]:
    """Return the places of the rows whose text names more or fewer images than they have.

    Only where most rows mark the place of an image in the text, as LLaVA's data do.
    """
    marked = [sum(str(one.get("content")).count(PLACEHOLDER) for one in messages(chat)) for chat in chats]
    given = [len(one) if isinstance(one, list) else int(bool(one)) for one in images]
    if 2 * sum(map(bool, marked)) <= sum(map(bool, given)):
        return []
    return [place for place, pair in enumerate(zip(marked, given, strict=False)) if pair[0] != pair[1]]


def image_column(names: Mapping[str, object]) -> str | None:
    """Return the column that holds the images of each row, or None."""
    return next((name for name in _IMAGES if isinstance(names.get(name), list)), None)
