"""The same model and loss memorise the batch with the probe's own optimizer: the fault is in the user's step."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("contrast",),
    effects={
        "lr_too_high": "usually",
        "lr_too_low": "usually",
        "missing_zero_grad": "sometimes",
        "params_not_training": "sometimes",
        "clip_too_tight": "usually",
        "weight_decay_too_high": "usually",
        "lr_schedule_bug": "usually",
        "wrong_loss": "sometimes",
        "eval_mode_bug": "rarely",
        "low_precision_update": "sometimes",
        "unknown": "rarely",
    },
    background=0.002,
)
def probe_own_optimizer_learns(seen: Measured) -> Evidence | None:
    """The same model and loss memorise the batch with the probe's own optimizer: the fault is in the user's step."""
    assert seen.contrast is not None
    if not seen.contrast.memorised:
        return None
    rate = f" at a learning rate of {figure(seen.contrast.learning_rate)}" if seen.contrast.learning_rate else ""
    return Evidence(f"the probe's own AdamW memorises the batch in {len(seen.contrast.losses)} steps{rate}")
