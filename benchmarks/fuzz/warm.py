"""Imports the verbs, which takes seconds, in the process that those of all targets are forked from."""

from __future__ import annotations

from benchmarks.fuzz import targets  # noqa: F401
from mldebug_mcp.server import calls

calls.prepare()
