"""The overfit probe: a batch is trained on until it is memorised, in a process of its own.

`run_probe` starts the worker and reads what it measured. `worker/` holds the scripts that another interpreter runs.
What the measurements mean is said in `symptoms/probe/`, the verdict and the causes in `diagnose/probe.py`.
"""

from __future__ import annotations

from mldebug_mcp.probe.host import Progress, run_probe
from mldebug_mcp.probe.job import Job
from mldebug_mcp.probe.measured import Measured, Outcome

__all__ = ["Job", "Measured", "Outcome", "Progress", "run_probe"]
