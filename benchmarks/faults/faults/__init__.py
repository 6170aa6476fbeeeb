"""What is wrong: each fault changes an experiment in one way, at several severities, and knows which cause it is."""

from __future__ import annotations

from benchmarks.faults.faults import (
    agents,
    data,
    endings,
    grpo,
    healthy,
    lightning,
    loss,
    machine,
    model,
    nonfinite,
    numerics,
    optimizer,
    preference,
    repeated,
    tokens,
    trainer,
    trl,
)  # fmt: skip
from benchmarks.faults.faults.fault import Fault

__all__ = ["FAULTS", "HEALTHY", "Fault"]

_BOTH = (repeated, numerics, tokens, endings, grpo, preference, agents, trainer, trl, lightning)

FAULTS: dict[str, Fault] = {
    fault.id: fault for module in (data, loss, nonfinite, optimizer, model, machine, *_BOTH) for fault in module.FAULTS
}
HEALTHY: dict[str, Fault] = {
    fault.id: fault for faults in (healthy.FAULTS, *(module.HEALTHY for module in _BOTH)) for fault in faults
}
