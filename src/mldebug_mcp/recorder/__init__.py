"""Record what decides: a recorder in the training loop, at one line and no more than 1 % of the time.

    from mldebug_mcp.recorder import Recorder
    recorder = Recorder("runs/a").watch(model, optimizer)
    for batch in recorder.steps(loader):
        ...
        recorder.log(loss=loss)

`mldebug-mcp diagnose runs/a` reads the recording. Nothing of this package's dependencies is imported, and torch only
where the loop has it.
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
