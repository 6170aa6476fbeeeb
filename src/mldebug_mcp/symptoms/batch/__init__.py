"""One small file per check of a tokenized batch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mldebug_mcp.symptoms.batch.registry import BatchCheck, registered_checks
from mldebug_mcp.symptoms.discovery import import_modules


@lru_cache(maxsize=1)
def batch_checks() -> Mapping[str, BatchCheck]:
    """Return every check by id; the modules of this package are found and imported once."""
    import_modules(__name__)
    return dict(sorted(registered_checks().items()))
