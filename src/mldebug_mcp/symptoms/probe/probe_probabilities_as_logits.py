"""The loss is cross-entropy of probabilities taken for logits: a softmax or sigmoid is applied twice."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("loss_formula",),
    effects={"double_softmax": "always"},
)
def probe_probabilities_as_logits(seen: Measured) -> Evidence | None:
    """The loss is cross-entropy of probabilities taken for logits: a softmax or sigmoid is applied twice."""
    assert seen.loss_formula is not None
    if "softmaxed" not in seen.loss_formula:
        return None
    return Evidence("the loss equals the cross-entropy of probabilities that were taken for logits")
