"""The learning rate is far below the range in which anything is learnt, and the batch is not memorised."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

TINY = 3e-6
"""Chosen: full fine-tuning of large models goes down to 5e-6."""


@probe_symptom(
    needs=("parameters",),
    effects={"lr_too_low": "sometimes"},
    background=0.005,
)
def probe_learning_rate_tiny(seen: Measured) -> Evidence | None:
    """The learning rate is far below the range in which anything is learnt, and the batch is not memorised."""
    assert seen.parameters is not None
    rates = (
        seen.watched.learning_rates if seen.watched and seen.watched.learning_rates else seen.parameters.learning_rates
    )
    if rates is None:
        raise CannotTell("the optimizer is the probe's own")
    if seen.memorised or not rates or not 0 < max(rates) < TINY:
        return None
    return Evidence(f"the largest learning rate is {figure(max(rates))}")
