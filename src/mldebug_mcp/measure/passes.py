"""How often the training data had been seen at a step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run


def passes_at(run: Run, steps: Floats) -> Floats | None:
    """Return the passes over the data made at each step, shape (n,), or None if neither settings nor log tell.

    Where the log counts whole epochs only, it is the most that it can be: the end of the epoch that is counted.
    """
    if run.step_name == "epoch":
        whole = bool(np.all(steps == np.floor(steps)))
        return steps + 1.0 if whole and run.first_step == 0 else steps
    if run.step_name != "step":
        return None
    if run.facts.steps_per_pass:
        return steps / run.facts.steps_per_pass
    epoch = run["epoch"].finite if "epoch" in run else None
    if epoch is None or len(epoch) < 2 or epoch.value[-1] <= epoch.value[0]:
        return None
    index = np.searchsorted(epoch.step, steps, side="right") - 1
    counted = epoch.value[np.maximum(index, 0)]
    if bool(np.any(epoch.value != np.floor(epoch.value))):
        return counted
    return counted - min(1.0, float(epoch.value[0])) + 1.0
