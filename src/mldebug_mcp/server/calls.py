"""What every tool call needs, and which calls helper processes do: those of the tools that read files.

Unknown arguments are refused, and our own errors reach the model as one line that says what to do.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools.base import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import ConfigDict, PrivateAttr, ValidationError

from mldebug_mcp.core.access import Access, confined
from mldebug_mcp.core.errors import MLDebugError, is_failure
from mldebug_mcp.core.sandbox.pool import Pool
from mldebug_mcp.core.text import did_you_mean, nearest, shorten
from mldebug_mcp.models import Call
from mldebug_mcp.server.isolated import READ_BATCH, helped_by, isolated, reporting
from mldebug_mcp.server.messages import answering, shortened_from
from mldebug_mcp.server.tools import (
    check_memory,
    compare_runs,
    diagnose_run,
    diagnose_runs,
    estimate_memory,
    explain_error,
    inspect_batch,
    inspect_script,
    read_metric,
    rows_at,
    update_diagnosis,
)

# The calls that the server has done in helper processes.


def _in_json(tool: Callable[..., CallToolResult]) -> Callable[..., object]:
    def call(arguments: Mapping[str, Any], whole: Mapping[str, Any] | None) -> object:
        with shortened_from(None if whole is None else Call.model_validate(whole)):
            return tool(**arguments).model_dump(mode="json", by_alias=True)

    return call


def _read_batch(path: str) -> object:
    from mldebug_mcp.judge.probe import read_probe_batch

    return asdict(read_probe_batch(path))


_READ_FILES = (
    diagnose_run, read_metric, diagnose_runs, compare_runs, update_diagnosis, inspect_batch, inspect_script,
    check_memory, estimate_memory, explain_error, rows_at,
)  # fmt: skip
CALLS: Mapping[str, Callable[..., object]] = {tool.__name__: _in_json(tool) for tool in _READ_FILES} | {
    READ_BATCH: _read_batch
}


def prepare() -> None:
    """Import and read what the calls need, so that it takes nothing from what they may use."""
    from mldebug_mcp.judge import (  # noqa: F401
        batch,
        diagnosis,
        explain_error,
        group_comparison,
        memory,
        read_metric,
        rows,
        runs,
        script,
    )
    from mldebug_mcp.knowledge import catalogue
    from mldebug_mcp.report import (  # noqa: F401
        concise,
        diagnosis_concise,
    )

    catalogue()


# Each call: what is refused, where it is done, and what a failure says.


SCHEMAS = Path(__file__).parent / "schemas.json"


class StrictTool(Tool):
    """A tool that refuses unknown arguments, reads only where it may, and reports every failure in one line."""

    _access: Access = PrivateAttr(default_factory=Access)
    _pool: Pool | None = PrivateAttr(default=None)
    _own_progress: bool = PrivateAttr(default=False)
    _in_thread: bool = PrivateAttr(default=True)

    @classmethod
    def of(
        cls, function: Callable[..., Any], access: Access, pool: Pool | None = None, *, read_only: bool = True
    ) -> StrictTool:
        """Return the tool that calls a function; its docstring is the description.

        Args:
            function: A function that the model may call.
            access: What it may read.
            pool: The helpers in which it reads files; None to do that in this process.
            read_only: Whether it only reads; False if it runs the user's code.
        """
        tool = cls.from_function(
            function,
            description=inspect.cleandoc(function.__doc__ or ""),
            annotations=ToolAnnotations(
                read_only_hint=read_only,
                # The user's code can do and reach whatever the user can. Of a tool that only reads, nobody asks.
                destructive_hint=None if read_only else True,
                open_world_hint=not read_only,
            ),
            structured_output=False,
        )
        tool = cast("StrictTool", tool)
        tool._access = access
        tool._pool, tool._own_progress = pool, tool.is_async
        if pool is not None and tool.name in CALLS:
            tool.fn, tool.is_async, tool._in_thread = isolated(tool.name, pool), True, False
        # Deriving these anew at each start would take half of the time until the tools are listed.
        tool.fn_metadata.output_model = answer_type(function)
        tool.fn_metadata.output_schema = _schemas()[tool.name]
        lenient = tool.fn_metadata.arg_model
        body = {"model_config": ConfigDict(extra="forbid", defer_build=True), "__module__": __name__}
        strict = cast("type[ArgModelBase]", type(lenient.__name__, (lenient,), body))
        tool.fn_metadata.arg_model = strict
        tool.parameters = _compact(tool.parameters)  # unknown arguments are refused by the model above
        return tool

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,
    ) -> Any:  # noqa: ANN401 - the signature of the base class
        """Run the tool; every failure that the caller can fix is a ToolError of one line."""
        # An async tool is cancelled like any other task, and reports its own progress.
        watched = nullcontext() if self._own_progress else reporting(context, in_thread=self._in_thread)
        try:
            async with watched:
                with confined(self._access), answering(self.name, arguments), helped_by(self._pool):
                    return await super().run(arguments, context, convert_result)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(self._what_is_allowed(cause)) from None
            if isinstance(cause, MLDebugError):  # written for users, so that the model may see it
                raise ToolError(f"{error}: {cause}") from None
            raise
        except BaseException as error:
            if isinstance(error, Exception) or not is_failure(error):
                raise
            raise ToolError(
                f"{self.name}: a library crashed on this input; is the file damaged? Write it again, or name another"
            ) from None

    def _what_is_allowed(self, error: ValidationError) -> str:
        problems = error.errors(include_url=False, include_input=False)
        # A misspelt name explains the one that is missing because of it.
        problem = min(problems, key=lambda candidate: candidate["type"] != "extra_forbidden")
        name = shorten(".".join(map(str, problem["loc"])), 60)
        allowed = ", ".join(self.parameters["properties"])
        if problem["type"] == "extra_forbidden":
            near = did_you_mean(nearest(name, list(self.parameters["properties"])))
            return f"{self.name} has no argument {name!r}; {near}it takes: {allowed}"
        return f"{self.name}: argument {name!r}: {shorten(problem['msg'], 160).lower()}; it takes: {allowed}"


def _compact(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments without what tells a model nothing: each session pays for every token of it.

    Titles repeat names, an argument that may be left out needs no `null`, and an enumeration needs no type.
    """
    properties = {name: _compact_argument(argument) for name, argument in schema["properties"].items()}
    kept = {key: value for key, value in schema.items() if key != "title"}
    return kept | {"properties": properties}


def _compact_argument(argument: dict[str, Any]) -> dict[str, Any]:
    types = [option for option in argument.get("anyOf", ()) if option != {"type": "null"}]
    argument = {key: value for key, value in argument.items() if key not in {"title", "anyOf"}}
    argument = (types[0] if len(types) == 1 else {"anyOf": types} if types else {}) | argument
    idle = {"maxLength"} | ({"type"} if "enum" in argument else set())
    if not argument.get("default"):
        idle.add("default")
    return {key: value for key, value in argument.items() if key not in idle}


def answer_type(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - a type, which need not be a class
    """Return the type of a tool's structured content: the annotation next to `CallToolResult`, if any."""
    hint = get_type_hints(function, include_extras=True)["return"]
    return get_args(hint)[1] if get_origin(hint) is Annotated else hint


@lru_cache(maxsize=1)
def _schemas() -> dict[str, Any]:
    """Return the output schemas of the tools, as `docs/update_schemas.py` wrote them."""
    schemas: dict[str, Any] = json.loads(SCHEMAS.read_text(encoding="utf-8"))
    return schemas
