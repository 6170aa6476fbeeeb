"""A token id has no row in its embedding."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("vocabulary",),
    effects={"tokenizer_mismatch": "often"},
)
def probe_vocabulary_small(seen: Measured) -> Evidence | None:
    """A token id has no row in its embedding."""
    return Evidence(seen.vocabulary) if seen.vocabulary else None
