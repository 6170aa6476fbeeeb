"""What every answer passes on its way out, over stdio and over HTTP, errors of the SDK's own among them.

Answers of our verbs are safe already (`models/base.py`); here nothing is left to whoever writes the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from pydantic import BaseModel, ValidationError

from mldebug_mcp.text import LONGEST_ERROR, clean, shorten


async def make_safe(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a request with clean text; what failed is said in one line of bounded length."""
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
        return [_each_text(one, change) for one in value]
    if isinstance(value, dict):
        return {_each_text(name, change): _each_text(one, change) for name, one in value.items()}
    return value
