"""The optimizer's learning rate is zero."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence


@probe_symptom(
    needs=("parameters",),
    effects={"lr_too_low": "sometimes", "lr_schedule_bug": "rarely"},
)
def probe_learning_rate_zero(seen: Measured) -> Evidence | None:
    """The optimizer's learning rate is zero."""
    assert seen.parameters is not None
    rates = (
        seen.watched.learning_rates if seen.watched and seen.watched.learning_rates else seen.parameters.learning_rates
    )
    if rates is None:
        raise CannotTell("the optimizer is the probe's own")
    return Evidence("the learning rate is 0 in every group") if rates and max(rates) == 0 else None
