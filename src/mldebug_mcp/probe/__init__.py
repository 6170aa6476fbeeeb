"""The overfit probe: a batch is trained on until it is memorised, in a process of its own.

`run_probe` starts the worker and reads what it measured. `worker/` holds the scripts that another interpreter runs.
What the measurements mean is defined in `checks/probe/`, the verdict and the causes in `judge/probe.py`.
"""

from __future__ import annotations

from mldebug_mcp.probe.host import Job, Progress, run_probe
from mldebug_mcp.probe.measured import Measured, Outcome

__all__ = ["Job", "Measured", "Outcome", "Progress", "run_probe"]
