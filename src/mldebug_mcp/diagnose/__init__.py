"""Observation → ranked causes and next steps."""

from __future__ import annotations

from mldebug_mcp.diagnose.batch import inspect_batch
from mldebug_mcp.diagnose.diagnosis import diagnose, diagnose_run

__all__ = ["diagnose", "diagnose_run", "inspect_batch"]
