"""The batch was not memorised within the steps."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.common import was_cut_short
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("memorised",),
    effects={
        "params_not_training": "usually",
        "lr_too_low": "usually",
        "lr_too_high": "often",
        "wrong_loss": "often",
        "double_softmax": "usually",
        "label_noise": "sometimes",
        "no_signal": "often",
        "missing_zero_grad": "sometimes",
        "all_labels_masked": "usually",
        "vanishing_gradients": "usually",
        "dead_units": "usually",
        "too_little_capacity": "always",
        "clip_too_tight": "usually",
        "weight_decay_too_high": "usually",
        "lr_schedule_bug": "usually",
        "bad_init": "sometimes",
        "exploding_gradients": "often",
        "low_precision_update": "often",
        "rows_mixed": "sometimes",
        "eval_mode_bug": "rarely",
        "unknown": "usually",
    },
    sources=("karpathy_recipe", "cs231n_nn3"),
    background=0.01,
)
def probe_not_memorised(seen: Measured) -> Evidence | None:
    """The batch was not memorised within the steps.

    Not this when: the probe's own loop ran out of time, not of steps.
    """
    if seen.memorised or seen.curve is None or not seen.curve.losses:
        return None
    if was_cut_short(seen):
        raise CannotTell(f"time was up after {len(seen.curve.losses)} steps")
    last, steps = seen.curve.losses[-1], len(seen.curve.losses)
    return Evidence(
        f"after {steps} steps the loss is {figure(last)}, from {figure(seen.curve.losses[0])}",
        values={"first": seen.curve.losses[0], "last": last, "steps": steps},
    )
