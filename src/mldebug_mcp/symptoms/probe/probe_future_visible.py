"""Predictions of the next token change with tokens that come after it."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("dependence", "loss_formula"),
    effects={"causal_mask_missing": "always"},
    sources=("karpathy_recipe",),
)
def probe_future_visible(seen: Measured) -> Evidence | None:
    """Predictions of the next token change with tokens that come after it.

    Not this when: the model fills in masked tokens, where it is meant to see both sides.
    """
    assert seen.dependence is not None
    assert seen.loss_formula is not None
    if seen.dependence.sees_future is None:
        raise CannotTell("not a model of token positions")
    follows = (seen.labels_against_ids or {}).get("next", 0.0) > 0.9
    if not seen.dependence.sees_future or not ("shifted" in seen.loss_formula or follows):
        return None
    return Evidence(
        f"outputs change by {figure(seen.dependence.future_change or 0)} of their size when only later tokens change",
        values={"change": seen.dependence.future_change or 0.0},
    )
