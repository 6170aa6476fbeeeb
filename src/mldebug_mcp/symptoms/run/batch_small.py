"""The configured effective batch is very small."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

SMALL = 4.0


@symptom(needs=(), sources=("mccandlish_2018",), whole_run=True, background=0.1, as_chosen=True)
def batch_small(run: Run) -> Evidence | None:
    """The effective batch (per device, times accumulation, times devices) is at most four samples.

    Not this when: samples are long packed sequences, a few of which hold many tokens; it runs on more devices than the
    configuration names. The number was chosen by hand.
    """
    per_device = run.setting("per_device_train_batch_size")
    if per_device is None:
        raise CannotTell("the batch size is not in the configuration")
    devices = run.setting("world_size") or run.setting("num_gpus") or 1.0
    effective = per_device * (run.setting("gradient_accumulation_steps") or 1.0) * devices
    packed = run.config.get("packing") is True or run.config.get("sample_packing") is True
    if effective > SMALL or packed:
        return None
    return Evidence(f"the effective batch is {figure(effective)} samples", values={"effective_batch": effective})
