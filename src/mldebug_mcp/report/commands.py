"""The call of a tool as the command line takes it: who reads an answer in a terminal has no tools to call."""

from __future__ import annotations

import ast
import shlex

_COMMANDS = {
    "diagnose_run": ("diagnose", "path"),
    "inspect_batch": ("batch", "path"),
    "probe_overfit": ("probe", "batch"),
    "check_memory": ("memory", "path"),
    "estimate_memory": ("estimate", "config"),
    "explain_error": ("error", "text"),
    "search_folklore": ("search", "query"),
    "explain": ("explain", "id"),
}
"""The command of each tool, and which of its arguments stands without a name."""


def as_command(call: str) -> str:
    """Return a call such as `check_memory(path="a", against="b")` as a command; another call as it is."""
    parsed = ast.parse(call, mode="eval").body
    if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name) or parsed.func.id not in _COMMANDS:
        return call
    command, bare = _COMMANDS[parsed.func.id]
    given = {word.arg: str(ast.literal_eval(word.value)) for word in parsed.keywords if word.arg}
    words = [given.pop(bare)] if bare in given else []
    for name, value in given.items():
        words += [f"--{name.replace('_', '-')}", value]
    return shlex.join(["mldebug-mcp", command, *words])
