"""One small file per check of a tokenized batch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from mldebug_mcp.symptoms.batch_registry import BatchCheck, registered_checks


@lru_cache(maxsize=1)
def batch_checks() -> Mapping[str, BatchCheck]:
    """Return every check by id; the modules of this package are found and imported once."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return dict(sorted(registered_checks().items()))
