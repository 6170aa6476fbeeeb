"""Record what decides: a recorder in the training loop, at one line and about 1 % of a step of 20 ms.

    from mldebug_mcp.recorder import Recorder
    recorder = Recorder("runs/a").watch(model, optimizer)
    for batch in recorder.steps(loader):
        ...
        recorder.log(loss=loss)

`mldebug-mcp diagnose runs/a` reads the recording. Nothing of this package's dependencies is imported, and torch only
where the loop has it.

On a CPU a step of a watched model takes some 0.05 ms longer, and up to 0.15 ms on a crowded machine. The thread that
writes takes as much (`python -m benchmarks.recorder host_bound`). Looks into the model every fifty
steps take up to 0.5 % more.
"""

from __future__ import annotations

from mldebug_mcp.recorder.alarm import Alarm
from mldebug_mcp.recorder.recorder import (
    Recorder,
    accelerate_tracker,
    keras_callback,
    lightning_callback,
    trainer_callback,
)

__all__ = ["Alarm", "Recorder", "accelerate_tracker", "keras_callback", "lightning_callback", "trainer_callback"]
