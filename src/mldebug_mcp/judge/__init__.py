"""Observation → ranked causes and next steps.

The verbs are loaded on first use: to diagnose a log, nothing about batches has to be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldebug_mcp.core.lazy import lazily

if TYPE_CHECKING:
    from mldebug_mcp.judge.batch import inspect_batch
    from mldebug_mcp.judge.diagnosis import diagnose, diagnose_run

__all__ = ["diagnose", "diagnose_run", "inspect_batch"]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = lazily(__name__, {"diagnose": "diagnosis", "diagnose_run": "diagnosis", "inspect_batch": "batch"})
