"""Observation → ranked causes and next steps.

The verbs are loaded on first use: to diagnose a log, nothing about batches has to be imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldebug_mcp.diagnose.batch import inspect_batch
    from mldebug_mcp.diagnose.diagnosis import diagnose, diagnose_run

__all__ = ["diagnose", "diagnose_run", "inspect_batch"]

_HOME = {"diagnose": "diagnosis", "diagnose_run": "diagnosis", "inspect_batch": "batch"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
