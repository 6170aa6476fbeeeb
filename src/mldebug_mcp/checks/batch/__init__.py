"""One small file per check of a tokenized batch."""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.checks.batch.registry import CHECKS, BatchCheck


def batch_checks() -> Mapping[str, BatchCheck]:
    """Return every check by id; the modules beside this one are imported on the first call."""
    return CHECKS.all()
