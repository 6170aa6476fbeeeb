"""The calls that the server has done in helper processes: the tools that read files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from mcp_types import CallToolResult

from mldebug_mcp.models import Call
from mldebug_mcp.server.data_tools import check_memory, estimate_memory
from mldebug_mcp.server.isolated import READ_BATCH
from mldebug_mcp.server.reply import shortened_from
from mldebug_mcp.server.tools import (
    compare_runs,
    diagnose_run,
    diagnose_runs,
    explain_error,
    inspect_batch,
    inspect_script,
    read_metric,
    rows_at,
    update_diagnosis,
)


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
