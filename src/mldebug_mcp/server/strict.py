"""What every tool call needs, in one place.

Unknown arguments are refused, errors of ours reach the model as one line that says what to do, and no text from outside
can break the wire.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools.base import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp_types import ToolAnnotations
from pydantic import ConfigDict, ValidationError

from mldebug_mcp.errors import MLDebugError
from mldebug_mcp.text import clean, shorten


class StrictTool(Tool):
    """A tool that refuses unknown arguments and turns every foreseeable failure into one line for the model."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> StrictTool:
        """Return the tool that calls a function; its docstring is the description."""
        tool = cls.from_function(
            function,
            description=inspect.cleandoc(function.__doc__ or ""),
            annotations=ToolAnnotations(
                read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False
            ),
        )
        lenient = tool.fn_metadata.arg_model
        body = {"model_config": ConfigDict(extra="forbid"), "__module__": __name__}
        strict = cast("type[ArgModelBase]", type(lenient.__name__, (lenient,), body))
        tool.fn_metadata.arg_model = strict
        tool.parameters = strict.model_json_schema(by_alias=True)
        return cast("StrictTool", tool)

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,
    ) -> Any:  # noqa: ANN401 - the signature of the base class
        """Run the tool; every failure that its caller can mend is a ToolError of one line."""
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(self._what_is_allowed(cause)) from None
            raise ToolError(clean(str(error))) from cause

    def _what_is_allowed(self, error: ValidationError) -> str:
        problems = error.errors(include_url=False, include_input=False)
        # A name that is misspelt comes before the one that is missing because of it.
        problem = min(problems, key=lambda one: one["type"] != "extra_forbidden")
        name = shorten(".".join(map(str, problem["loc"])), 60)
        allowed = ", ".join(self.parameters["properties"])
        if problem["type"] == "extra_forbidden":
            return f"{self.name} has no argument {name!r}; it takes: {allowed}"
        return f"{self.name}: argument {name!r}: {shorten(problem['msg'], 160).lower()}; it takes: {allowed}"


def answers(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Let the errors that users are meant to read reach the model."""

    @functools.wraps(verb)
    def answer(*args: object, **kwargs: object) -> object:
        try:
            return verb(*args, **kwargs)
        except MLDebugError as error:
            raise ToolError(clean(str(error))) from None

    return answer
