"""The loss does not depend on any trainable parameter: its graph is cut, or all are frozen."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("loss_has_graph",),
    effects={"params_not_training": "sometimes"},
)
def probe_graph_detached(seen: Measured) -> Evidence | None:
    """The loss does not depend on any trainable parameter: its graph is cut, or all are frozen."""
    return None if seen.loss_has_graph else Evidence("the loss has no gradient function")
