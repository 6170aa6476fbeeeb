"""mldebug-mcp: why did my training run go wrong? Ranked, cited hypotheses from its log."""

from __future__ import annotations

__version__ = "0.1.0"
