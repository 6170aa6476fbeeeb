"""The user's step computes a loss but never calls the optimizer's step."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("watched", "movement"),
    effects={"params_not_training": "sometimes"},
)
def probe_optimizer_never_steps(seen: Measured) -> Evidence | None:
    """The user's step computes a loss but never calls the optimizer's step."""
    assert seen.watched is not None
    assert seen.movement is not None
    if seen.watched.optimizer_steps or seen.movement.still_share < 1:
        return None
    return Evidence(f"no optimizer step in {seen.watched.steps} calls of train_step")
